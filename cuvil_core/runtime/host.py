"""Memory that one call asks for while it runs: outputs and intermediate tensors whose extents come from data."""

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from cuvil_core.errors import CuvilError, SizeError
from cuvil_core.runtime.memory import require
from cuvil_core.runtime.tensors import Array

ALIGNMENT = 64
_MEMORY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64)
_OUTPUT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))


class _Functions(ctypes.Structure):
    """`struct cuvil_host`."""

    _fields_ = (("context", ctypes.c_void_p), ("memory", _MEMORY), ("output", _OUTPUT))


class Host:
    """Serves one call; keeps what it gave until the call's owner lets go of it."""

    def __init__(self, dtypes: Sequence[np.dtype[Any]], ranks: Sequence[int]) -> None:
        """The dtypes and ranks of all outputs."""
        self._dtypes, self._ranks = tuple(dtypes), tuple(ranks)
        self._blocks: dict[int, Array] = {}
        self.outputs: dict[int, Array] = {}
        """Place of an output → its array, once the call has asked for it."""
        self.fault: CuvilError | None = None
        """Why the call was given no memory."""
        self._functions = _Functions(None, _MEMORY(self._memory), _OUTPUT(self._output))

    @property
    def address(self) -> int:
        """The address of the struct for C."""
        return ctypes.addressof(self._functions)

    def _memory(self, context: int | None, block: int, size: int) -> int | None:
        return self._guarded(lambda: self._block(block, size))

    def _block(self, block: int, size: int) -> int:
        room = self._blocks.get(block)
        if room is None or room.size < size + ALIGNMENT:
            require(size, "what the call makes of its inputs' values")
            room = self._blocks[block] = np.empty(size + ALIGNMENT, np.uint8)
        address = int(room.__array_interface__["data"][0])
        return address + -address % ALIGNMENT

    def _output(self, context: int | None, index: int, extents: Any) -> int | None:
        return self._guarded(lambda: self._array(index, tuple(extents[: self._ranks[index]])))

    def _array(self, index: int, shape: tuple[int, ...]) -> int:
        require(prod(shape) * self._dtypes[index].itemsize, f"an output of shape {list(shape)}")
        array = self.outputs[index] = np.empty(shape, self._dtypes[index])
        return int(array.__array_interface__["data"][0]) or ALIGNMENT

    def _guarded(self, give: Callable[[], int]) -> int | None:
        """No exception passes through C: it is kept, and the call ends."""
        try:
            return give()
        except CuvilError as fault:
            self.fault = fault
        except (MemoryError, ValueError) as fault:
            self.fault = SizeError("the memory that the inputs' values ask for cannot be had; pass smaller inputs")
            self.fault.__cause__ = fault
        return None
