"""Long-lived programs of the cluster: started in their own session, found again by a mark in their environment.

A process of a cluster carries `CUVIL_CLUSTER_MEMBER=<state folder>`; that, and no pid file alone, decides whether a
pid is ours, so a recycled pid is never taken for one and a killed `up` leaves nothing that `down` cannot find.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.settings import MEMBER, Settings

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One long-lived program: what is run, and what it must be restarted for."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[Path, ...] = ()
    """Configuration files; a change in one restarts the program."""

    def digest(self) -> str:
        """Changes with the command line, the environment or a configuration file."""
        seen = hashlib.sha256(json.dumps([self.argv, sorted(self.env.items())]).encode())
        for file in self.reads:
            seen.update(file.read_bytes())
        return seen.hexdigest()


def ensure(settings: Settings, process: Process) -> bool:
    """Starts the program unless it runs already with the same digest; True when it was started."""
    record = settings.state / "run" / f"{process.name}.json"
    pid = running(settings, process.name)
    if pid and json.loads(record.read_text())["digest"] == process.digest():
        return False
    # A run killed between start and record leaves an unrecorded twin that would hold the ports.
    stop([pid] if pid else [other for other in members(settings) if _words(other) == list(process.argv)], grace=10)
    started = _start(settings, process)
    record.parent.mkdir(parents=True, exist_ok=True)
    fresh = record.with_suffix(".new")
    fresh.write_text(json.dumps({"pid": started, "digest": process.digest()}))
    fresh.replace(record)
    return True


def running(settings: Settings, name: str) -> int | None:
    """The pid of the named program while it lives, else None."""
    try:
        pid = int(json.loads((settings.state / "run" / f"{name}.json").read_text())["pid"])
    except (OSError, ValueError, KeyError):
        return None
    return pid if alive(pid) and member_of(pid) == str(settings.state) else None


def watch(settings: Settings, process: Process, ready: Callable[[], bool], *, seconds: float) -> None:
    """Returns once `ready()`; `ClusterError` with the end of the log when the program ends or takes too long."""
    end = time.monotonic() + seconds
    while not ready():
        dead = running(settings, process.name) is None
        if dead or time.monotonic() > end:
            why = "ended at once" if dead else f"was not ready within {seconds:.0f} s"
            raise ClusterError(f"{process.name} {why}; the end of its log:\n{log_tail(settings, process.name)}")
        time.sleep(0.1)


def log_tail(settings: Settings, name: str, lines: int = 8) -> str:
    """The last lines of the program's log, each cut at 300 characters."""
    try:
        text = (settings.logs / f"{name}.log").read_text(errors="replace")
    except OSError:
        return "    (no log)"
    return "\n".join("    " + line[:300] for line in text.splitlines()[-lines:])


def stop(pids: Iterable[int], *, grace: float) -> None:
    """TERM, then KILL after `grace` seconds; returns when none lives."""
    waiting = list(pids)
    _signal(waiting, signal.SIGTERM if grace else signal.SIGKILL)
    end = time.monotonic() + grace
    while waiting := [pid for pid in waiting if alive(pid)]:
        if time.monotonic() > end:
            _signal(waiting, signal.SIGKILL)
        if time.monotonic() > end + 10:
            raise ClusterError(
                f"the processes {waiting} do not end even by SIGKILL; look at them with ps and run down again"
            )
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether the pid is a process that still runs; a zombie does not."""
    try:
        state = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def member_of(pid: int) -> str | None:
    """The state folder that the process is marked with, or None."""
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == MEMBER.encode():
            return value.decode(errors="replace")
    return None


def members(settings: Settings) -> list[int]:
    """Every living process of this cluster outside its pods: marked ones, and shims that serve its socket."""
    return [pid for pid in _pids() if alive(pid) and _belongs(pid, settings)]


def _belongs(pid: int, settings: Settings) -> bool:
    if member_of(pid) == str(settings.state):
        return True
    words = _words(pid)
    return bool(words) and Path(words[0]).name.startswith("containerd-shim") and str(settings.socket) in words


def _words(pid: int) -> list[str]:
    """The command line of the process; empty when it is gone."""
    try:
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).rstrip("\0").split("\0")
    except OSError:
        return []


def _pids() -> Iterator[int]:
    own = os.getpid()
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != own:
            yield int(entry.name)


def _start(settings: Settings, process: Process) -> int:
    settings.logs.mkdir(parents=True, exist_ok=True)
    with (settings.logs / f"{process.name}.log").open("ab") as log:
        try:
            child = subprocess.Popen(
                process.argv,
                env={**os.environ, **process.env, MEMBER: str(settings.state)},
                cwd=settings.state,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise ClusterError(
                f"{process.argv[0]} does not start: {error.strerror}; remove it and run up again"
            ) from None
    _await_mark(child.pid)
    return child.pid


def _await_mark(pid: int) -> None:
    """Popen returns in the midst of execve, a moment before the kernel shows the environment that carries the mark."""
    end = time.monotonic() + 10
    while alive(pid) and member_of(pid) is None and time.monotonic() < end:
        time.sleep(0.002)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
