"""Where helm and promtool lie: the program cache of the embedded cluster."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.cluster import settings
from e2e.cluster.programs import Programs

TIMEOUT_SECONDS = 60


def program(name: str) -> Path:
    """Give the program's path; the test fails with the cure where it has not been built."""
    path = Programs(settings.from_environment().programs).path(name)
    if not path.exists():
        pytest.fail(f"{name} is not built: run `make programs`, or `python -m e2e.cluster programs {name}`")
    return path


def run(name: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program of the cache; gives its exit code and texts."""
    command = [str(program(name)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
