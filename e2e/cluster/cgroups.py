"""The cgroup that holds the cluster, in each hierarchy of version 1 or in the one of version 2.

cuvil-cluster          as much processor time as 32 busy host processes, so that tests beside it do not starve it
├── kubepods           made by kubelet: every pod
└── system             the host processes: under contention they and the pods get half each
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import alive, stop
from e2e.cluster.settings import CGROUP

ROOT = Path("/sys/fs/cgroup")
SYSTEM = f"{CGROUP}/system"
SHARES = 32 * 1024
"""Version 1: a host process outside any cgroup counts 1024."""
WEIGHT = 1000
"""Version 2: a cgroup counts 100 unless told otherwise."""


def hierarchies() -> list[Path]:
    """The mounted roots: one on version 2, one a controller on version 1; symbolic links are not counted twice."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [entry for entry in sorted(ROOT.iterdir()) if entry.is_dir() and not entry.is_symlink()]


def ensure() -> None:
    """Makes our cgroup in each hierarchy, since kubelet refuses a root that is absent, and gives it its weight."""
    for hierarchy in hierarchies():
        (hierarchy / CGROUP).mkdir(exist_ok=True)
    if (ROOT / "cgroup.controllers").exists():
        _delegate()
    processor = _processor()
    for setting, value in (("cpu.shares", SHARES), ("cpu.weight", WEIGHT)):
        if (processor / CGROUP / setting).exists():
            (processor / CGROUP / setting).write_text(str(value))
    (processor / SYSTEM).mkdir(exist_ok=True)


def enlist(host_processes: Iterable[int]) -> None:
    """Moves the processes, with all their threads, into `system`; one that has ended is passed over."""
    for pid in host_processes:
        try:
            (_processor() / SYSTEM / "cgroup.procs").write_text(str(pid))
        except OSError:
            continue


def _processor() -> Path:
    """The hierarchy that shares out processor time."""
    return ROOT if (ROOT / "cgroup.controllers").exists() else ROOT / "cpu"


def remove() -> None:
    """Kills what runs in our cgroup and removes it; `ClusterError` when it stays."""
    for hierarchy in hierarchies():
        for frozen in (hierarchy / CGROUP).rglob("freezer.state"):
            frozen.write_text("THAWED")
    end = time.monotonic() + 15
    while left := [hierarchy / CGROUP for hierarchy in hierarchies() if (hierarchy / CGROUP).exists()]:
        stop(pids(), grace=0)
        for folder in left:
            _remove_tree(folder)
        if time.monotonic() > end:
            raise ClusterError(
                f"the cgroup {left[0]} cannot be removed; a process in it does not end, see its cgroup.procs"
            )
        time.sleep(0.02)


def pids() -> list[int]:
    """Every living process in the cluster's cgroup."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        for listing in (hierarchy / CGROUP).rglob("cgroup.procs"):
            try:
                found.update(int(word) for word in listing.read_text().split())
            except OSError:
                continue
    return [pid for pid in sorted(found - {os.getpid()}) if alive(pid)]


def _remove_tree(folder: Path) -> None:
    for path, _, _ in os.walk(folder, topdown=False):
        try:
            os.rmdir(path)
        except OSError:
            continue


def _delegate() -> None:
    # On version 2 a controller reaches a child only when its parent hands it down.
    controllers = (ROOT / "cgroup.controllers").read_text().split()
    for folder in (ROOT, ROOT / CGROUP):
        for controller in controllers:
            try:
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                continue
