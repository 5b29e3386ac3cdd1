"""Processes of the cluster: found by their mark, restarted when their configuration changes, stopped for good."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import processes, settings
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Process
from e2e.cluster.settings import MEMBER, Settings

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def chosen(tmp_path: Path) -> Iterator[Settings]:
    """A cluster's settings whose processes are all ended afterwards."""
    found = settings.from_environment({"HOME": str(tmp_path)}, str(tmp_path / "state"))
    found.state.mkdir()
    yield found
    processes.stop(processes.members(found), grace=0)


def test_running_process_is_left_alone(chosen: Settings) -> None:
    """A second `ensure` starts nothing and keeps the pid."""
    process = Process("sleeper", SLEEP)
    assert processes.ensure(chosen, process) is True
    pid = processes.running(chosen, "sleeper")
    assert processes.ensure(chosen, process) is False
    assert processes.running(chosen, "sleeper") == pid


def test_changed_configuration_restarts(chosen: Settings) -> None:
    """A changed file that the program reads ends the old process and starts a new one."""
    file = chosen.state / "configuration"
    file.write_text("a")
    process = Process("sleeper", SLEEP, reads=(file,))
    processes.ensure(chosen, process)
    before = processes.running(chosen, "sleeper")
    file.write_text("b")
    assert processes.ensure(chosen, process) is True
    assert processes.running(chosen, "sleeper") != before
    assert len(processes.members(chosen)) == 1


def test_unrecorded_twin_is_ended(chosen: Settings) -> None:
    """A process whose run was killed before it could write the record does not stay beside its successor."""
    twin = subprocess.Popen(SLEEP, env={**os.environ, MEMBER: str(chosen.state)}, start_new_session=True)
    assert processes.members(chosen) == [twin.pid]
    processes.ensure(chosen, Process("sleeper", SLEEP))
    assert twin.wait(timeout=10) != 0
    assert len(processes.members(chosen)) == 1


def test_recycled_pid_is_not_ours(chosen: Settings) -> None:
    """A record that names a living process without the mark counts as not running."""
    record = chosen.state / "run" / "sleeper.json"
    record.parent.mkdir()
    record.write_text(f'{{"pid": {os.getppid()}, "digest": "x"}}')
    assert processes.running(chosen, "sleeper") is None


def test_other_clusters_are_not_touched(chosen: Settings, tmp_path: Path) -> None:
    """A process marked with another state folder is no member."""
    other = subprocess.Popen(SLEEP, env={**os.environ, MEMBER: str(tmp_path / "other")})
    try:
        assert processes.members(chosen) == []
    finally:
        other.kill()
        other.wait(timeout=10)


def test_failing_program_shows_its_log(chosen: Settings) -> None:
    """A program that ends at once gives the end of its log in the sentence."""
    process = Process("broken", (sys.executable, "-c", "raise SystemExit('no such flag')"))
    processes.ensure(chosen, process)
    with pytest.raises(ClusterError, match=r"(?s)broken ended at once.*no such flag"):
        processes.watch(chosen, process, lambda: False, seconds=20)


def test_program_is_known_as_soon_as_it_is_started(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a moment of its start a program has no environment yet; the start waits that moment out."""
    seen = iter([None, None])
    marked = processes.member_of
    monkeypatch.setattr(processes, "member_of", lambda pid: next(seen, marked(pid)))
    process = Process("early", SLEEP)
    try:
        processes.ensure(chosen, process)
        assert next(seen, "asked") == "asked"
        assert processes.running(chosen, "early")
    finally:
        processes.stop(processes.members(chosen), grace=0)
