"""Constant data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuvil_core.errors import ModelError
from cuvil_core.ir import DType, Payload
from cuvil_core.reference import array_of, payload_of


@pytest.mark.parametrize("dtype", list(DType), ids=str)
def test_numbers_come_back(dtype: DType) -> None:
    """Small numbers survive the way into bytes and out, by struct and by NumPy."""
    payload = Payload.of(dtype, (2, 2), [0, 1, 1, 0])
    assert payload.values() == [0, 1, 1, 0]
    assert array_of(payload).tolist() == [[0, 1], [1, 0]]
    assert payload_of(array_of(payload)) == payload


@given(st.floats(width=32))
def test_bfloat16_rounds_to_nearest_even(value: float) -> None:
    """Own rounding equals that of ml_dtypes for every float32."""
    import ml_dtypes

    (ours,) = Payload.scalar(DType.BFLOAT16, value).values()
    theirs = float(np.float32(value).astype(ml_dtypes.bfloat16))
    assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))


def test_a_wrong_size_is_refused() -> None:
    """Bytes must fill the shape exactly."""
    with pytest.raises(ModelError, match="holds 3 bytes instead of 8"):
        Payload(DType.FLOAT32, (2,), b"abc")


def test_numbers_that_do_not_fit_are_refused() -> None:
    """A number outside of the dtype's range is an error."""
    with pytest.raises(ModelError, match="does not fit int8"):
        Payload.of(DType.INT8, (1,), [300])


def test_item_is_the_one_number_that_fills_it() -> None:
    """item() is None as soon as two elements differ in their bits."""
    assert Payload.of(DType.FLOAT32, (3,), [2.0, 2.0, 2.0]).item() == 2.0
    assert Payload.of(DType.FLOAT32, (2,), [0.0, -0.0]).item() is None
    assert Payload(DType.FLOAT32, (0,), b"").item() is None
