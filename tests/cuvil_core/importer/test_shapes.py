"""Symbolic shapes: names, guards, shape arithmetic that leaves no ops behind."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.contract import InputSpec
from cuvil_core.errors import InputError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph

Shape = tuple[int | str | None, ...]
Node = tuple[str, list[str], list[str], dict[str, Any]]
"""(op, inputs, outputs, attributes)"""


def _load(nodes: list[Node], shape: Shape, *specs: InputSpec, opset: int = 17, **constants: Any) -> Graph:
    made = [helper.make_node(op, ins, outs, **attributes) for op, ins, outs, attributes in nodes]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return load(model.SerializeToString(), specs)


def _types(graph: Graph) -> tuple[str, str]:
    return str(graph.inputs[0].type), str(graph.outputs[0].type)


EXP: Node = ("Exp", ["x"], ["y"], {})


@pytest.mark.parametrize(
    ("shape", "specs", "type"),
    [
        (("p2o.Dynamic.0", 3), (), "float32[p2o_Dynamic_0, 3]"),
        (("?", "?"), (), "float32[x_0, x_1]"),
        ((None, "-1"), (), "float32[x_0, x_1]"),
        (("N", "N"), (), "float32[N, N]"),
        (("max", 2), (), "float32[max_, 2]"),
        ((1, 3), (InputSpec("x", ("N", 3)),), "float32[N, 3]"),
        (("a", "b"), (InputSpec("x", (4, "W")),), "float32[4, W]"),
        (("a", "a"), (InputSpec("x", ("N", "N")),), "float32[N, N]"),
    ],
)
def test_inputs_get_legal_names(shape: Shape, specs: tuple[InputSpec, ...], type: str) -> None:
    """Names of the file become identifiers, unknowns fresh names, and the caller's word wins."""
    assert _types(_load([EXP], shape, *specs))[0] == type


def test_bounds_reach_the_graph() -> None:
    """The caller's bounds are the ranges of the graph's symbols."""
    graph = _load([EXP], ("N", 3), InputSpec("x", ("N", 3), {"N": (2, 8)}))
    assert graph.ranges == {"N": (2, 8)}


def test_shape_arithmetic_leaves_no_ops() -> None:
    """Shape, Gather, Mul, Concat before a Reshape are followed symbolically."""
    nodes: list[Node] = [
        ("Shape", ["x"], ["s"], {}),
        ("Gather", ["s", "two"], ["h"], {}),
        ("Mul", ["h", "three"], ["m"], {}),
        ("Unsqueeze", ["m", "zero"], ["u"], {}),
        ("Concat", ["u", "minus"], ["t"], {"axis": 0}),
        ("Reshape", ["x", "t"], ["y"], {}),
    ]
    ints: dict[str, Any] = {"two": np.int64(2), "three": np.int64(3), "zero": np.array([0]), "minus": np.array([-1])}
    graph = _load(nodes, ("N", 3, "H"), **ints)
    assert [op.name for op in graph.ops] == ["reshape"]
    assert _types(graph)[1] == "float32[3*H, N]"


def test_a_consumed_shape_becomes_data() -> None:
    """Where a shape is the output itself, its symbolic values are computed when the model runs."""
    graph = _load([("Shape", ["x"], ["s"], {}), ("Cast", ["s"], ["y"], {"to": TensorProto.FLOAT})], ("N", "H"))
    got = reference.run(graph, {"x": np.zeros((4, 7), np.float32)})
    assert got["y"].tolist() == [4.0, 7.0]


def test_an_unprovable_equality_becomes_a_guard() -> None:
    """Halving and doubling an extent is right for even ones only: a guard says so, and odd inputs are refused."""
    nodes: list[Node] = [
        ("MaxPool", ["x"], ["h"], {"kernel_shape": [2], "strides": [2]}),
        (
            "Resize",
            ["h", "", "scales"],
            ["r"],
            {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        ),
        ("Add", ["r", "x"], ["y"], {}),
    ]
    graph = _load(nodes, (1, 1, "W"), scales=np.array([1, 1, 2], np.float32))
    assert [str(guard) for guard in graph.guards] in (["2*(W//2) == W"], ["W == 2*(W//2)"])
    assert _types(graph)[1] == "float32[1, 1, W]"
    reference.run(graph, {"x": np.zeros((1, 1, 6), np.float32)})
    with pytest.raises(InputError, match="Add"):
        reference.run(graph, {"x": np.zeros((1, 1, 7), np.float32)})


@pytest.mark.parametrize(
    ("target", "type"), [([1, 6], "float32[N, 6]"), ([1, -1], "float32[N, 6]"), ([0, 6], "float32[N, 6]")]
)
def test_a_fixed_batch_gives_way_to_the_callers_symbol(target: list[int], type: str) -> None:
    """A file with batch 1 written into its Reshape serves any batch once the caller names that extent."""
    nodes: list[Node] = [("Reshape", ["x", "t"], ["y"], {})]
    graph = _load(nodes, (1, 2, 3), InputSpec("x", ("N", 2, 3)), t=np.array(target))
    assert _types(graph)[1] == "float32[N, 6]" and not graph.guards


def test_a_reshape_that_fixes_the_batch_is_guarded() -> None:
    """A target that fits the file's batch alone is kept, and other batches are refused."""
    graph = _load([("Reshape", ["x", "t"], ["y"], {})], (1, 6), InputSpec("x", ("N", 6)), t=np.array([3, 2]))
    assert reference.run(graph, {"x": np.ones((1, 6), np.float32)})["y"].shape == (3, 2)
    with pytest.raises(InputError, match="Reshape"):
        reference.run(graph, {"x": np.ones((2, 6), np.float32)})


def test_weights_that_are_also_inputs_are_constants() -> None:
    """Old files list their weights among the inputs; they stay constants."""
    node = helper.make_node("Add", ["x", "w"], ["y"])
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "w")]
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph(
        [node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])], [weight]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)])
    assert load(onnx.ModelProto.SerializeToString(model)).input_names == ("x",)


def test_squeeze_without_axes_keeps_the_rank() -> None:
    """Extents of 1 go, symbolic ones stay: a call in which one of them is 1 would have another rank and is refused."""
    graph = _load([("Squeeze", ["x"], ["y"], {})], ("N", 1, 3))
    assert str(graph.outputs[0].type) == "float32[N, 3]"
    assert reference.run(graph, {"x": np.zeros((2, 1, 3), np.float32)})["y"].shape == (2, 3)
    with pytest.raises(InputError, match="needs 2 <= N"):
        reference.run(graph, {"x": np.zeros((1, 1, 3), np.float32)})
