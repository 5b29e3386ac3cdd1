"""The thread count: control groups of both versions, affinity, the environment."""

import os
from pathlib import Path

import pytest

from cuvil_core.errors import InputError
from cuvil_core.runtime.threads import available_cpus, cpu_quota, thread_count


def world(tmp_path: Path, cgroup: str, files: dict[str, str]) -> tuple[Path, Path]:
    """A /proc/self/cgroup and a /sys/fs/cgroup."""
    proc, root = tmp_path / "cgroup", tmp_path / "fs"
    proc.write_text(cgroup)
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return proc, root


CASES = {
    "version 2, own group": ("0::/pod/app\n", {"pod/app/cpu.max": "150000 100000\n"}, 1.5),
    "version 2, parent is tighter": (
        "0::/pod/app\n",
        {"pod/app/cpu.max": "400000 100000\n", "pod/cpu.max": "200000 100000\n"},
        2.0,
    ),
    "version 2, no limit": ("0::/pod\n", {"pod/cpu.max": "max 100000\n"}, None),
    "version 2, namespaced root": ("0::/\n", {"cpu.max": "300000 100000\n"}, 3.0),
    "version 1, joint controllers": (
        "4:cpu,cpuacct:/pod\n",
        {"cpu,cpuacct/pod/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/pod/cpu.cfs_period_us": "100000\n"},
        0.5,
    ),
    "version 1, no limit": ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    "version 1, path of the host": (
        "4:cpu:/kubepods/x\n",
        {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"},
        2.0,
    ),
    "garbage": ("nonsense\n:::\n", {"cpu.max": "what\n"}, None),
    "only cpuset is ignored": ("3:cpuset:/\n", {"cpuset/cpu.max": "100000 100000"}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_quota(tmp_path: Path, case: str) -> None:
    """The tightest quota on the way to the root is found."""
    cgroup, files, want = CASES[case]
    assert cpu_quota(*world(tmp_path, cgroup, files)) == want


def test_quota_rounds_down_to_at_least_one(tmp_path: Path) -> None:
    """Half a CPU gives one thread; a quota above the affinity gives the affinity."""
    half = world(tmp_path, "0::/\n", {"cpu.max": "50000 100000\n"})
    assert available_cpus(*half) == 1
    (half[1] / "cpu.max").write_text("99900000 100000\n")
    assert available_cpus(*half) == len(os.sched_getaffinity(0))


def test_missing_proc_is_no_quota(tmp_path: Path) -> None:
    """Without /proc there is no quota."""
    assert cpu_quota(tmp_path / "none", tmp_path) is None


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUVIL_NUM_THREADS wins; empty is unset; nonsense is refused with the variable's name."""
    monkeypatch.setenv("CUVIL_NUM_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.setenv("CUVIL_NUM_THREADS", "")
    assert thread_count() >= 1
    for bad in ("0", "-1", "two", "1.5", "99999", "²"):
        monkeypatch.setenv("CUVIL_NUM_THREADS", bad)
        with pytest.raises(InputError, match="CUVIL_NUM_THREADS"):
            thread_count()
