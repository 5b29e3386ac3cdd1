"""Numbers of primitives whose meaning is not NumPy's own."""

from typing import Any

import numpy as np
import pytest

from cuvil_core import reference
from cuvil_core.ir import Dim, DType, Payload, TensorType
from cuvil_core.ops import new_builder

NAN, INF = float("nan"), float("inf")
Array = np.ndarray[Any, Any]


def _apply(name: str, *operands: Array, **attributes: Any) -> Array:
    builder = new_builder()
    types = [TensorType.of(DType(array.dtype.name), list(array.shape)) for array in operands]
    values = [builder.input(str(at), type) for at, type in enumerate(types)]
    graph = builder.finish([builder.emit(name, values, attributes)], ["y"])
    return reference.run(graph, {str(at): array for at, array in enumerate(operands)})["y"]


def _f(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def _i(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


CASES: dict[str, tuple[Array, Array]] = {
    "integer division truncates towards zero, and gives 0 by zero": (
        _apply("div", _i(7, -7, 7, -7, 5), _i(2, 2, -2, -2, 0)),
        _i(3, -3, -3, 3, 0),
    ),
    "max propagates NaN": (_apply("max", _f(NAN, 1), _f(0, NAN)), _f(NAN, NAN)),
    "min propagates NaN": (_apply("min", _f(NAN, 1), _f(0, NAN)), _f(NAN, NAN)),
    "round is half to even": (_apply("round", _f(0.5, 1.5, -0.5, 2.5)), _f(0, 2, -0.0, 2)),
    "sigmoid reaches its ends": (_apply("sigmoid", _f(-INF, 0, INF)), _f(0, 0.5, 1)),
    "mod floor takes the divisor's sign": (_apply("mod", _i(-7, 7), _i(3, -3), kind="floor"), _i(2, -2)),
    "mod trunc takes the dividend's sign": (_apply("mod", _i(-7, 7), _i(3, -3), kind="trunc"), _i(-1, 1)),
    "cast to integers truncates": (_apply("cast", _f(-1.7, 1.7), dtype=DType.INT32), _i(-1, 1)),
    "cast to integers keeps within their ends": (
        _apply("cast", _f(NAN, INF, -INF, 3e9, 2147483520), dtype=DType.INT32),
        _i(0, 2**31 - 1, -(2**31), 2**31 - 1, 2147483520),
    ),
    "cast to unsigned integers keeps within their ends": (
        _apply("cast", _f(-1, 1e20, 7.9), dtype=DType.UINT64),
        np.array([0, 2**64 - 1, 7], np.uint64),
    ),
    "pow of a negative integer exponent is the truncated quotient": (
        _apply("pow", *(np.array(n, np.int64) for n in ([3, -1, -1, 1, 0, 2], [-(2**62), -3, -(2**63), -5, -1, -1]))),
        np.array([0, -1, 1, 1, 0, 0], np.int64),
    ),
    "cast to bool is unequal to zero": (_apply("cast", _f(0, -2), dtype=DType.BOOL), np.array([False, True])),
    "a shift by the width or more gives 0": (
        _apply("shift_left", *(np.array(n, np.uint8) for n in ([129, 255, 255, 255], [1, 7, 8, 255]))),
        np.array([2, 128, 0, 0], np.uint8),
    ),
    "a right shift by the width or more gives 0": (
        _apply("shift_right", *(np.array(n, np.uint64) for n in ([2**64 - 1] * 3, [63, 64, 2**63]))),
        np.array([1, 0, 0], np.uint64),
    ),
    "bitcast keeps the bits": (
        _apply("bitcast", _f(1, -0.0, INF), dtype=DType.UINT32),
        np.array([0x3F800000, 0x80000000, 0x7F800000], np.uint32),
    ),
    "bit_not turns every bit": (_apply("bit_not", _i(0, -1, 5)), _i(-1, 0, -6)),
    "inverse functions give NaN outside of their domain": (
        np.array([_apply(name, _f(x))[0] for name, x in (("asin", 1.5), ("acos", -2), ("acosh", 0.5), ("atanh", 2))]),
        _f(NAN, NAN, NAN, NAN),
    ),
    "the ends of the inverse hyperbolic tangent are infinite": (_apply("atanh", _f(-1, 1)), _f(-INF, INF)),
    "gather clamps its indices": (_apply("gather", _f(1, 2, 3), _i(-5, 1, 9), axis=0), _f(1, 2, 3)),
    "arg_reduce can prefer the last": (
        _apply("arg_reduce", _f(1, 3, 3, 0), kind="max", axis=0, select_last=True),
        np.array(2, np.int64),
    ),
    "an empty max is the least number": (
        _apply("reduce", np.zeros((2, 0), np.int32), kind="max", axes=(1,)),
        np.full(2, np.iinfo(np.int32).min, np.int32),
    ),
    "running sums round at each step": (
        _apply("prefix_reduce", np.array([2048, 1, 1], np.float16), kind="sum", axis=0),
        np.array([2048, 2048, 2048], np.float16),
    ),
    "running products of integers wrap": (
        _apply("prefix_reduce", np.array([[100, 3]], np.int8), kind="prod", axis=1),
        np.array([[100, 44]], np.int8),
    ),
    "the last of two rows at one index stays": (
        _apply("scatter", _f(0, 0), np.array([1, 1]), _f(5, 7), kind="set"),
        _f(0, 7),
    ),
    "rows at one index are joined in order": (
        _apply("scatter", _f(2, 3), np.array([0, 0]), _f(5, 7), kind="prod"),
        _f(70, 3),
    ),
    "a row at an index outside is left out": (
        _apply("scatter", _f(0, 0), np.array([-1, 2, 0]), _f(5, 7, 9), kind="sum"),
        _f(9, 0),
    ),
    "slice steps backwards": (
        _apply("slice", _f(1, 2, 3), starts=(Dim.of(2),), sizes=(Dim.of(2),), steps=(-2,)),
        _f(3, 1),
    ),
}


@pytest.mark.parametrize("fact", CASES)
def test_meaning(fact: str) -> None:
    """The fact holds to the bit."""
    got, want = CASES[fact]
    np.testing.assert_array_equal(got, want)


def test_base_dilation_is_a_transposed_convolution() -> None:
    """Zeros between the elements and flipped weights scatter each element over its window."""
    x = np.array([[[1.0, 2.0]]], np.float32)
    w = np.array([[[3.0, 5.0]]], np.float32)
    got = _apply("conv", x, w[:, :, ::-1], strides=(1,), pads=(1, 1), dilations=(1,), base_dilations=(2,), groups=1)
    np.testing.assert_array_equal(got, [[[3, 5, 6, 10]]])


def test_convolution_equals_its_sum() -> None:
    """A grouped, strided, dilated, padded convolution equals the sum written out."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 4, 7, 6)), rng.standard_normal((6, 2, 3, 2))
    got = _apply("conv", x, w, strides=(2, 1), pads=(1, 0, 2, 1), dilations=(2, 1), base_dilations=(1, 1), groups=2)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)))
    want = np.zeros_like(got)
    for n, o, p, q in np.ndindex(*got.shape):
        first = (o // 3) * 2
        window = padded[n, first : first + 2, 2 * p : 2 * p + 5 : 2, q : q + 2]
        want[n, o, p, q] = (window * w[o]).sum()
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_dot_orders_batch_then_free_axes() -> None:
    """The result's axes are batch, free of a, free of b."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 2, 5)), rng.standard_normal((4, 5, 2))
    got = _apply("dot", a, b, batch_a=(1,), batch_b=(2,), contract_a=(2,), contract_b=(1,))
    np.testing.assert_allclose(got, np.einsum("ibk,jkb->bij", a, b), rtol=1e-12)


def test_pad_of_windows_is_the_identity() -> None:
    """Padding never wins a maximum."""
    x = np.full((1, 1, 2), -5.0, np.float32)
    got = _apply("window_reduce", x, kind="max", window=(2,), strides=(1,), pads=(1, 1), dilations=(1,))
    np.testing.assert_array_equal(got, [[[-5, -5, -5]]])


def test_pad_writes_its_value() -> None:
    """The border holds the value, symbolic widths included."""
    got = _apply("pad", _f(1), low=(Dim.of(1),), high=(Dim.of(2),), value=Payload.scalar(DType.FLOAT32, 9.0))
    np.testing.assert_array_equal(got, [9, 1, 9, 9])
