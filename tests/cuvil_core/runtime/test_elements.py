"""Types that NumPy lacks, between callers' arrays and the bytes of generated code."""

import sys

import ml_dtypes
import numpy as np
import pytest

from cuvil_core.errors import TargetError
from cuvil_core.runtime.elements import LACKING, dtype_of, from_bytes, storage_of, to_bytes


@pytest.mark.parametrize("name", sorted(LACKING))
def test_arrays_come_back_from_their_bytes(name: str) -> None:
    """Every type goes to its storage and back without a change, scalars and empty arrays too."""
    for shape in ((2, 4), (), (0, 3)):
        array = np.ones(shape, np.float32).astype(dtype_of(name))
        stored = to_bytes(array, name)
        assert (stored.dtype, stored.shape) == (storage_of(name), shape)
        back = from_bytes(stored, name)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back.astype(np.float32), array.astype(np.float32))


def test_integers_are_stored_by_value() -> None:
    """-1 of four bits is the byte -1, whatever ml_dtypes keeps in the upper half."""
    assert to_bytes(np.array([-8, -1, 7]).astype(ml_dtypes.int4), "int4").tolist() == [-8, -1, 7]
    assert to_bytes(np.array([3, 0]).astype(ml_dtypes.uint2), "uint2").tolist() == [3, 0]


def test_spare_bits_of_floats_are_cleared() -> None:
    """Generated code looks codes up: those of float4 are below 16 also where an array came from raw bytes."""
    raw = np.array([0xF7, 0x15], np.uint8).view(ml_dtypes.float4_e2m1fn)
    assert to_bytes(raw, "float4_e2m1fn").tolist() == [7, 5]


def test_types_of_eight_bits_and_more_are_not_copied() -> None:
    """bfloat16 and float8 are read where they lie."""
    for name in ("bfloat16", "float8_e5m2"):
        array = np.ones(5, np.float32).astype(dtype_of(name))
        assert np.shares_memory(to_bytes(array, name), array)


def test_without_the_package_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary types need nothing; a narrow one names what to install."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtype_of.cache_clear()
    assert dtype_of("float32") == np.float32
    with pytest.raises(TargetError, match="arrays of int4 need the package ml_dtypes; install it"):
        dtype_of("int4")
