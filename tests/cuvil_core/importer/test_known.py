"""What is known while importing: numbers by the reference, formulas where they are exact, nothing else."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph

Nodes = list[tuple[Any, ...]]
"""(op, inputs, output, attributes)"""
SHAPE: tuple[Any, ...] = ("Shape", ["x"], "s", {})


def _load(nodes: Nodes, shape: Any = ("N", 6), opset: int = 18, **constants: Any) -> Graph:
    made = [helper.make_node(op, ins, [out], **attributes) for op, ins, out, attributes in nodes]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return load(model.SerializeToString())


def _cast(source: str, to: int, out: str) -> tuple[Any, ...]:
    return ("Cast", [source], out, {"to": to})


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
SHAPES: dict[str, tuple[Nodes, dict[str, Any], str]] = {
    "through a float and back": (
        [SHAPE, _cast("s", FLOAT, "f"), ("Mul", ["f", "two"], "g", {}), ("Floor", ["g"], "h", {}),
         _cast("h", INT64, "t"), ("Expand", ["one", "t"], "y", {})],
        {"two": np.array([2], np.float32), "one": np.float32(1)}, "float32[2*N, 12]"),
    "the product of a shape": (
        [SHAPE, ("ReduceProd", ["s"], "p", {"keepdims": 1}), ("Reshape", ["x", "p"], "y", {})], {}, "float32[6*N]"),
    "the greater of two extents": (
        [SHAPE, ("ReduceMax", ["s"], "m", {"keepdims": 1}), ("Expand", ["one", "m"], "y", {})],
        {"one": np.float32(1)}, "float32[max(6, N)]"),
    "a choice by what is known": (
        [SHAPE, ("Equal", ["s", "minus"], "e", {}), ("Where", ["e", "minus", "s"], "t", {}),
         ("Expand", ["one", "t"], "y", {})], {"minus": np.int64(-1), "one": np.float32(1)}, "float32[N, 6]"),
    "what a root of a constant gives": (
        [("Sqrt", ["four"], "r", {}), _cast("r", INT64, "t"), ("Expand", ["one", "t"], "y", {})],
        {"four": np.array([9], np.float32), "one": np.float32(1)}, "float32[3]"),
    "the remainder of an extent": (
        [SHAPE, ("Mod", ["s", "four"], "t", {}), ("Slice", ["t", "first", "last"], "u", {}),
         ("Expand", ["one", "u"], "y", {})],
        {"four": np.int64(4), "first": np.array([1]), "last": np.array([2]), "one": np.float32(1)}, "float32[2]"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_computed_from_shapes_is_known(name: str) -> None:
    """A shape may come from any arithmetic on constants and extents; no op of it is left in the graph."""
    nodes, constants, type = SHAPES[name]
    graph = _load(nodes, **constants)
    assert str(graph.outputs[0].type) == type
    assert {op.name for op in graph.ops} <= {"constant", "broadcast_to", "reshape"}


def test_numbers_are_those_of_the_dtype() -> None:
    """Folding computes in the dtype: int8 wraps, float16 rounds, integers truncate towards zero."""
    nodes: Nodes = [("Add", ["a", "b"], "i", {}), _cast("i", FLOAT, "j"), ("Div", ["c", "d"], "q", {}),
                    _cast("q", FLOAT, "r"), ("Add", ["h", "h1"], "k", {}), _cast("k", FLOAT, "l"),
                    ("Concat", ["j", "r", "l"], "y", {"axis": 0})]  # fmt: skip
    constants: dict[str, Any] = {
        **{name: np.array([100], np.int8) for name in "ab"},
        **{name: np.array([number], np.int32) for name, number in (("c", -7), ("d", 2))},
        **{name: np.array([number], np.float16) for name, number in (("h", 2048), ("h1", 1))},
    }
    graph = _load(nodes, **constants)
    (op,) = graph.ops
    assert op.payload().values() == [-56, -3, 2048]


def test_no_formula_where_it_would_not_be_exact() -> None:
    """Half of an extent in floats is no formula: the call computes it, and rounds as it does."""
    nodes: Nodes = [SHAPE, _cast("s", FLOAT, "f"), ("Div", ["f", "two"], "g", {}), _cast("g", INT64, "t"),
                    ("Expand", ["one", "t"], "y", {})]  # fmt: skip
    graph = _load(nodes, two=np.array([2], np.float32), one=np.float32(1))
    assert [op.name for op in graph.ops].count("bind") == 2
    assert reference.run(graph, {"x": np.ones((5, 6), np.float32)})["y"].shape == (2, 3)


def test_a_form_that_is_known_stays_an_op_where_that_is_smaller() -> None:
    """A stretched number is known, but the graph stretches it instead of holding copies."""
    nodes: Nodes = [("Expand", ["one", "t"], "e", {}), ("Add", ["x", "e"], "y", {})]
    graph = _load(nodes, (8, 6), one=np.float32(1), t=np.array([8, 6], np.int64))
    (constant,) = (op for op in graph.ops if op.name == "constant")
    assert constant.payload().elements == 1
    x = np.ones((8, 6), np.float32)
    assert (reference.run(graph, {"x": x})["y"] == 2).all()


def test_a_tensor_without_elements_is_known() -> None:
    """An input of extent 0 has no elements that a call could change: as axes it means all, as data it has no sum."""
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])]
    inputs.append(helper.make_tensor_value_info("axes", TensorProto.INT64, [0]))
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    feed: dict[str, Any] = {"x": np.array([[1, 2], [3, 4]], np.float32), "axes": np.zeros(0, np.int64)}
    assert reference.run(load(model.SerializeToString()), feed)["y"] == 10
    empty = _load([("ReduceMax", ["x", "last"], "y", {"keepdims": 0})], (2, 0), last=np.array([1], np.int64))
    assert reference.run(empty, {"x": np.zeros((2, 0), np.float32)})["y"].tolist() == [-np.inf, -np.inf]


def test_large_constants_are_left_to_the_passes() -> None:
    """More than 1024 elements are not followed while importing."""
    graph = _load([("Neg", ["w"], "v", {}), ("Add", ["x", "v"], "y", {})], (1, 2000), w=np.ones(2000, np.float32))
    assert "neg" in {op.name for op in graph.ops}
