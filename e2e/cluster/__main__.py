"""Runs the command line: `python -m e2e.cluster up`."""

import sys

from e2e.cluster.cli import main

sys.exit(main())
