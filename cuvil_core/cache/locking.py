"""One lock for each key, released by the kernel when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; waits for other threads and processes. Raises OSError where no file can be made.

    The file is removed by its holder. So whoever gets a lock looks whether the path still names the file it locked,
    and starts again if not: otherwise two could hold locks on two files of one name.
    """
    handle = _acquire(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _acquire(path: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _names(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _names(path: Path, handle: int) -> bool:
    try:
        there, here = os.stat(path), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
