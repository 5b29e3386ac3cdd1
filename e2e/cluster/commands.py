"""Runs short-lived programs: argument lists in, text out; never a shell."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from e2e.cluster.errors import ClusterError, CommandFailed

_MARK: ContextVar[Mapping[str, str] | None] = ContextVar("mark", default=None)


@contextmanager
def marked(mark: Mapping[str, str]) -> Iterator[None]:
    """Programs run within the block carry these variables, so that one orphaned by a kill -9 is found again."""
    token = _MARK.set(mark)
    try:
        yield
    finally:
        _MARK.reset(token)


def run(
    argv: Sequence[str | Path],
    *,
    text: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> str:
    """Standard output of one program; `CommandFailed` on a non-zero status, `ClusterError` when missing or hanging."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            input=text,
            env={**os.environ, **(_MARK.get() or {}), **(env or {})},
            cwd=cwd,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise ClusterError(f"the program {words[0]} is missing; install it and run this again") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{' '.join(words[:3])} gave no answer within {timeout:.0f} s; look at the machine's load"
        ) from None
    if done.returncode:
        raise CommandFailed(_label(words), done.returncode, done.stdout + done.stderr)
    return done.stdout


def _label(words: Sequence[str]) -> str:
    """The program's name and its first words that are neither flags nor paths."""
    plain = [word for word in words[1:] if not word.startswith(("-", "/"))]
    return " ".join([Path(words[0]).name, *plain[:3]])


def attempt(argv: Sequence[str | Path], *, timeout: float = 30) -> bool:
    """Whether the program ended with status 0; for clean-up steps whose object may already be gone."""
    try:
        run(argv, timeout=timeout)
    except ClusterError:
        return False
    return True


def wait_until(what: str, ready: Callable[[], bool], *, seconds: float, every: float = 0.2) -> None:
    """Returns once `ready()` is true; `ClusterError` naming `what` after `seconds`."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise ClusterError(f"waited {seconds:.0f} s in vain for {what}; see `python -m e2e.cluster status`")
        time.sleep(every)
