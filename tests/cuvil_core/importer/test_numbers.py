"""Numbers that are easy to get wrong in silence: rounding, wrapping, fractions on integers, infinities, empty axes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import InputError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph

Array = np.ndarray[Any, Any]
BIG = 2**53 + 1
"""The first integer that no double holds."""
INF, NAN = np.inf, np.nan


def _f32(values: Any) -> Array:
    return np.array(values, np.float32)


def _i64(values: Any) -> Array:
    return np.array(values, np.int64)


def _model(nodes: list[onnx.NodeProto], x: Array | None, shape: Any, opset: int, constants: dict[str, Any]) -> Graph:
    """A graph of the nodes over the input x (or none) and constants, with the output y."""
    kind = None if x is None else helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [] if x is None or kind is None else [helper.make_tensor_value_info("x", kind, shape or x.shape)]
    made = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return load(model.SerializeToString())


def _graph(
    op_type: str, x: Array | None, constants: tuple[Any, ...], shape: Any, opset: int, **attributes: Any
) -> Graph:
    """One node of x and constants, of which None is an input left out."""
    names = ["" if value is None else f"c{at}" for at, value in enumerate(constants)]
    node = helper.make_node(op_type, [*([] if x is None else ["x"]), *names], ["y"], **attributes)
    named = {name: value for name, value in zip(names, constants, strict=True) if name}
    return _model([node], x, shape, opset, named)


def _answer(op_type: str, x: Array | None, *constants: Any, opset: int = 18, **attributes: Any) -> list[Any]:
    graph = _graph(op_type, x, constants, None, opset, **attributes)
    found: list[Any] = reference.run(graph, {} if x is None else {"x": x})["y"].tolist()
    return found


def _line(extent: int) -> Array:
    return np.arange(extent, dtype=np.float32)


@pytest.mark.parametrize(
    ("extent", "scale", "size"), [(10, 0.7, 7), (20, 0.35, 7), (50, 0.7, 35), (100, 0.29, 29), (30, 0.1, 3)]
)
def test_a_scaled_extent_is_rounded_as_float32(extent: int, scale: float, size: int) -> None:
    """Extent times scale is a product of float32, in which 10 times 0.7 is 7."""
    for mode in ("nearest", "linear"):
        assert len(_answer("Resize", _line(extent), None, _f32([scale]), mode=mode)) == size


def test_places_of_a_resize_are_float32() -> None:
    """Places are quotients of float32; one that rounding moved off the middle of two elements counts as the middle."""
    assert _answer("Resize", _line(6), None, _f32([0.7]), coordinate_transformation_mode="asymmetric",
                   nearest_mode="floor")[-1] == 4  # fmt: skip
    assert _answer("Resize", _line(28), None, _f32([2.1]))[31] == 14
    sizes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "round_prefer_floor"}
    assert _answer("Resize", _line(23), None, None, _i64([14]), **sizes)[7] == 11


def test_a_resize_before_opset_11_rounds_up_where_it_shrinks() -> None:
    """The first Resize names no rounding: down for more elements, up for fewer."""
    x = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    assert _answer("Resize", x, _f32([0.6, 0.6]), opset=10) == [[1, 3]]
    assert _answer("Resize", _line(2), _f32([1.5]), opset=10) == [0, 0, 1]


def test_a_scale_that_keeps_the_extent_still_moves_elements() -> None:
    """19 elements by 1.05 are 19, but not the same ones; where nothing but such scales is given, runtimes differ."""
    x = np.stack([_line(19)] * 2)
    assert _answer("Resize", x, None, _f32([2, 1.05]))[0][18] == 17
    with pytest.raises(UnsupportedOpError, match="runtimes differ"):
        _answer("Resize", x, None, _f32([1, 1.05]))
    with pytest.raises(ModelError, match="at least 1 for Upsample"):
        _answer("Upsample", x, _f32([1, 0.5]), opset=9)


@pytest.mark.parametrize(
    ("op_type", "want"),
    [("ReduceL1", [2, 3]), ("ReduceL2", [2, 3]), ("ReduceSumSquare", [4, 9]), ("ReduceSum", [-2, 3]),
     ("ReduceLogSumExp", [-2, 3]), ("ReduceMean", [-2, 3])],
)  # fmt: skip
def test_empty_axes_leave_what_is_done_to_each_element(op_type: str, want: list[float]) -> None:
    """noop_with_empty_axes takes away the sum, not the square, root or absolute value."""
    for axes in ([], [_i64([])]):
        assert _answer(op_type, _f32([-2, 3]), *axes, noop_with_empty_axes=1) == want


def test_the_logarithm_of_a_sum_keeps_infinities() -> None:
    """-inf alone gives -inf and inf gives inf, not inf - inf."""
    x = _f32([[-INF, -INF], [INF, 1], [-INF, INF], [-INF, 3], [NAN, INF]])
    got = _answer("ReduceLogSumExp", x, _i64([1]), keepdims=0)
    np.testing.assert_array_equal(got, [-INF, INF, INF, 3, NAN])


def test_integers_beyond_doubles_stay_exact() -> None:
    """Ranges and borders of int64 do not pass through a float."""
    assert _answer("Range", None, _i64(BIG), _i64(BIG + 3), _i64(1)) == [BIG, BIG + 1, BIG + 2]
    assert _answer("Range", None, _i64(2**63 - 1), _i64(2**63 - 4), _i64(-2)) == [2**63 - 1, 2**63 - 3]
    for value in (BIG, 2**63 - 1, -(2**63)):
        assert _answer("Pad", _i64([1]), _i64([1, 0]), _i64(value)) == [value, 1]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_shrink_cuts_fractions_off_at_the_end(dtype: str) -> None:
    """Bias and threshold are floats on integers too: 3 - 0.5 is 2, and 1 is not above 1.5."""
    x = np.array([0, 1, 2, 3], dtype)
    assert _answer("Shrink", x, lambd=1.5, bias=0.5) == [0, 0, 1, 2]
    if dtype != "uint8":
        assert _answer("Shrink", -x, lambd=0.5, bias=0.5) == [0, 0, -1, -2]


@pytest.mark.parametrize(
    ("start", "end", "step", "want"),
    [(-6, -9, -1, [0]), (-6, -(2**63), -1, [0]), (-(2**62), -9, -2, [0]), (9, -9, -2, [3, 1]), (-6, 0, -1, []),
     (-1, -9, -3, [3, 0]), (-9, 9, 3, [0, 3])],
)  # fmt: skip
def test_a_slice_clamps_its_start_into_the_axis(start: int, end: int, step: int, want: list[int]) -> None:
    """Going backward a start before the first element is the first; the end alone may lie before it."""
    constants = (_i64([start]), _i64([end]), _i64([0]), _i64([step]))
    assert _answer("Slice", _line(4), *constants) == want
    symbolic = _graph("Slice", _line(4), constants, ("N",), 18)
    try:
        assert reference.run(symbolic, {"x": _line(4)})["y"].tolist() == want
    except InputError as error:
        assert "needs" in str(error)


def test_a_backward_slice_to_the_greatest_integer_is_refused() -> None:
    """ONNX clamps that end to the last element, runtimes take it for the first."""
    with pytest.raises(UnsupportedOpError, match="runtimes differ"):
        _answer("Slice", _line(4), _i64([3]), _i64([2**63 - 1]), _i64([0]), _i64([-1]))


@pytest.mark.parametrize(("op_type", "b", "want"), [("Add", 1, -128), ("Mul", 2, -2), ("Sub", -1, -128)])
def test_constants_wrap_as_data_does(op_type: str, b: int, want: int) -> None:
    """int8 127 + 1 is -128 also where both are constants of the model."""
    nodes = [helper.make_node(op_type, ["a", "b"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    constants = {"a": np.array([127], np.int8), "b": np.array([b], np.int8)}
    graph = _model(nodes, np.zeros(1, np.int8), None, 18, constants)
    assert reference.run(graph, {"x": np.zeros(1, np.int8)})["y"].tolist() == [want]


def test_the_negative_of_the_least_integer_is_itself() -> None:
    """-(-2**63) wraps while shapes are followed, as it does at run time."""
    graph = _model([helper.make_node("Neg", ["a"], ["y"])], None, None, 18, {"a": _i64([-(2**63), 1])})
    assert reference.run(graph, {})["y"].tolist() == [-(2**63), -1]


def test_a_power_keeps_the_parity_of_its_exponent() -> None:
    """Exponents of int64 that float32 does not hold, as data and as constants, with zeros, infinities and NaN."""
    x = _f32([-1, -1, -1, -0.0, -0.0, -INF, NAN, 1, -2])
    e = _i64([2**24 + 1, 3, 2**62 + 2, -1, 3, -3, 0, 2**40 + 1, -3])
    want = [-1, -1, 1, -INF, -0.0, -0.0, 1, 1, -0.125]
    np.testing.assert_array_equal(_answer("Pow", x, e), want)
    graph = _model([helper.make_node("Pow", ["c", "x"], ["y"])], e, None, 18, {"c": x})
    np.testing.assert_array_equal(reference.run(graph, {"x": e})["y"], want)


def test_an_integer_power_does_not_wrap_its_exponent() -> None:
    """2 to the 2**32 + 1 is 0 modulo 2**32, not 2."""
    assert _answer("Pow", np.array([2, -1], np.int32), _i64([2**32 + 1, 2**32 + 1])) == [0, -1]


def test_numbers_that_a_dtype_cannot_hold_are_refused() -> None:
    """A fraction on integers and exponents that change by rounding are no silent zeros."""
    ones = np.ones((2, 2), np.int32)
    with pytest.raises(UnsupportedOpError, match=r"0\.5 on int32"):
        _answer("Gemm", ones, ones, alpha=0.5)
    with pytest.raises(UnsupportedOpError, match="exponents in float64"):
        _answer("Pow", _f32([-1]), np.array([2.0**24 + 1]))


def test_a_sound_node_on_a_dtype_without_its_primitive_is_unsupported() -> None:
    """ONNX allows logarithms of integers: the model is not to be corrected, but not compiled either."""
    with pytest.raises(UnsupportedOpError, match="int32 is not defined"):
        _answer("ReduceLogSum", np.array([3, 4], np.int32))


@pytest.mark.parametrize(("op_type", "want"), [("ReduceL2", 5), ("ReduceLogSumExp", 4)])
def test_what_the_table_refuses_is_computed_by_the_schema(op_type: str, want: int) -> None:
    """Roots and exponentials of integers are taken in floats, as the body in ONNX's schema says."""
    assert _answer(op_type, np.array([3, 4], np.int32)) == [want]


def test_a_symbolic_extent_splits_where_it_divides() -> None:
    """Parts of a symbolic extent are equal by a guard; since opset 18 the last one is the smaller one."""
    nodes = [helper.make_node("Split", ["x"], ["y", "z"])]
    x = _f32([0, 1, 2, 3])
    even = _model(nodes, x, ("N",), 13, {})
    assert reference.run(even, {"x": x})["y"].tolist() == [0, 1]
    with pytest.raises(InputError, match="needs"):
        reference.run(even, {"x": x[:3]})
    nodes = [helper.make_node("Split", ["x"], ["a", "b", "c", "y"], num_outputs=4)]
    uneven = _model(nodes, x, ("N",), 18, {})
    assert [reference.run(uneven, {"x": _line(n)})["y"].tolist() for n in (6, 7)] == [[], [6]]
    channels = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    apart = _graph("DepthToSpace", channels, (), (1, "C", 1, 1), 13, blocksize=2)
    assert reference.run(apart, {"x": channels})["y"].tolist() == [[[[0, 1], [2, 3]]]]


def test_a_diagonal_may_lie_outside_of_the_matrix() -> None:
    """Trilu with a diagonal of any int64 keeps all or nothing."""
    ones = np.ones((2, 2), np.float32)
    assert _answer("Trilu", ones, _i64(2**63 - 1)) == [[0, 0], [0, 0]]
    assert _answer("Trilu", ones, _i64(-(2**63))) == [[1, 1], [1, 1]]


def test_linear_resizing_of_integers_is_refused() -> None:
    """Its weights are fractions, which a cast to the input's dtype would make 0."""
    with pytest.raises(UnsupportedOpError, match="linear resizing of uint8"):
        _answer("Resize", np.array([0, 10], np.uint8), None, _f32([2.5]), mode="linear")


def test_a_float_modulus_takes_the_sign_of_the_divisor() -> None:
    """Since opset 28 fmod may be 0 on floats: the result, a zero too, has the divisor's sign."""
    x, y = _f32([-4, 7, 0, -0.0, -3, INF, 1]), _f32([3, -4, -2, 2, INF, 2, 0])
    got = _answer("Mod", x, y, opset=28)
    want = [2, -1, -0.0, 0.0, INF, NAN, NAN]
    np.testing.assert_array_equal(got, want)
    assert np.signbit(got[:4]).tolist() == [False, True, True, False]
    with pytest.raises(ModelError, match="before opset 28"):
        _answer("Mod", x, y, opset=27)


def test_integers_to_float_powers() -> None:
    """An integer base with a float exponent is the double's power, truncated."""
    base = np.array([3, -2, 10**12, 2, 16777215], np.int64)
    assert _answer("Pow", base, _f32([6, 3, 1.5, -1, 0.5]), opset=15) == [729, -8, 10**18, 0, 4095]
