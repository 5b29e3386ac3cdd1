"""Memory for intermediate tensors: one arena for each call in flight, kept for the next call, bounded."""

import ctypes
import mmap
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from cuvil_core.errors import SizeError

Result = TypeVar("Result")
MAX_IN_FLIGHT = max(8, 2 * (os.cpu_count() or 1))
"""Calls of one module at once; further callers wait, so memory stays bounded."""
GRAIN = 1 << 16


class _Arena:
    """Zeroed pages from the kernel, page-aligned."""

    def __init__(self, size: int) -> None:
        self.size = -(-max(size, 1) // GRAIN) * GRAIN
        try:
            self._area = mmap.mmap(-1, self.size)
        except (OSError, OverflowError, ValueError) as fault:
            raise SizeError(
                f"{size} bytes for intermediate tensors cannot be had; pass smaller inputs or raise the memory limit"
            ) from fault
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._area))


class ArenaStore:
    """Arenas of one module, reused last-in first-out so that the warm one is taken first."""

    def __init__(self, in_flight: int = MAX_IN_FLIGHT) -> None:
        self._gate = threading.BoundedSemaphore(in_flight)
        self._idle: list[_Arena] = []

    def lend(self, size: int, use: Callable[[int], Result]) -> Result:
        """Give `use(address of size bytes)`; waits while too many calls are in flight. Raises SizeError."""
        with self._gate:
            try:
                arena = self._idle.pop()
            except IndexError:
                arena = _Arena(size)
            if arena.size < size:
                arena = _Arena(size)
            result = use(arena.address)
            # Only after success: an arena of a failed call is dropped.
            self._idle.append(arena)
            return result
