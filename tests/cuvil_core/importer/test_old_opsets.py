"""Opsets 1 to 6: what their attributes and inputs meant, against what the opsets of today compute."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import CuvilError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.importer.onnx.old_opsets import FIRST_TRANSLATED, UPGRADES

Array = np.ndarray[Any, Any]


def _f32(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _answer(op_type: str, opset: int, x: Array, *constants: Array, outputs: int = 1, **attributes: Any) -> list[Any]:
    """The first output of one node on a graph input and constants."""
    names = [f"c{at}" for at in range(len(constants))]
    node = helper.make_node(op_type, ["x", *names], [f"y{at}" for at in range(outputs)], name="n1", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, ["N", *x.shape[1:]])],
        [helper.make_tensor_value_info("y0", kind, None)],
        [numpy_helper.from_array(value, name) for value, name in zip(constants, names, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    found: list[Any] = reference.run(load(model.SerializeToString()), {"x": x})["y0"].tolist()
    return found


PLANE = _f32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
FOUR = _f32([[[[1, 2]]]])
VECTOR = _f32([10, 20])
ANSWERS: dict[str, tuple[Callable[[], list[Any]], list[Any]]] = {
    "a vector lies along the axis that is named": (
        partial(_answer, "Add", 6, PLANE, VECTOR, broadcast=1, axis=1), [[[11, 12], [23, 24]], [[15, 16], [27, 28]]]),
    "a negative axis counts from A's end": (
        partial(_answer, "Add", 6, PLANE, VECTOR, broadcast=1, axis=-2), [[[11, 12], [23, 24]], [[15, 16], [27, 28]]]),
    "else it lies along the last ones": (
        partial(_answer, "Sub", 6, PLANE, VECTOR, broadcast=1), [[[-9, -18], [-7, -16]], [[-5, -14], [-3, -12]]]),
    "consumed inputs mean nothing": (
        partial(_answer, "Mul", 1, PLANE, PLANE, consumed_inputs=[0, 0]), (PLANE * PLANE).tolist()),
    "comparisons broadcast alike": (
        partial(_answer, "Pow", 1, PLANE, _f32([2]), broadcast=1, axis=0), (PLANE**2).tolist()),
    "one slope a channel": (
        partial(_answer, "PRelu", 6, -PLANE, _f32([2, 3])), [[[-2, -4], [-9, -12]], [[-10, -12], [-21, -24]]]),
    "one slope for all": (partial(_answer, "PRelu", 1, -PLANE, _f32([2]), consumed_inputs=[0]), (-2 * PLANE).tolist()),
    "channels in groups of one": (
        partial(_answer, "BatchNormalization", 6, PLANE, *[_f32([1, 1])] * 4, is_test=1, epsilon=0.0), PLANE.tolist()),
    "dropout that only tests": (partial(_answer, "Dropout", 6, PLANE, is_test=1, ratio=0.5), PLANE.tolist()),
    "a dtype by name": (partial(_answer, "Cast", 1, _f32([1, -1]), to="FLOAT"), [1, -1]),
    "concatenation along axis 1": (partial(_answer, "Concat", 1, _f32([[1]]), _f32([[2]])), [[1, 2]]),
    "pads by their old name": (partial(_answer, "Pad", 1, _f32([[1]]), paddings=[0, 1, 0, 0], value=9.0), [[9, 1]]),
    "a shape as an attribute": (partial(_answer, "Reshape", 1, PLANE, shape=[0, -1]), [[1, 2, 3, 4], [5, 6, 7, 8]]),
    "sizes as floats": (partial(_answer, "Split", 1, _f32([[1, 2, 3]]), _f32([2, 1]), outputs=2, axis=1), [[1, 2]]),
    "copies along one axis": (partial(_answer, "Tile", 1, _f32([[1, 2]]), _f32([2]), _f32([1])), [[1, 2, 1, 2]]),
    "scales of height and width": (
        partial(_answer, "Upsample", 1, FOUR, height_scale=2.0, width_scale=1.0, mode="nearest"), [[[[1, 2], [1, 2]]]]),
    "C of Gemm broadcast": (
        partial(_answer, "Gemm", 6, _f32([[1, 2]]), _f32([[1], [1]]), _f32([5]), broadcast=1), [[8]]),
}  # fmt: skip


@pytest.mark.parametrize("fact", ANSWERS)
def test_old_meanings(fact: str) -> None:
    """A node of an old opset computes what its schema said then."""
    compute, want = ANSWERS[fact]
    assert compute() == want


REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[CuvilError], str]] = {
    "training": (("Dropout", 6, PLANE), {}, UnsupportedOpError, "training mode"),
    "training of statistics": (("BatchNormalization", 6, PLANE, *[_f32([1, 1])] * 4), {}, UnsupportedOpError,
                               "training mode"),
    "no broadcast": (("Add", 6, PLANE, VECTOR), {}, ModelError, "extents|rank 1"),
    "axis too far": (("Add", 6, PLANE, VECTOR), {"broadcast": 1, "axis": 3}, ModelError, "does not lie within"),
    "B larger than A": (("Add", 6, VECTOR, PLANE), {"broadcast": 1}, ModelError, "does not lie within"),
    "extents that differ": (("Add", 6, PLANE, _f32([1, 2, 3])), {"broadcast": 1}, ModelError, "extents 3 and 2"),
    "no such dtype": (("Cast", 5, PLANE), {"to": "FLOAT33"}, ModelError, "no element type 'FLOAT33'"),
    "half a copy": (("Tile", 1, PLANE, _f32([1.5]), _f32([0])), {}, ModelError, "no whole numbers"),
    "statistics of each place": (("BatchNormalization", 7, PLANE, *[_f32([[1, 1], [1, 1]])] * 4), {"spatial": 0},
                                 UnsupportedOpError, "spatial is 0"),
    "an attribute of a later opset": (("Pad", 1, PLANE), {"pads": [0] * 6}, ModelError, "unknown attribute 'pads'"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_old_nodes_that_do_not_fit_are_refused(fault: str) -> None:
    """What an old node cannot mean, or means for training, is refused by its name."""
    given, attributes, kind, sentence = REFUSED[fault]
    with pytest.raises(kind, match=sentence) as caught:
        _answer(*given, **attributes)
    assert "'n1'" in str(caught.value)


def test_every_changed_form_has_an_upgrade() -> None:
    """Where inputs or attributes were renamed, retyped or dropped before opset 7, the table of upgrades has the op."""
    ignored = {"consumed_inputs", "broadcast", "output_sequence"}
    versions: dict[str, dict[int, Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= FIRST_TRANSLATED:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    for name, found in versions.items():
        newest = found[max(found)]
        for schema in found.values():
            changed = [
                key
                for key, known in schema.attributes.items()
                if key not in ignored and (key not in newest.attributes or newest.attributes[key].type != known.type)
            ]
            if changed or len(schema.inputs) != len(newest.inputs):
                assert name in UPGRADES, (name, schema.since_version, changed)
