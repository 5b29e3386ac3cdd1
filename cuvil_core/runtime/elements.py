"""Types that NumPy lacks: arrays of ml_dtypes outside, bytes as generated code reads and writes them inside."""

import importlib
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.errors import TargetError

Array = NDArray[Any]

_EXACT = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
_LOW = ("float4_e2m1fn", "uint4", "uint2")
_SIGNED = ("int4", "int2")
LACKING = frozenset((*_EXACT, *_LOW, *_SIGNED))
"""Names of ml_dtypes that a manifest may hold."""


@cache
def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a name of a manifest; TargetError where it needs a package that is not there."""
    if name not in LACKING:
        return np.dtype(name)
    try:
        # Not at the top: images that serve ordinary models go without it.
        found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except ImportError as fault:
        raise TargetError(f"arrays of {name} need the package ml_dtypes; install it") from fault
    return found


def storage_of(name: str) -> np.dtype[Any]:
    """The dtype of the bytes: integers of 4 and 2 bits by value, floats by their bits."""
    if name == "bfloat16":
        return np.dtype(np.uint16)
    if name in LACKING:
        return np.dtype(np.int8 if name in _SIGNED else np.uint8)
    return np.dtype(name)


def to_bytes(array: Array, name: str) -> Array:
    """The array as generated code reads it; a copy only for types below 8 bits, whose spare bits may hold anything."""
    if name in _EXACT:
        return array.view(storage_of(name))
    if name == "float4_e2m1fn":
        return np.asarray(array.view(np.uint8) & 0x0F)
    return array.astype(storage_of(name)) if name in LACKING else array


def from_bytes(array: Array, name: str) -> Array:
    """The array as the caller knows it."""
    if name in _SIGNED:
        return array.astype(dtype_of(name))
    return array.view(dtype_of(name)) if name in LACKING else array


def nameless(array: Array) -> Array:
    """The array as npz files hold it: types that NumPy lacks as plain bytes, since it reads no other."""
    return array.view(f"V{array.dtype.itemsize}") if array.dtype.name in LACKING else array


def named(array: Array, name: str) -> Array:
    """An array of plain bytes from an npz file as the type that a manifest names; any other as it is."""
    same = array.dtype.kind == "V" and name in LACKING and array.dtype.itemsize == dtype_of(name).itemsize
    return array.view(dtype_of(name)) if same else array


def from_torch(tensor: Any, wanted: str) -> Array:
    """A tensor of torch as an array over its memory, where it is the wanted type also in those that NumPy lacks."""
    name = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if name == wanted and name in _EXACT:
        integer = sys.modules["torch"].int16 if name == "bfloat16" else sys.modules["torch"].uint8
        return np.from_dlpack(tensor.detach().view(integer)).view(dtype_of(name))
    return np.from_dlpack(tensor.detach())


def to_torch(array: Array) -> object:
    """A tensor of torch over the array's memory; the array itself where torch lacks the type (4 and 2 bits)."""
    torch, name = sys.modules["torch"], array.dtype.name
    if name in _EXACT:
        integer = np.int16 if name == "bfloat16" else np.uint8
        return torch.from_numpy(array.view(integer)).view(getattr(torch, name))
    return array if name in LACKING else torch.from_numpy(array)
