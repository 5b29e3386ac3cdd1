"""Indices, lengths and sizes that come with a call: refused in it where they lie outside, whatever computes them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from cuvil_core import reference
from cuvil_core.errors import InputError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph
from graph_checks import interpreted, module_of, variants

Array = np.ndarray[Any, np.dtype[Any]]
X = np.arange(12, dtype=np.float32).reshape(3, 4)
ONE = np.ones((1, 1), np.float32)


def _graph(op: str, opset: int, inputs: dict[str, Array], attributes: dict[str, Any]) -> Graph:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in inputs.items()
    ]
    node = helper.make_node(op, list(inputs), ["y"], name="n1", **attributes)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    assert isinstance(model, onnx.ModelProto)
    return load(model.SerializeToString())


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


OUTSIDE: dict[str, tuple[str, int, dict[str, Array], dict[str, Any], str]] = {
    "gathered": ("GatherElements", 22, {"x": X, "i": _ints(4).reshape(1, 1)}, {"axis": 1}, "-4 .. 3"),
    "gathered by tuples": ("GatherND", 22, {"x": X, "i": _ints(0, -5).reshape(1, 2)}, {}, "-4 .. 3"),
    "scattered": ("ScatterElements", 18, {"x": X, "i": _ints(3).reshape(1, 1), "u": ONE}, {}, "-3 .. 2"),
    "reversed": ("ReverseSequence", 10, {"x": X, "n": _ints(1, 2, 3, 4)}, {}, "-4 .. 3"),
    "written behind the cache": (
        "TensorScatter",
        24,
        {"x": X.reshape(1, 3, 4), "u": np.ones((1, 2, 4), np.float32), "w": _ints(2)},
        {},
        "-3 .. 2",
    ),
    "summed": ("CumSum", 14, {"x": X, "a": np.array(2, np.int64)}, {}, "axes lie in -2 .. 1"),
    "resized": ("Upsample", 9, {"x": X, "s": np.array([1, 0.5], np.float32)}, {}, "at least 1"),
    "dropped": (
        "Dropout",
        22,
        {"x": X, "r": np.array(0.5, np.float32), "t": np.array(True)},
        {},
        "training_mode is false or the ratio is 0",
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_values_outside_end_the_call(name: str) -> None:
    """The interpreter refuses them with a sentence that names the node and what it needs."""
    op, opset, inputs, attributes, text = OUTSIDE[name]
    with pytest.raises(InputError, match=text) as caught:
        reference.run(_graph(op, opset, inputs, attributes), inputs)
    assert "n1" in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["gathered", "scattered", "summed"])
def test_compiled_code_refuses_them_too(name: str, tmp_path: Path) -> None:
    """So do the program's interpreter and the compiled code."""
    op, opset, inputs, attributes, text = OUTSIDE[name]
    graph = _graph(op, opset, inputs, attributes)
    with pytest.raises(InputError, match=text):
        interpreted(graph, inputs)
    with pytest.raises(InputError, match=text):
        module_of(graph, variants()[-1], tmp_path).run(inputs)


def test_negative_indices_count_from_the_end() -> None:
    """-1 is the last row, for reading and for writing."""
    inputs = {"x": X, "i": _ints(-1).reshape(1, 1)}
    assert reference.run(_graph("GatherND", 22, inputs, {}), inputs)["y"].tolist() == [X[2].tolist()]
    inputs = {**inputs, "u": np.zeros((1, 4), np.float32)}
    assert reference.run(_graph("ScatterND", 18, inputs, {}), inputs)["y"][2].tolist() == [0, 0, 0, 0]
