"""buildah with a store of its own, outside the tree, so that no other user of buildah is disturbed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from e2e.cluster.cleanup import MOUNTS, mounts_below
from e2e.cluster.commands import attempt, run
from e2e.cluster.progress import say

LIMIT_MIB = 16 << 10


class Buildah:
    """Calls buildah on the store under `folder`; as a context one build at a time, which leaves no mount behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = -1
        self._argv = ("buildah", "--root", str(folder / "storage"), "--runroot", str(folder / "run"))

    def __enter__(self) -> Buildah:
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another image build is at work; waiting for it")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._unmount()
        self._bound()
        return self

    def __exit__(self, *_: object) -> None:
        self._unmount()
        os.close(self._lock)

    def _bound(self) -> None:
        """Empties a store that has grown too large: every changed pin leaves its old layers behind."""
        if int(run(["du", "-s", "--block-size=1M", "-x", self.folder], timeout=300).split()[0]) > LIMIT_MIB:
            say(f"the images' layers exceed {LIMIT_MIB} MiB; starting with an empty store")
            self("rmi", "--all", "--force", timeout=600)

    def _unmount(self) -> None:
        for point in mounts_below(self.folder, MOUNTS.read_text()):
            attempt(["umount", point])

    def __call__(self, *words: str | Path, timeout: float = 120) -> str:
        # The build cache of RUN --mount=type=cache lies under TMPDIR; beside the store it is found again.
        return run([*self._argv, *words], timeout=timeout, env={"TMPDIR": str(self._scratch())})

    def has(self, name: str) -> bool:
        """Whether the store has an image of that name."""
        return attempt([*self._argv, "inspect", "--type", "image", name])

    def _scratch(self) -> Path:
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return scratch


def default_folder() -> Path:
    """`$CUVIL_IMAGES`, else a folder of the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("CUVIL_IMAGES") or cache / "cuvil" / "images")
