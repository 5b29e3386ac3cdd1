"""The thread count: control groups of both versions, affinity, the environment."""

import os
from pathlib import Path

import pytest

from cuvil_core.errors import InputError
from cuvil_core.runtime.memory import available_bytes
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


TREE = {"memory.max": "9000000\n", "a/memory.max": "2000000", "a/b/memory.max": "max"}
GROUPS_OF_MEMORY: dict[str, tuple[str, dict[str, str], int | None]] = {
    "no limit": ("0::/\n", {"memory.max": "max\n"}, 3_000 << 10),
    "version 2": ("0::/a/b\n", TREE, 2_000_000),
    "version 1": ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "1000000\n"}, 1_000_000),
    "version 1 without limit": ("4:memory:/\n", {"memory/memory.limit_in_bytes": str(2**63 - 4096)}, 3_000 << 10),
    "garbage": ("0::/\n", {"memory.max": "what"}, 3_000 << 10),
}


@pytest.mark.parametrize("case", GROUPS_OF_MEMORY)
def test_memory_is_the_least_of_machine_and_groups(tmp_path: Path, case: str) -> None:
    """The tightest limit on the way to the root counts, else what the machine can spare and swap."""
    cgroup, files, want = GROUPS_OF_MEMORY[case]
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    2000 kB\nSwapFree: 1000 kB\n")
    assert available_bytes(*world(tmp_path, cgroup, files), tmp_path / "meminfo") == want


def test_nothing_that_tells_memory(tmp_path: Path) -> None:
    """Without /proc nothing is refused."""
    assert available_bytes(tmp_path / "none", tmp_path, tmp_path / "none") is None


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
