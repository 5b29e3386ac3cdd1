"""`python -m e2e [--context NAME] [--only N]`: tests on the real API server, then the ten stories."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

import pytest

from e2e.stories.catalogue import STORIES
from e2e.stories.setup import SetupError, prepare
from e2e.stories.telling import last_words, tell


def main() -> int:
    """Run all; 0 when every test passed and every story went as expected."""
    parser = argparse.ArgumentParser(prog="make e2e", description=__doc__)
    parser.add_argument("--context", help="a context of your kubeconfig instead of the embedded cluster")
    parser.add_argument("--only", type=int, action="append", help="a story's number; may be given again")
    chosen = parser.parse_args()
    try:
        world = prepare(chosen.context)
    except SetupError as fault:
        print(f"e2e: {fault}", file=sys.stderr)
        return 1
    os.environ["CUVIL_E2E_KUBECONFIG"] = world.access.kubeconfig or ""
    os.environ["CUVIL_E2E_CONTEXT"] = world.access.context or ""
    tested = 0 if chosen.only else int(pytest.main(["-q", "-m", "cluster", str(Path(__file__).parent)]))
    picked = [
        (number, title, partial(play, world))
        for number, (title, play) in enumerate(STORIES, 1)
        if not chosen.only or number in chosen.only
    ]
    good = tell(picked, "e2e", on_fault=partial(last_words, world.access))
    if tested:
        print("e2e: the tests on the real API server failed, see above")
    return 0 if good and not tested else 1


if __name__ == "__main__":
    sys.exit(main())
