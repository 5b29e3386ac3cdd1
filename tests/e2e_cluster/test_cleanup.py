"""What `down` finds and what it refuses to delete."""

from pathlib import Path

import pytest

from e2e.cluster import cleanup
from e2e.cluster.errors import ClusterError

MOUNTINFO = """\
24 1 254:0 / / rw - ext4 /dev/vda rw
90 24 0:40 / /var/lib/c/kubelet/pods/1/volumes/token rw - tmpfs tmpfs rw
91 24 254:0 /x /var/lib/c/kubelet rw - ext4 /dev/vda rw
92 24 0:41 / /var/lib/cother/x rw - tmpfs tmpfs rw
93 24 0:42 / /var/lib/c/with\\040space rw - tmpfs tmpfs rw
"""


def test_mounts_are_found_deepest_first() -> None:
    """Only mounts below the folder are named, a mount before what it lies on, escapes undone."""
    assert cleanup.mounts_below(Path("/var/lib/c"), MOUNTINFO) == [
        "/var/lib/c/with space",
        "/var/lib/c/kubelet/pods/1/volumes/token",
        "/var/lib/c/kubelet",
    ]


def test_foreign_folder_is_refused(tmp_path: Path) -> None:
    """A folder with somebody's files never becomes a state folder, so `down` cannot delete them."""
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(ClusterError, match="CUVIL_CLUSTER_STATE"):
        cleanup.claim(tmp_path)
    assert not cleanup.is_state(tmp_path)


def test_claim_may_be_repeated(tmp_path: Path) -> None:
    """A claimed folder stays claimed when the cluster has written into it."""
    state = tmp_path / "state"
    cleanup.claim(state)
    (state / "etcd").mkdir()
    cleanup.claim(state)
    assert cleanup.is_state(state)


def test_removal_leaves_what_links_point_to(tmp_path: Path) -> None:
    """Files are deleted with the folder, and a symbolic link is deleted without its target."""
    state, kept = tmp_path / "state", tmp_path / "kept"
    cleanup.claim(state)
    kept.mkdir()
    (kept / "file").write_text("x")
    (state / "link").symlink_to(kept)
    cleanup._remove_files(state)
    assert not state.exists()
    assert (kept / "file").read_text() == "x"
