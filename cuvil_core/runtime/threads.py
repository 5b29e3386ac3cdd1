"""How many threads this process should compute with.

A container sees all CPUs of its node but may use only its quota: more threads than that are throttled for whole periods
(usually 100 ms), which ruins the tail of the latency. So: the least of affinity and of every quota on the way from the
process's control group to the root, rounded down (1.5 CPUs give one thread that is never throttled), at least 1.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from cuvil_core.errors import InputError

VARIABLE = "CUVIL_NUM_THREADS"
MOST = 1024


def thread_count() -> int:
    """Give the threads to compute with: CUVIL_NUM_THREADS, else the CPUs available; raises InputError for nonsense."""
    stated = os.environ.get(VARIABLE, "").strip()
    if not stated:
        return available_cpus()
    if not stated.isdecimal() or not 1 <= int(stated) <= MOST:
        raise InputError(f"{VARIABLE} is {stated!r}, wanted a whole number from 1 to {MOST}: set it or unset it")
    return int(stated)


def available_cpus(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Give the CPUs that affinity and control-group quotas leave to this process."""
    affinity, quota = affinity_cpus(), cpu_quota(proc, root)
    return affinity if quota is None else max(1, min(affinity, math.floor(quota)))


def affinity_cpus() -> int:
    """Give the CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Give the smallest quota in CPUs from the process's control group up to the root, None without one."""
    quotas = map(_quota, group_folders(proc, root, "cpu"))
    return min((one for one in quotas if one is not None), default=None)


def group_folders(proc: Path, root: Path, controller: str) -> Iterator[Path]:
    """Yield the process's control groups and their parents: version 2, and version 1's of one controller."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            base = root
        elif controller in controllers.split(","):
            base = root / controllers if (root / controllers).is_dir() else root / controller
        else:
            continue
        here = Path(path.lstrip("/"))
        # Without a control-group namespace the path is the host's and may be missing here: the mounted root counts.
        yield from (base / part for part in (here, *here.parents) if ".." not in part.parts)


def _quota(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()[:2]
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        return None if quota == "max" or int(quota) <= 0 else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
