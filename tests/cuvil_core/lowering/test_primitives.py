"""Each primitive of the op table, lowered, against its reference, for both instruction sets and two sets of extents."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuvil_core import passes
from cuvil_core.ir import DType, Graph, Payload
from cuvil_core.lowering.compose import EXPRESSIONS
from cuvil_core.lowering.lower import STRATEGIES
from cuvil_core.ops import OPS
from cuvil_core.scheduling import Strategy
from cuvil_core.scheduling.units import ROOTS, SERIAL
from graph_checks import Maker, check

pytestmark = pytest.mark.timeout(600)
"""C compilers take their time on a busy machine."""
BINDINGS = ({"N": 1, "H": 7}, {"N": 3, "H": 18})


def test_every_primitive_has_a_lowering() -> None:
    """No op of the table lacks an entry: expression, root, chain, constant, call, region or control flow."""
    apart = {"constant", "region", "if", "loop", "sort_order", "positions", "suppress"}
    assert set(OPS) == set(EXPRESSIONS) | ROOTS | set(SERIAL) | apart


def test_every_strategy_has_a_builder() -> None:
    """Whatever scheduling can choose, lowering can build."""
    assert set(STRATEGIES) == set(Strategy)


def test_unary_floats(tmp_path: Path) -> None:
    """Each unary float op agrees with NumPy, NaN and infinity included."""
    make = Maker()
    x = make.input("x", "N", 5, "H")
    positive = make.op("add", make.op("abs", x), make.filled(0.25, x))
    odd = make.op("div", x, make.op("floor", x))
    results = [make.op(name, x) for name in ("neg", "abs", "sign", "exp", "tanh", "sigmoid", "erf", "floor", "ceil")]
    results += [make.op(name, x) for name in ("round", "sin", "cos")]
    results += [make.op(name, positive) for name in ("log", "sqrt", "reciprocal")]
    results += [make.op("isnan", odd), make.op("isinf", odd), make.op("not", make.op("isinf", odd))]
    check(make.done(*results), BINDINGS, tmp_path)


def test_angles_and_hyperbolic_functions(tmp_path: Path) -> None:
    """Tangents and inverse functions agree with NumPy, inside of their domain and outside."""
    make = Maker()
    x = make.input("x", "N", 5, "H")
    names = ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
    check(make.done(*(make.op(name, x) for name in names)), BINDINGS, tmp_path, rtol=4e-6)


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64], ids=str)
def test_bits(dtype: DType, tmp_path: Path) -> None:
    """Logic, shifts by counts below and beyond the width, and bits read as another type."""
    make = Maker()
    x, y = make.input("x", "N", "H", dtype=dtype), make.input("y", "N", "H", dtype=dtype)
    counts = make.op("mul", y, make.filled(dtype.itemsize * 2, y))
    spread = make.op("mul", x, make.filled((1 << 8 * dtype.itemsize) // 3, x))
    results = [make.op(name, spread, y) for name in ("bit_and", "bit_or", "bit_xor")]
    results += [make.op(name, spread, counts) for name in ("shift_left", "shift_right")]
    results.append(make.op("bit_not", x))
    results += [make.op("bitcast", spread, dtype=to) for to in DType if _may_be_reread(dtype, to)]
    check(make.done(*results), BINDINGS, tmp_path)


def _may_be_reread(source: DType, target: DType) -> bool:
    return target.itemsize == source.itemsize and target not in (DType.BOOL, DType.BFLOAT16)


def test_binary_floats(tmp_path: Path) -> None:
    """Each binary op on floats agrees with NumPy."""
    make = Maker()
    x, y = make.input("x", "N", 5, "H"), make.input("y", "N", 5, "H")
    results = [make.op(name, x, y) for name in ("add", "sub", "mul", "div", "max", "min")]
    results.append(make.op("pow", make.op("abs", x), y))
    results += [make.op("mod", x, y, kind=kind) for kind in ("floor", "trunc")]
    tests = [make.op(name, x, y) for name in ("eq", "ne", "lt", "le", "gt", "ge")]
    results += tests
    results += [make.op(name, tests[2], tests[4]) for name in ("and", "or", "xor")]
    results.append(make.op("select", tests[2], x, y))
    check(make.done(*results), BINDINGS, tmp_path)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64, DType.UINT8], ids=str)
def test_integers(dtype: DType, tmp_path: Path) -> None:
    """Integer arithmetic wraps and truncates as the reference does."""
    make = Maker()
    x, y = make.input("x", "N", "H", dtype=dtype), make.input("y", "N", "H", dtype=dtype)
    results = [make.op(name, x, y) for name in ("add", "sub", "mul", "div", "max", "min", "lt", "eq")]
    results += [make.op("mod", x, y, kind=kind) for kind in ("floor", "trunc")]
    results.append(make.op("reduce", x, kind="sum", axes=(1,)))
    check(make.done(*results), BINDINGS, tmp_path)


def test_casts(tmp_path: Path) -> None:
    """Values keep their meaning across dtypes."""
    make = Maker()
    x, i = make.input("x", "N", "H"), make.input("i", "N", "H", dtype=DType.INT64)
    wide = (DType.INT32, DType.INT64, DType.FLOAT64, DType.BOOL, DType.FLOAT32)
    results = [make.op("cast", x, dtype=dtype) for dtype in (*wide, DType.FLOAT16)]
    results += [make.op("cast", i, dtype=dtype) for dtype in (*wide, DType.INT8)]
    check(make.done(*results), BINDINGS, tmp_path)


def test_leaves(tmp_path: Path) -> None:
    """Constants, counted axes and symbolic extents come out as data."""
    make = Maker()
    x = make.input("x", "N", "H")
    n, h = x.shape
    kinds = ((2, DType.INT64), (0, DType.FLOAT32))
    results = [make.op("iota", shape=(n, 3, h), axis=axis, dtype=dtype) for axis, dtype in kinds]
    results += [make.op("dim_vector", dims=(n, h * 2, 7)), make.constant(2, 3), make.numbers(True, DType.BOOL)]
    check(make.done(*results), BINDINGS, tmp_path)


def test_movement(tmp_path: Path) -> None:
    """Each movement op alone, made into bytes."""
    make = Maker()
    x = make.input("x", "N", 6, "H")
    n, _, h = x.shape
    row = make.op("slice", x, starts=(0, 1, 0), sizes=(n, 1, h), steps=(1, 1, 1))
    results = [
        make.op("broadcast_to", row, shape=(2, n, 4, h)),
        make.op("reshape", x, shape=(n, 2, h * 3)),
        make.op("reshape", x, shape=(n * h, 6)),
        make.op("transpose", x, perm=(2, 0, 1)),
        make.op("slice", x, starts=(0, 5, h - 1), sizes=(n, 3, h), steps=(1, -2, -1)),
        make.op("pad", x, low=(0, 1, 2), high=(1, 0, 3), value=Payload.scalar(DType.FLOAT32, 0.5)),
        make.op("concat", x, row, x, axis=1),
        make.op("concat", x, x, axis=2),
        make.op("gather", x, make.numbers([[2, 0], [5, 99]], DType.INT64), axis=1),
    ]
    check(make.done(*results), BINDINGS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.UINT8], ids=str)
def test_running_totals(dtype: DType, tmp_path: Path) -> None:
    """Along the first, a middle and the last axis, bit for bit: the order of the steps is part of the meaning."""
    make = Maker()
    x = make.input("x", "N", 5, "H", dtype=dtype)
    kinds = ("sum", "prod", "max")
    results = [make.op("prefix_reduce", x, kind=kind, axis=axis) for kind in kinds for axis in range(3)]
    results.append(make.op("prefix_reduce", make.op("abs", results[0]), kind="min", axis=0))
    check(make.done(*results), BINDINGS, tmp_path, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16, DType.INT64, DType.UINT8, DType.BOOL], ids=str)
def test_scattered_rows(dtype: DType, tmp_path: Path) -> None:
    """Rows joined in at indices that come with the inputs: several at one place in order, those outside nowhere."""
    make = Maker()
    data, at = make.input("data", "N", 3, "H", dtype=dtype), make.input("at", "H", dtype=DType.INT64)
    rows, few = make.input("rows", "H", 3, "H", dtype=dtype), make.input("few", "H", dtype=dtype)
    kinds = ("set",) if dtype is DType.BOOL else ("set", "sum", "prod", "max", "min")
    results = [make.op("scatter", data, at, rows, kind=kind) for kind in kinds]
    flat = make.op("reshape", data, shape=(data.shape[0] * 3 * data.shape[2],))
    results += [make.op("scatter", flat, at, few, kind=kind) for kind in kinds[:2]]
    check(make.done(*results), BINDINGS, tmp_path, rtol=0)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_reductions(kind: str, tmp_path: Path) -> None:
    """Whole axes, one or several, inner or outer or all."""
    make = Maker()
    x = make.input("x", "N", 5, "H", 4)
    results = [make.op("reduce", x, kind=kind, axes=axes) for axes in ((3,), (1,), (0, 2), (1, 2, 3), (0, 1, 2, 3), ())]
    check(make.done(*results), BINDINGS, tmp_path, rtol=1e-4)


def test_positions_of_extremes(tmp_path: Path) -> None:
    """The first and the last position of the greatest and the least."""
    make = Maker()
    x = make.op("round", make.input("x", "N", 5, "H"))
    results = [
        make.op("arg_reduce", x, kind=kind, axis=axis, select_last=last)
        for kind in ("max", "min")
        for axis in (1, 2)
        for last in (False, True)
    ]
    check(make.done(*results), BINDINGS, tmp_path)


def test_windows(tmp_path: Path) -> None:
    """Pooling with padding, steps and dilation."""
    make = Maker()
    x = make.input("x", "N", 20, "H", 9)
    results = [make.pool(x, "max", 3, 2, 1), make.pool(x, "sum", 2, 2), make.pool(x, "sum", 3, 1, 1)]
    results.append(
        make.op("window_reduce", x, kind="max", window=(3, 2), strides=(1, 2), pads=(2, 0, 2, 1), dilations=(2, 1))
    )
    check(make.done(*results), BINDINGS, tmp_path)


def test_dots(tmp_path: Path) -> None:
    """Products over several layouts of rows, columns, batch and depth."""
    make = Maker()
    x, y = make.input("x", "N", "H", 10), make.input("y", "N", 10, "H")
    results = [
        make.op("dot", x, make.constant(10, 33), batch_a=(), batch_b=(), contract_a=(2,), contract_b=(0,)),
        make.op("dot", x, make.constant(40, 10), batch_a=(), batch_b=(), contract_a=(2,), contract_b=(1,)),
        make.matmul(x, y),
        make.op("dot", y, x, batch_a=(0,), batch_b=(0,), contract_a=(1,), contract_b=(2,)),
        make.op("dot", x, make.constant(10, 2, 3), batch_a=(), batch_b=(), contract_a=(2,), contract_b=(0,)),
        make.op("dot", x, make.constant(10), batch_a=(), batch_b=(), contract_a=(2,), contract_b=(0,)),
        make.op("dot", x, y, batch_a=(0,), batch_b=(0,), contract_a=(1, 2), contract_b=(2, 1)),
    ]
    check(make.done(*results), BINDINGS, tmp_path)


CONVOLUTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "few input channels": (3, {"outputs": 24, "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "whole blocks": (32, {"outputs": 32, "pads": (1, 1, 1, 1)}),
    "part-filled blocks": (20, {"outputs": 40, "pads": (1, 0, 0, 1)}),
    "pointwise": (24, {"outputs": 48, "window": (1, 1)}),
    "pointwise with steps": (24, {"outputs": 8, "window": (1, 1), "strides": (2, 1)}),
    "depthwise": (20, {"outputs": 20, "groups": 20, "window": (5, 3), "pads": (2, 1, 2, 1)}),
    "groups of whole blocks": (32, {"outputs": 64, "groups": 2, "pads": (1, 1, 1, 1)}),
    "odd groups": (12, {"outputs": 9, "groups": 3, "pads": (1, 1, 1, 1)}),
    "dilated window": (16, {"outputs": 16, "dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    "stretched input": (16, {"outputs": 8, "window": (2, 2), "base": (2, 2), "pads": (1, 1, 1, 1)}),
    "stretched odd groups": (6, {"outputs": 6, "window": (4, 4), "base": (2, 2), "pads": (2, 2, 2, 2), "groups": 6}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str, tmp_path: Path) -> None:
    """Each kind of convolution, from a row-major input and behind another convolution."""
    channels, attributes = CONVOLUTIONS[case]
    make = Maker()
    x = make.input("x", "N", channels, "H", 9)
    before = make.conv(make.relu(x), channels, (1, 1))
    bias = make.constant(attributes["outputs"])
    results = []
    for source in (x, before):
        y = make.conv(source, **attributes)
        results.append(make.op("sigmoid", make.op("add", y, make.per_channel(bias, y))))
    check(make.done(*results), BINDINGS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["few input channels", "part-filled blocks", "pointwise", "depthwise", "odd groups"])
def test_convolutions_of_integers(case: str, tmp_path: Path) -> None:
    """Sums of int32 products are exact and wrap, whatever the layout; bits that turn behind them spill into no lane."""
    channels, given = CONVOLUTIONS[case]
    make = Maker()
    x = make.input("x", "N", channels, "H", 9, dtype=DType.INT32)
    window = given.get("window", (3, 3))
    shape = (given["outputs"], channels // given.get("groups", 1), *window)
    weights = make.random.integers(-(1 << 31), 1 << 31, shape)
    attributes = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "base_dilations": (1, 1), "groups": 1}
    attributes |= {key: value for key, value in given.items() if key in attributes}
    y = make.op("conv", x, make.numbers(weights, DType.INT32), **attributes)
    plain = make.op("bitcast", make.op("bit_not", y), dtype=DType.UINT32)
    shifted = make.op("shift_right", plain, make.filled(3, plain))
    check(make.done(make.op("max", y, make.filled(-5, y)), shifted), BINDINGS, tmp_path)


def test_convolutions_of_other_ranks(tmp_path: Path) -> None:
    """One and three spatial axes."""
    make = Maker()
    x, v = make.input("x", "N", 17, "H"), make.input("v", "N", 4, 5, "H", 6)
    line = make.conv(make.conv(x, 33, (5,), pads=(2, 2)), 16, (3,), strides=(2,), pads=(1, 1))
    solid = make.conv(make.conv(v, 18, (3, 3, 3), pads=(1,) * 6), 16, (2, 2, 2))
    check(make.done(line, solid), BINDINGS, tmp_path)


def test_weights_that_are_computed(tmp_path: Path) -> None:
    """A convolution and a dot whose right operand is no constant are packed in each call."""
    make = Maker()
    x, w = make.input("x", "N", 18, "H", 9), make.input("w", 20, 18, 3, 3)
    attributes = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "base_dilations": (1, 1), "groups": 1}
    y = make.op("conv", x, make.op("exp", w), **attributes)
    check(make.done(y), BINDINGS, tmp_path)


def graph_of_scalars() -> Graph:
    """Rank 0 in and out."""
    make = Maker()
    x = make.input("x")
    bits = make.op("bitcast", x, dtype=DType.INT32)
    return make.done(make.op("exp", x), x, make.op("reshape", x, shape=(1, 1)), bits)


def test_scalars_and_inputs_as_outputs(tmp_path: Path) -> None:
    """Tensors without axes work, and an input may be an output."""
    check(graph_of_scalars(), ({}, {}), tmp_path)


def test_empty_tensors(tmp_path: Path) -> None:
    """Tensors without elements are computed without touching anything."""
    make = Maker()
    x = make.input("x", "N", 0, 4)
    y = make.input("y", "N", 3, 4)
    results = [
        make.op("exp", x),
        make.op("reduce", x, kind="sum", axes=(1,)),
        make.op("concat", x, y, axis=1),
        make.op("reshape", x, shape=(0, 7)),
        make.matmul(make.op("transpose", x, perm=(0, 2, 1)), x),
    ]
    check(make.done(*results), ({"N": 1}, {"N": 2}), tmp_path)


def test_kinds_of_numbers_in_reductions(tmp_path: Path) -> None:
    """Maximum and minimum of integers start at the least and the greatest of their dtype."""
    make = Maker()
    x = make.input("x", "N", "H", dtype=DType.INT32)
    far = make.op("sub", x, make.filled(2_000_000_000, x))
    check(make.done(make.op("reduce", far, kind="max", axes=(1,))), BINDINGS, tmp_path)


@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.FLOAT16], ids=str)
def test_other_floats(dtype: DType, tmp_path: Path) -> None:
    """Convolutions, dots, reductions and mathematics of wider and narrower floats."""
    make = Maker()
    x = make.input("x", "N", 20, "H", 5, dtype=dtype)
    attributes = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "base_dilations": (1, 1), "groups": 1}
    y = make.op("conv", x, make.constant(18, 20, 3, 3, dtype=dtype, scale=0.07), **attributes)
    rows = make.op("reshape", make.op("abs", y), shape=(x.shape[0] * x.shape[2], 90))
    z = make.op("dot", rows, make.constant(90, 7, dtype=dtype, scale=0.1), **_MATRIX)
    results = [y, z, make.op("reduce", z, kind="sum", axes=(1,)), make.pool(y, "max", 3, 2, 1)]
    check(make.done(*results), BINDINGS, tmp_path, rtol=2e-5 if dtype is DType.FLOAT64 else 4e-3)


_MATRIX = {"batch_a": (), "batch_b": (), "contract_a": (1,), "contract_b": (0,)}


def test_pooling_and_moving_integers_and_bools(tmp_path: Path) -> None:
    """Windows over integers, products of integers, concatenated and gathered bools."""
    make = Maker()
    x, b = make.input("x", "N", 3, "H", 6, dtype=DType.INT32), make.input("b", "N", "H", dtype=DType.BOOL)
    matrix = make.op("reshape", x, shape=(x.shape[0] * x.shape[2] * 3, 6))
    weights = make.numbers(np.arange(12).reshape(6, 2), DType.INT32)
    results = [
        make.pool(x, "max", 3, 2, 1),
        make.pool(x, "sum", 2, 1),
        make.op("dot", matrix, weights, **_MATRIX),
        make.op("concat", b, make.op("not", b), axis=1),
        make.op("gather", b, make.numbers([1, 0, 3], DType.INT32), axis=1),
    ]
    check(make.done(*results), BINDINGS, tmp_path)


def test_long_chains_of_views(tmp_path: Path) -> None:
    """A hundred transposes and slices behind each other become bytes now and then, not one deep expression."""
    make = Maker()
    value = make.input("x", "N", 7, "H")
    for _ in range(60):
        turned = make.op("transpose", value, perm=(0, 2, 1))
        value = make.op("transpose", turned, perm=(0, 2, 1))
    check(make.done(value), BINDINGS, tmp_path)


def test_wide_dots_read_no_bias_past_its_end(tmp_path: Path) -> None:
    """Columns padded to a whole panel do not read a vector beyond its buffer, and are not stored."""
    make = Maker()
    x = make.input("x", "N", "H", 10)
    y = make.op("dot", x, make.constant(10, 145), batch_a=(), batch_b=(), contract_a=(2,), contract_b=(0,))
    biased = make.op("add", y, make.op("broadcast_to", make.constant(145), shape=y.shape))
    graph, _ = passes.run(make.done(make.relu(biased)), 2)
    check(graph, BINDINGS, tmp_path)
