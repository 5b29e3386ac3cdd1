"""The one thread pool of this process, shared by all loaded models."""

import os
import threading

from cuvil_core.errors import InfrastructureError
from cuvil_core.runtime.library import Library
from cuvil_core.runtime.threads import thread_count


class _ProcessPool:
    """Made by the first library that asks, which then stays loaded: the pool's threads live in its code."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: after a fork the child has none of the parent's threads."""
        self._lock = threading.Lock()
        self._address: int | None = None
        self._threads = 0

    def address(self, library: Library) -> int | None:
        """Give the pool's address; None when one thread computes, which is then the caller's own."""
        with self._lock:
            if self._threads == 0:
                threads = thread_count()
                if threads > 1:
                    self._address = library.pool_create(threads)
                    if not self._address:
                        raise InfrastructureError(
                            f"{threads} threads cannot be started; set CUVIL_NUM_THREADS lower or raise the limit"
                        )
                    library.keep()
                self._threads = threads
            return self._address

    @property
    def threads(self) -> int:
        """Threads in use; 0 before the first library."""
        return self._threads


POOL = _ProcessPool()
os.register_at_fork(after_in_child=POOL.forget)
