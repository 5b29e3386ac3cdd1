"""Quantized ops at their edges: saturation, ties, blocks, sums that wrap, scales of every kind."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import InputError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.passes import run

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan


def _f(values: Any) -> Array:
    return np.array(values, np.float32)


def _model(op_type: str, inputs: list[Any], opset: int, shape: Any, fixed: bool, **attributes: Any) -> bytes:
    """One node; its first input is the graph's, the others too unless they are fixed."""
    inputs = [None if one is None else np.asarray(one) for one in inputs]
    names = ["" if one is None else f"i{at}" for at, one in enumerate(inputs)]
    node = helper.make_node(op_type, names, ["y"], name="n", **attributes)
    ports, constants = [], []
    for at, (name, one) in enumerate(zip(names, inputs, strict=True)):
        if one is None:
            continue
        if at and fixed:
            constants.append(numpy_helper.from_array(one, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(one.dtype)
            ports.append(helper.make_tensor_value_info(name, kind, shape if at == 0 and shape else one.shape))
    graph = helper.make_graph([node], "g", ports, [helper.make_empty_tensor_value_info("y")], constants)
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return bytes(model.SerializeToString())


def _answer(op_type: str, *inputs: Any, opset: int = 25, shape: Any = None, **attributes: Any) -> Array:
    """What the graph gives with all inputs passed; the same with constants, and optimized."""
    found: list[Array] = []
    for fixed in (False, True):
        graph = load(_model(op_type, list(inputs), opset, shape, fixed, **attributes))
        given = {f"i{at}": one for at, one in enumerate(inputs) if one is not None}
        feed = {name: given[name] for name in graph.input_names}
        found += [reference.run(form, feed)["y"] for form in (graph, run(graph, 2)[0])]
    for other in found[1:]:
        np.testing.assert_array_equal(other.astype(np.float64), found[0].astype(np.float64))
    return found[0]


QUANTIZED: dict[str, tuple[list[float], Any, list[int]]] = {
    "ties go to even, before the zero point is added": ([0.5, 1.5, 2.5, -0.5, -1.5], np.uint8(101), [
        101, 103, 103, 101, 99]),
    "what is beyond the range saturates, however far": ([1e30, -1e30, INF, -INF, 200, -200], np.int8(5),
                                                        [127, -128, 127, -128, 127, -128]),
    "NaN counts as 0": ([NAN], np.uint8(7), [7]),
    "16 bits with the greatest zero point": ([-70000, -65535, 0, 1], np.uint16(65535), [0, 0, 65535, 65535]),
    "signed 16 bits": ([-70000, 32768, 1.5], np.int16(-3), [-32768, 32765, -1]),
    "four bits": ([-100, -8.5, 7.5, 3.5], ml_dtypes.int4(1), [-8, -7, 7, 5]),
    "two bits without a sign": ([-1, 0.5, 1.5, 9], ml_dtypes.uint2(1), [0, 1, 3, 3]),
}  # fmt: skip


@pytest.mark.parametrize("fact", QUANTIZED)
def test_quantize_linear(fact: str) -> None:
    """saturate(round(x / scale) + zero point), for scale 1."""
    x, zero, want = QUANTIZED[fact]
    got = _answer("QuantizeLinear", _f(x), _f(1), np.asarray(zero))
    assert got.dtype == zero.dtype
    assert got.astype(np.int64).tolist() == want


def test_scales_of_an_axis_and_of_blocks() -> None:
    """One scale a column, counted from the end or not; one a block of rows, the last of which is shorter."""
    x = np.arange(-15, 15, dtype=np.float32).reshape(5, 6)
    columns, zeros = _f([1, 2, 0.5, 4, 1, 3]), np.arange(6, dtype=np.int8)
    want = np.clip(np.rint(x / columns) + zeros, -128, 127).astype(np.int8)
    for axis in (1, -1):
        got = _answer("QuantizeLinear", x, columns, zeros, opset=13, shape=("N", 6), axis=axis)
        np.testing.assert_array_equal(got, want)
    scales = np.random.default_rng(0).uniform(0.5, 2, (3, 6)).astype(np.float32)
    spread = np.repeat(scales, 2, axis=0)[:5]
    got = _answer("QuantizeLinear", x, scales, None, axis=0, block_size=2, output_dtype=TensorProto.INT8)
    np.testing.assert_array_equal(got, np.clip(np.rint(x / spread), -128, 127).astype(np.int8))
    back = _answer("DequantizeLinear", got, scales, None, axis=0, block_size=2)
    np.testing.assert_array_equal(back, got.astype(np.float32) * spread)


def test_blocks_of_another_number_are_refused() -> None:
    """Two scales for three blocks of two rows are a fault of the model, or of the shapes of a call."""
    x, scales = np.zeros((5, 6), np.float32), np.ones((2, 6), np.float32)
    with pytest.raises(ModelError, match="'n'"):
        _answer("QuantizeLinear", x, scales, None, axis=0, block_size=2)
    with pytest.raises(InputError, match="needs"):
        _answer("QuantizeLinear", x, scales, None, shape=("N", 6), axis=0, block_size=2)


def test_quantizing_to_narrow_floats() -> None:
    """The quotient is rounded to float8 with or without saturation; float4 saturates in any case."""
    x, zero = _f([1, 1000, -3e5, 0.07]), np.float32(0)
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        with np.errstate(all="ignore"):
            want = (x / np.float32(2)).astype(dtype)
        got = _answer("QuantizeLinear", x, _f(2), np.asarray(zero.astype(dtype)), saturate=0)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    got = _answer("QuantizeLinear", x, _f(2), np.asarray(zero.astype(ml_dtypes.float8_e4m3fn)))
    assert got.astype(np.float32).tolist() == [0.5, 448, -448, 0.03515625]
    got = _answer("QuantizeLinear", x, _f(2), None, output_dtype=TensorProto.FLOAT4E2M1)
    assert got.astype(np.float32).tolist() == [0.5, 6, -6, 0]


def test_the_precision_of_the_quotient() -> None:
    """A float16 scale rounds the quotient to float16 before it is rounded to integers; `precision` overrules it."""
    x, scale = _f([2049.9]), np.float16(1)
    assert _answer("QuantizeLinear", x, scale, np.int16(0)).tolist() == [2050]
    odd = _f([4097.6])
    assert _answer("QuantizeLinear", odd, np.asarray(scale), np.int16(0)).tolist() == [4096]
    exact = _answer("QuantizeLinear", odd, np.asarray(scale), np.int16(0), precision=TensorProto.FLOAT)
    assert exact.tolist() == [4098]


def test_scales_that_are_powers_of_two() -> None:
    """A float8_e8m0 scale is its number; what is dequantized by it must say its type."""
    scale = _f([0.25]).astype(ml_dtypes.float8_e8m0fnu)
    x = np.array([-8, 3, 7]).astype(ml_dtypes.int4)
    got = _answer("DequantizeLinear", x, scale, None, output_dtype=TensorProto.FLOAT16)
    assert (got.dtype, got.tolist()) == (np.float16, [-2, 0.75, 1.75])
    with pytest.raises(ModelError, match="must say its output_dtype"):
        _answer("DequantizeLinear", x, scale, None)


def test_dequantize_linear_of_wide_integers_and_floats() -> None:
    """Differences from the zero point do not wrap; narrow floats and bfloat16 scales are their numbers."""
    x = np.array([0, 255], np.uint8)
    assert _answer("DequantizeLinear", x, _f(0.5), np.uint8(200)).tolist() == [-100, 27.5]
    eight = _f([1.5, -448]).astype(ml_dtypes.float8_e4m3fn)
    scale = np.asarray(ml_dtypes.bfloat16(0.1))
    got = _answer("DequantizeLinear", eight, scale, None)
    want = (eight.astype(np.float32) * scale.astype(np.float32)).astype(ml_dtypes.bfloat16)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_scales_of_an_axis_came_with_opset_13() -> None:
    """Before that a vector of scales is a fault of the model."""
    with pytest.raises(ModelError, match="before opset 13"):
        _answer("QuantizeLinear", _f([[1, 2]]), _f([1, 2]), np.zeros(2, np.uint8), opset=10)


def test_an_output_type_beside_another_zero_point_is_refused() -> None:
    """`output_dtype` and the zero point must agree."""
    with pytest.raises(ModelError, match="output_dtype is int8, its zero point uint8"):
        _answer("QuantizeLinear", _f([1]), _f(1), np.uint8(0), output_dtype=TensorProto.INT8)


def test_integer_products_are_exact_and_wrap_at_32_bits() -> None:
    """40,000 products of 255 by 255 come back from below 32 bits; zero points of rows and columns go first."""
    a, b = np.full((2, 40_000), 255, np.uint8), np.full((40_000, 3), 255, np.uint8)
    with np.errstate(all="ignore"):
        want = np.int64(255 * 255 * 40_000 - (1 << 32))
    assert _answer("MatMulInteger", a, b).tolist() == [[want] * 3] * 2
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    w = np.arange(-10, 10, dtype=np.int8).reshape(4, 5)
    columns = np.array([1, -2, 3, 4, 0], np.int8)
    got = _answer("MatMulInteger", x, w, np.uint8(12), columns)
    np.testing.assert_array_equal(got, (x.astype(np.int32) - 12) @ (w.astype(np.int32) - columns))
    rows = np.array([5, 6, 7], np.uint8)
    got = _answer("MatMulInteger", x[0], w[:, :2], rows[:3], None)
    np.testing.assert_array_equal(got, (x[0].astype(np.int32) - rows[:, None]) @ w[:, :2].astype(np.int32))


def test_borders_of_integer_convolutions_hold_the_zero_point() -> None:
    """A padded ConvInteger over a picture that is all zero point is zero; weights have a zero point a channel."""
    x, w = np.full((1, 2, 5, 5), 9, np.uint8), np.random.default_rng(1).integers(0, 255, (3, 2, 3, 3)).astype(np.uint8)
    zeros = np.array([1, 2, 3], np.uint8)
    got = _answer("ConvInteger", x, w, np.uint8(9), zeros, opset=10, pads=[1, 1, 1, 1], shape=("N", 2, "H", 5))
    assert (got.dtype, got.shape, np.abs(got).max()) == (np.int32, (1, 3, 5, 5), 0)
    x[0, 0, 2, 2] = 10
    got = _answer("ConvInteger", x, w, np.uint8(9), zeros, opset=10, pads=[1, 1, 1, 1])
    want = (w[:, 0, ::-1, ::-1].astype(np.int32) - zeros[:, None, None])[:, :, :]
    np.testing.assert_array_equal(got[0, :, 1:4, 1:4], want)


def test_quantized_products_round_once() -> None:
    """QLinearMatMul and QLinearConv are sums in int32, one factor, one rounding, then the zero point."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 255, (4, 7)).astype(np.uint8), rng.integers(-128, 127, (7, 3)).astype(np.int8)
    scales = _f([0.01, 0.02, 0.03])
    total = (a.astype(np.int32) - 128) @ (b.astype(np.int32) - 1)
    want = np.clip(np.rint(total.astype(np.float32) * (_f(0.05) * scales / _f(0.1))) + 3, -128, 127)
    got = _answer(
        "QLinearMatMul", a, _f(0.05), np.uint8(128), b, scales, np.array([1, 1, 1], np.int8), _f(0.1), np.int8(3)
    )
    assert got.dtype == np.int8
    np.testing.assert_array_equal(got, want)
    x, w = a.reshape(1, 4, 7), rng.integers(-128, 127, (2, 4, 1)).astype(np.int8)
    bias, zero, channels = np.array([100, -5000], np.int32), np.int8(0), _f([0.01, 0.02])
    got = _answer("QLinearConv", x, _f(0.05), np.uint8(128), w, channels, zero, _f(0.1), np.uint8(100), bias, opset=10)
    total = np.einsum("ncl,oc->nol", x.astype(np.int32) - 128, w[:, :, 0].astype(np.int32)) + bias[:, None]
    want = np.clip(np.rint(total.astype(np.float32) * (_f(0.05) * channels / _f(0.1))[:, None]) + 100, 0, 255)
    np.testing.assert_array_equal(got, want)


def test_products_of_narrow_floats_are_refused_by_name() -> None:
    """No kernel multiplies float8: the type is named."""
    x, one = np.zeros((2, 2), np.float32).astype(ml_dtypes.float8_e4m3fn), _f(1)
    zero = x[0, 0].reshape(())
    with pytest.raises(UnsupportedOpError, match=r"'n'.*elements of type float8_e4m3fn"):
        _answer("QLinearMatMul", x, one, zero, x, one, zero, one, zero)


def test_ties_are_decided_by_the_division() -> None:
    """Numbers halfway between two levels of a constant scale go where the quotient says, not a rounded reciprocal."""
    scale = np.float32(0.7)
    x = ((np.arange(-120, 120) + np.float32(0.5)) * scale).astype(np.float32)
    want = np.rint(x / scale).astype(np.int8)
    assert (np.rint(x * (np.float32(1) / scale)) != want).any()
    np.testing.assert_array_equal(_answer("QuantizeLinear", x, scale, np.int8(0)), want)
