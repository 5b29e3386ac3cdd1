"""Sequences and optionals that the model itself makes: only their tensors are left in the graph."""

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import CuvilError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph

Array = np.ndarray[Any, Any]
Nodes = list[tuple[Any, ...]]
"""(op, inputs, output, attributes)"""
X = np.arange(6, dtype=np.float32).reshape(3, 2)
BOTH: tuple[Any, ...] = ("SequenceConstruct", ["x", "w"], "s", {})


def _node(op: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> NodeProto:
    return helper.make_node(op, inputs, [output], name=f"n-{op}", **attributes)


def _load(nodes: Nodes, shape: Any = (3, 2), opset: int = 18, **constants: Any) -> Graph:
    graph = helper.make_graph(
        [_node(*node) for node in nodes],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in ({"w": -X} | constants).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return load(model.SerializeToString())


def _answer(nodes: Nodes, **constants: Any) -> list[Any]:
    found: list[Any] = reference.run(_load(nodes, **constants), {"x": X})["y"].tolist()
    return found


def _negated() -> Any:
    """A body for SequenceMap: the first input less the second."""
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("a", "b", "c")]
    return helper.make_graph([helper.make_node("Sub", ["a", "b"], ["c"])], "body", kinds[:2], kinds[2:])


ANSWERS: dict[str, tuple[Nodes, dict[str, Any], Any]] = {
    "the item at a place from the end": ([BOTH, ("SequenceAt", ["s", "p"], "y", {})], {"p": -1}, -X),
    "an item put before another": (
        [BOTH, ("SequenceInsert", ["s", "one", "p"], "t", {}), ("SequenceAt", ["t", "p"], "y", {})],
        {"p": np.int64(1), "one": np.float32(1)}, np.float32(1)),
    "an item put behind all": (
        [BOTH, ("SequenceInsert", ["s", "one"], "t", {}), ("SequenceAt", ["t", "p"], "y", {})],
        {"p": np.int64(2), "one": np.float32(1)}, np.float32(1)),
    "the last item erased": (
        [BOTH, ("SequenceErase", ["s"], "t", {}), ("SequenceAt", ["t", "p"], "y", {})], {"p": np.int64(-1)}, X),
    "an empty sequence filled": (
        [("SequenceEmpty", [], "s", {}), ("SequenceInsert", ["s", "x"], "t", {}), ("SequenceAt", ["t", "p"], "y", {})],
        {"p": np.int64(0)}, X),
    "items side by side": (
        [BOTH, ("ConcatFromSequence", ["s"], "y", {"axis": 1})], {}, np.concatenate([X, -X], 1)),
    "items on a new axis": (
        [BOTH, ("ConcatFromSequence", ["s"], "y", {"axis": -1, "new_axis": 1})], {}, np.stack([X, -X], -1)),
    "one part an element": (
        [("SplitToSequence", ["x"], "s", {"keepdims": 0}), ("SequenceAt", ["s", "p"], "y", {})], {"p": np.int64(1)},
        X[1]),
    "parts of a size, the last one smaller": (
        [("SplitToSequence", ["x", "size"], "s", {}), ("SequenceAt", ["s", "p"], "y", {})],
        {"p": np.int64(-1), "size": np.int64(2)}, X[2:]),
    "parts of given sizes": (
        [("SplitToSequence", ["x", "sizes"], "s", {"axis": 1}), ("SequenceAt", ["s", "p"], "y", {})],
        {"p": np.int64(0), "sizes": np.array([1, 1])}, X[:, :1]),
    "a body on each item": (
        [BOTH, ("SequenceMap", ["s", "x"], "t", {"body": _negated()}), ("SequenceAt", ["t", "p"], "y", {})],
        {"p": np.int64(1)}, -2 * X),
    "the length as a number": (
        [BOTH, ("SequenceLength", ["s"], "n", {}), ("Cast", ["n"], "y", {"to": 1})], {}, np.float32(2)),
    "an optional that holds a tensor": (
        [("Optional", ["x"], "o", {}), ("OptionalGetElement", ["o"], "y", {})], {}, X),
    "whether an optional holds one": (
        [("OptionalHasElement", ["x"], "o", {}), ("OptionalHasElement", [], "e", {}), ("Xor", ["o", "e"], "d", {}),
         ("Cast", ["d"], "y", {"to": 1})], {}, np.float32(1)),
}  # fmt: skip


@pytest.mark.parametrize("fact", ANSWERS)
def test_sequences_of_known_length(fact: str) -> None:
    """What is taken out of a sequence is what was put into it."""
    nodes, constants, want = ANSWERS[fact]
    assert _answer(nodes, **constants) == want.tolist()


def test_the_graph_holds_no_sequence() -> None:
    """Taking an item costs nothing: no op is left of a sequence, and unused items are not computed."""
    nodes: Nodes = [
        ("Exp", ["w"], "e", {}),
        ("SequenceConstruct", ["e", "x"], "s", {}),
        ("SequenceAt", ["s", "p"], "y", {}),
    ]
    graph = _load(nodes, p=np.int64(1))
    assert graph.outputs == graph.inputs


def test_a_loop_that_fills_a_sequence_is_written_out() -> None:
    """A loop of known length may carry a sequence from turn to turn."""
    info = helper.make_tensor_value_info
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    grown = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("SequenceInsert", ["s", "x"], ["t"])],
        "body",
        [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), sequence],
        [info("d", TensorProto.BOOL, []), grown],
    )
    nodes: Nodes = [("SequenceEmpty", [], "e", {}), ("Loop", ["m", "", "e"], "f", {"body": body}),
                    ("ConcatFromSequence", ["f"], "y", {"axis": 0})]  # fmt: skip
    assert _answer(nodes, m=np.int64(3)) == np.concatenate([X, X, X]).tolist()


REFUSED: dict[str, tuple[Nodes, dict[str, Any], type[CuvilError], str]] = {
    "a place outside": ([BOTH, ("SequenceAt", ["s", "p"], "y", {})], {"p": np.int64(2)}, ModelError,
                        "position 2 is outside of a sequence of 2"),
    "a place from data": (
        [BOTH, ("ArgMax", ["x"], "i", {"axis": 0, "keepdims": 0}), ("ReduceMax", ["i"], "p", {"keepdims": 0}),
         ("SequenceAt", ["s", "p"], "y", {})], {}, UnsupportedOpError, "takes the position from the input's data"),
    "erasing nothing": ([("SequenceEmpty", [], "s", {}), ("SequenceErase", ["s"], "y", {})], {}, ModelError,
                        "nothing to erase"),
    "two dtypes": ([BOTH, ("SequenceInsert", ["s", "p"], "y", {})], {"p": np.int64(1)}, ModelError, "n-SequenceInsert"),
    "no sequence": ([("SequenceAt", ["x", "p"], "y", {})], {"p": np.int64(0)}, ModelError, "dtype float32"),
    "a sequence as a tensor": ([BOTH, ("Neg", ["s"], "y", {})], {}, ModelError, "sequence of float32"),
    "an empty sequence as an output": ([("SequenceEmpty", [], "y", {})], {}, UnsupportedOpError,
                                       "Output 'y' is an empty sequence"),
    "nothing to join": ([("SequenceEmpty", [], "s", {}), ("ConcatFromSequence", ["s"], "y", {"axis": 0})], {},
                        ModelError, "at least one"),
    "parts of no size": ([("SplitToSequence", ["x", "z"], "s", {})], {"z": np.int64(0)}, ModelError, "size 0"),
    "an absent element": ([("OptionalGetElement", [""], "y", {})], {}, ModelError, "n-OptionalGetElement"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_refusals_are_sentences(fault: str) -> None:
    """What only a call knows, and what breaks the rules of sequences, is refused by name."""
    nodes, constants, kind, sentence = REFUSED[fault]
    with pytest.raises(kind, match=sentence) as caught:
        _load(nodes, **constants)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_parts_of_a_symbolic_extent_are_refused_unless_sized() -> None:
    """A sequence of as many parts as an extent has no length; sizes that are known fit by a guard."""
    with pytest.raises(UnsupportedOpError, match="as many parts as the extent N has"):
        _load([("SplitToSequence", ["x"], "s", {}), ("SequenceAt", ["s", "p"], "y", {})], ("N", 2), p=np.int64(0))
    nodes: Nodes = [("SplitToSequence", ["x", "z"], "s", {}), ("SequenceAt", ["s", "p"], "y", {})]
    graph = _load(nodes, ("N", 2), p=np.int64(1), z=np.array([1, 2]))
    assert reference.run(graph, {"x": X})["y"].tolist() == X[1:].tolist()


def test_an_optional_input_is_one_that_is_given() -> None:
    """A graph input that may be absent is compiled for calls that bring it."""
    held = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", 2])
    inputs = [helper.make_value_info("x", helper.make_optional_type_proto(held))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    nodes = [helper.make_node("OptionalGetElement", ["x"], ["z"]), helper.make_node("Neg", ["z"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    for opset in (15, 18):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        assert reference.run(load(model.SerializeToString()), {"x": X})["y"].tolist() == (-X).tolist()


def test_a_sequence_is_given_out_item_by_item() -> None:
    """An output that is a sequence becomes as many outputs, numbered."""
    got = reference.run(_load([("SequenceConstruct", ["x", "w"], "y", {})]), {"x": X})
    assert list(got) == ["y[0]", "y[1]"]
    assert got["y[1]"].tolist() == (-X).tolist()


@pytest.mark.parametrize("way", [False, True])
def test_ways_give_sequences_of_one_length(way: bool) -> None:
    """Branches that a call decides between may give sequences, item for item of one type."""
    branches = {
        key: helper.make_graph(
            [helper.make_node("SequenceConstruct", inputs, ["s"])],
            key,
            [],
            [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
        )
        for key, inputs in (("then_branch", ["x", "w"]), ("else_branch", ["w", "x"]))
    }
    nodes: Nodes = [("ReduceMax", ["x"], "m", {"keepdims": 0}), ("Cast", ["m"], "c", {"to": TensorProto.BOOL}),
                    ("If", ["c"], "t", branches), ("SequenceAt", ["t", "p"], "y", {})]  # fmt: skip
    x = X if way else 0 * X
    got = reference.run(_load(nodes, p=np.int64(0)), {"x": x})["y"]
    assert got.tolist() == (x if way else -X).tolist()
