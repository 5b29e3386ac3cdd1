"""What the person at the terminal sees: one line a finished step, with its time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_BEGAN = time.monotonic()


def say(sentence: str) -> None:
    """Prints one line to standard error, after the seconds since the program's start."""
    print(f"cluster {time.monotonic() - _BEGAN:7.1f} s  {sentence}", file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Prints `what` with its duration when the block ends well; long steps announce themselves at once."""
    began = time.monotonic()
    yield
    say(f"{what} ({time.monotonic() - began:.1f} s)")
