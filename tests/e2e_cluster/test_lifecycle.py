"""One `up` or `down` at a time, also across a deletion of the state folder."""

import shutil
import threading
from pathlib import Path

from e2e.cluster import cleanup, lifecycle


def test_waiting_up_notices_a_deleted_folder(tmp_path: Path) -> None:
    """An `up` that waited for a `down` makes the folder again instead of writing into the deleted one."""
    state = tmp_path / "state"
    cleanup.claim(state)
    first = state.stat().st_ino
    entered = threading.Event()

    def wait_and_enter() -> None:
        with lifecycle._claimed(state):
            entered.set()

    with lifecycle._locked(state):
        waiting = threading.Thread(target=wait_and_enter)
        waiting.start()
        assert not entered.wait(0.3)
        # The old folder is kept aside, so that its inode is not given to the new one.
        state.rename(tmp_path / "deleted")
    waiting.join(10)
    assert entered.is_set()
    assert cleanup.is_state(state)
    assert state.stat().st_ino != first
    shutil.rmtree(tmp_path / "deleted")


def test_lock_is_given_back(tmp_path: Path) -> None:
    """A second run enters when the first has ended."""
    state = tmp_path / "state"
    for _ in range(2):
        with lifecycle._claimed(state):
            assert cleanup.is_state(state)
