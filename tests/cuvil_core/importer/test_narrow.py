"""Narrow element types: every code, every way of rounding, packed constants, what moves them and what is refused."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands
from cuvil_core.importer.onnx.narrow import translate
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import ELEMENTS
from cuvil_core.ir import DType, Element, Payload, parse_graph, payload_table, print_graph
from cuvil_core.ops import new_builder

Array = np.ndarray[Any, Any]
CODES = {element: code for code, element in ELEMENTS.items()}
FP8 = [element for element in Element if element.value.startswith("float8_e4") or "e5m2" in element.value]
GREATEST = {
    Element.FLOAT8_E4M3FN: 448.0,
    Element.FLOAT8_E4M3FNUZ: 240.0,
    Element.FLOAT8_E5M2: 57344.0,
    Element.FLOAT8_E5M2FNUZ: 57344.0,
    Element.FLOAT4_E2M1: 6.0,
}
INTEGERS = [element for element in Element if not element.is_float]


def _dtype(element: Element) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, element.value))
    return found


def _model(node: onnx.NodeProto, inputs: dict[str, tuple[int, Any]], out: int, **constants: onnx.TensorProto) -> bytes:
    for name, proto in constants.items():
        proto.name = name
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", out, None)],
        list(constants.values()),
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)]).SerializeToString())


def _cast(x: Array, to: int, **attributes: Any) -> Array:
    node = helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return reference.run(load(_model(node, {"x": (kind, ("N",))}, to)), {"x": x})["y"]


def _wide(dtype: Any) -> Array:
    """Numbers around every edge of the formats, random ones of all sizes, what is no number."""
    rng = np.random.default_rng(7)
    edges = [464, 448, 449, 480, 240, 248, 57344, 61440, 61439, 6, 7, 5, 2.5, 0.25, 0.75, 2**-9, 2**-10, 1.5 * 2**-10]
    edges += [2.0**-16, 2.0**-17, 2.0**-18, 1.0001 * 2.0**-17, 1e-7, 0.0, np.inf, np.nan]
    with np.errstate(all="ignore"):
        spread = np.ldexp(rng.uniform(1, 2, 20_000), rng.integers(-20, 19, 20_000))
        values = np.concatenate([edges, spread]).astype(dtype)
    return np.concatenate([values, -values])


@pytest.mark.parametrize("element", Element, ids=str)
def test_every_code_means_what_it_says(element: Element) -> None:
    """All codes of a type become the float32 numbers that ml_dtypes knows."""
    codes = np.arange(1 << element.bits, dtype=np.uint8).view(_dtype(element))
    np.testing.assert_array_equal(_cast(codes, TensorProto.FLOAT), codes.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("element", [*FP8, Element.FLOAT4_E2M1], ids=str)
def test_rounding_to_narrow_floats(element: Element, dtype: Any) -> None:
    """To nearest even, once, also from float64; overflow as the table of ONNX's Cast says, saturated or not."""
    x, to = _wide(dtype), CODES[element]
    x = x[~np.isnan(x.astype(np.float64))] if element is Element.FLOAT4_E2M1 else x
    with np.errstate(all="ignore"):
        plain = x.astype(_dtype(element))
        limit = GREATEST[element]
        clipped = np.clip(x.astype(np.float64), -limit, limit).astype(_dtype(element))
    for saturate, want in ((0, plain), (1, clipped)):
        got = _cast(x, to, saturate=saturate)
        number = ~np.isnan(want.astype(np.float32))
        np.testing.assert_array_equal(got.view(np.uint8)[number], want.view(np.uint8)[number])
        assert np.isnan(got.astype(np.float32)[~number]).all()


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
def test_rounding_to_powers_of_two(rounding: str) -> None:
    """float8_e8m0fnu takes the power above, below or nearest; saturated, nothing but NaN is NaN."""
    powers = np.ldexp(np.float64(1), np.arange(-127, 128))
    x = (
        np.random.default_rng(3)
        .permutation(
            np.ldexp(np.random.default_rng(4).uniform(1, 2, 4000), np.random.default_rng(5).integers(-126, 127, 4000))
        )
        .astype(np.float32)
    )
    below = np.floor(np.log2(x.astype(np.float64)))
    wide = x.astype(np.float64)
    low, high = np.exp2(below), np.where(np.exp2(below) == wide, wide, np.exp2(below + 1))
    want = {"up": high, "down": low, "nearest": np.where(wide - low < high - wide, low, high)}[rounding]
    got = _cast(x, TensorProto.FLOAT8E8M0, round_mode=rounding)
    np.testing.assert_array_equal(got.astype(np.float64), want)
    assert set(got.astype(np.float64)) <= set(powers)
    ends = np.array([0, 2.0**-127, 2.0**-140, 3e38, np.inf, np.nan], np.float32)
    found = _cast(ends, TensorProto.FLOAT8E8M0, round_mode=rounding).view(np.uint8).tolist()
    assert found == [0, 0, 0, 254, 254, 255]
    loose = _cast(ends, TensorProto.FLOAT8E8M0, round_mode=rounding, saturate=0).view(np.uint8).tolist()
    assert loose == [255, 0, 255, 254 if rounding == "down" else 255, 255, 255]


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_integers_keep_their_low_bits(element: Element) -> None:
    """Floats are truncated first; what does not fit wraps, from wide integers as from other narrow ones."""
    for x in (np.linspace(-20, 20, 81, dtype=np.float32), np.arange(-300, 300, dtype=np.int64)):
        whole = np.trunc(x).astype(np.int64)
        mask, sign = (1 << element.bits) - 1, 1 << (element.bits - 1)
        low = whole & mask
        want = (low ^ sign) - sign if element.value.startswith("int") else low
        np.testing.assert_array_equal(_cast(x, CODES[element]).astype(np.int64), want)


@pytest.mark.parametrize("form", ["raw", "typed"])
@pytest.mark.parametrize("element", Element, ids=str)
def test_constants_are_unpacked(element: Element, form: str) -> None:
    """Seven elements, packed two or four a byte where they are narrow enough, come out as they went in."""
    values = (np.arange(7) % (1 << element.bits)).astype(np.uint8).view(_dtype(element))
    proto = numpy_helper.from_array(values.copy(), "w")
    if form == "typed":
        packed = proto.raw_data
        proto.ClearField("raw_data")
        proto.int32_data.extend(packed)
    node = helper.make_node("Identity", ["w"], ["y"])
    got = reference.run(load(_model(node, {}, CODES[element], w=proto)), {})["y"]
    assert got.dtype == _dtype(element)
    np.testing.assert_array_equal(got.astype(np.float32), values.astype(np.float32))


def test_packed_constants_of_a_wrong_length_are_refused() -> None:
    """Three bytes do not hold seven elements of four bits."""
    proto = TensorProto(data_type=TensorProto.INT4, dims=[7], raw_data=b"abc")
    with pytest.raises(ModelError, match=r"int4.*holds 3 bytes instead of 4"):
        load(_model(helper.make_node("Identity", ["w"], ["y"]), {}, TensorProto.INT4, w=proto))


@pytest.mark.parametrize("element", Element, ids=str)
def test_movement_keeps_the_type(element: Element) -> None:
    """A transposed tensor of a narrow type is that type, outside a graph and in its text."""
    x = (np.arange(6) % (1 << element.bits)).astype(np.uint8).view(_dtype(element)).reshape(2, 3)
    node = helper.make_node("Transpose", ["x"], ["y"])
    graph = load(_model(node, {"x": (CODES[element], ("N", 3))}, CODES[element]))
    got = reference.run(graph, {"x": x})["y"]
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got.astype(np.float32), x.T.astype(np.float32))
    text = print_graph(graph)
    assert f'input %0 "x" : {element.storage}[N, 3] as {element}' in text
    assert print_graph(parse_graph(text, payload_table(graph))) == text


def test_bits_are_read_as_another_type_of_that_width() -> None:
    """int4 and uint4 share their bits, as do eight-bit floats and bytes."""
    four = np.array([-8, -1, 3, 7]).astype(ml_dtypes.int4)
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.UINT4)
    got = reference.run(load(_model(node, {"x": (TensorProto.INT4, (4,))}, TensorProto.UINT4)), {"x": four})["y"]
    assert got.astype(np.int32).tolist() == [8, 15, 3, 7]
    eight = np.array([-1.5, 448], np.float32).astype(ml_dtypes.float8_e4m3fn)
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT8)
    model = _model(node, {"x": (TensorProto.FLOAT8E4M3FN, (2,))}, TensorProto.INT8)
    assert reference.run(load(model), {"x": eight})["y"].tolist() == eight.view(np.int8).tolist()


def test_bits_of_another_width_are_refused() -> None:
    """A byte has no four bits to be read as."""
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT4, name="b")
    with pytest.raises(ModelError, match=r"'b'.*8 bits into such of 4"):
        load(_model(node, {"x": (TensorProto.UINT8, (4,))}, TensorProto.INT4))


def test_arithmetic_is_refused_by_name() -> None:
    """No kernel adds bit patterns: ONNX forbids most such nodes, Cuvil names the rest."""
    node = helper.make_node("Add", ["x", "x"], ["y"], name="a")
    with pytest.raises(ModelError, match=r"'a'.*int4, which ONNX does not allow"):
        load(_model(node, {"x": (TensorProto.INT4, (4,))}, TensorProto.INT4))
    entry = Entry("Frobnicate", _never)
    context = Context(new_builder())
    x = replace(Tensor.of_payload(Payload.of(DType.UINT8, (1,), [1])), element=Element.UINT4)
    with pytest.raises(UnsupportedOpError, match=r"'n'.*elements of type uint4"):
        translate(entry, context, Node("Frobnicate", "", 26, "n", ("x",), ("y",), {}), (x,))


def _never(context: Context, node: Node, operands: Operands) -> Tensor:
    raise AssertionError("a translation met a narrow tensor")


def test_narrow_floats_are_asked_for_what_they_are() -> None:
    """IsInf and IsNaN answer by the numbers of the codes."""
    x = np.array([1, np.inf, -np.inf, np.nan], np.float32).astype(ml_dtypes.float8_e5m2)
    for op_type, want in (("IsInf", [False, True, True, False]), ("IsNaN", [False, False, False, True])):
        node = helper.make_node(op_type, ["x"], ["y"])
        graph = load(_model(node, {"x": (TensorProto.FLOAT8E5M2, (4,))}, TensorProto.BOOL))
        assert reference.run(graph, {"x": x})["y"].tolist() == want
