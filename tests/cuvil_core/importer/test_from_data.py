"""Shapes, axes, places and counts that come as inputs: the numbers of ONNX Runtime for many values, or a refusal."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from cuvil_core import reference
from cuvil_core.errors import InputError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph
from cuvil_core.passes import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]
X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4) - 7.5
I64 = np.int64


def _model(op: str, inputs: Arrays, outputs: int = 1, places: str = "", **attributes: Any) -> bytes:
    """One node whose inputs are all graph inputs; `places` names them in order, `-` where one is left out."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    names = [f"y{at}" for at in range(outputs)]
    results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in names]
    node = helper.make_node(op, [one.strip("-") for one in places or inputs], names, **attributes)
    graph = helper.make_graph([node], "one", infos, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    for one in model.graph.output:
        if one.type.tensor_type.elem_type == TensorProto.UNDEFINED:
            one.type.tensor_type.elem_type = infos[0].type.tensor_type.elem_type
    return bytes(model.SerializeToString())


def _both(graph: Graph, inputs: Arrays) -> Iterator[list[np.ndarray[Any, Any]]]:
    for form in (graph, run(graph, 2)[0]):
        feed = {name: inputs[name] for name in graph.input_names}
        yield list(reference.run(form, feed).values())


def _agree(
    op: str, inputs: Arrays, values: list[Arrays], outputs: int = 1, places: str = "", **attributes: Any
) -> None:
    """One graph gives ONNX Runtime's answer for all values of its inputs."""
    model = _model(op, inputs, outputs, places, **attributes)
    graph, session = load(model), onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for changes in values:
        given = {**inputs, **changes}
        wanted = session.run(None, {one.name: given[one.name] for one in session.get_inputs()})
        for found in _both(graph, given):
            for a, b in zip(found, wanted, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype), changes
                np.testing.assert_allclose(a, b, 1e-6, 1e-6, err_msg=str(changes))


def _ints(*rows: Any) -> list[np.ndarray[Any, Any]]:
    return [np.array(row, I64) for row in rows]


def test_reshape() -> None:
    """0 copies, -1 fills, plain numbers hold."""
    targets = _ints([4, 6, 1], [0, 0, 0], [0, -1, 2], [-1, 1, 24], [1, 0, -1], [2, 12, 1])
    _agree("Reshape", {"x": X, "t": targets[0]}, [{"t": one} for one in targets])


def test_expand_and_tile() -> None:
    """Extents of 1 stretch, others stay; repeats of 0 give nothing."""
    x = X[:, :1]
    targets = _ints([1, 2, 1, 4], [5, 1, 7, 1], [1, 1, 3, 4])
    _agree("Expand", {"x": x, "t": targets[0]}, [{"t": one} for one in targets])
    repeats = _ints([1, 2, 3], [2, 1, 1], [0, 1, 2])
    _agree("Tile", {"x": X, "r": repeats[0]}, [{"r": one} for one in repeats])


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceLogSumExp"])
def test_reductions(op: str, keep: int) -> None:
    """Axes in any order, from both ends."""
    axes = _ints([0, 1], [2, 0], [-1, 1], [1, -3])
    _agree(op, {"x": X, "a": axes[0]}, [{"a": one} for one in axes], keepdims=keep)


def test_squeeze_and_unsqueeze() -> None:
    """Axes in any order, from both ends."""
    axes = _ints([0, 2], [-1, 0], [4, 3], [1, 2])
    _agree("Unsqueeze", {"x": X, "a": axes[0]}, [{"a": one} for one in axes])
    x = X.reshape(1, 2, 1, 12, 1)
    axes = _ints([0, 2], [-1, 0], [4, 2])
    _agree("Squeeze", {"x": x, "a": axes[0]}, [{"a": one} for one in axes])


def test_slice() -> None:
    """Places beyond both ends, steps of both signs, axes that are not in order."""
    least, most = np.iinfo(I64).min, np.iinfo(I64).max
    rows = [
        ([0, 1], [2, 3], [0, 2], [1, 1]),
        ([-1, -2], [most, 4], [1, 2], [1, 2]),
        ([5, 3], [-9, 0], [2, 1], [-1, -2]),
        ([3, 0], [least, 9], [2, 0], [-3, 5]),
        ([2, 2], [1, 2], [0, 1], [1, 1]),
    ]
    values: list[Arrays] = [dict(zip("seap", _ints(*row), strict=True)) for row in rows]
    _agree("Slice", {"x": X, **values[0]}, values)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    """Widths of both ends; negative ones cut off where a constant is put round."""
    pads = _ints([0, 1, 2, 1, 0, 1], [0] * 6, [1, 2, 3, 0, 1, 2])
    if mode == "constant":
        pads += _ints([0, -1, 2, 1, -1, -2])
    value = np.array(2.5, np.float32)
    _agree("Pad", {"x": X, "p": pads[0], "v": value}, [{"p": one} for one in pads], mode=mode)


def test_split() -> None:
    """Sizes, an empty part included."""
    sizes = _ints([1, 3], [4, 0], [2, 2])
    _agree("Split", {"x": X, "s": sizes[0]}, [{"s": one} for one in sizes], outputs=2, axis=2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_range(dtype: type) -> None:
    """Both directions, and ends that are passed at once."""
    rows = [(0, 5, 1), (3, -4, -2), (5, 0, 1), (-2, 9, 3)]
    values: list[Arrays] = [dict(zip("abc", (np.array(one, dtype) for one in row), strict=True)) for row in rows]
    _agree("Range", values[0], values)


def test_constant_of_shape_one_hot_and_trilu() -> None:
    """Counts and diagonals."""
    shapes = _ints([2, 3], [1, 1], [0, 4])
    _agree("ConstantOfShape", {"s": shapes[0]}, [{"s": one} for one in shapes])
    indices, values = np.array([0, 2, -1, 9], I64), np.array([-1, 3], np.float32)
    depths = _ints(3, 5, 1)
    _agree("OneHot", {"i": indices, "d": depths[0], "v": values}, [{"d": one} for one in depths])
    places = _ints(0, 1, -2, 99, -99)
    _agree("Trilu", {"x": X, "k": places[0]}, [{"k": one} for one in places])


def test_top_k_and_running_totals() -> None:
    """How many, and along which axis."""
    _agree("TopK", {"x": X, "k": np.array([1], I64)}, [{"k": one} for one in _ints([1], [3], [0])], outputs=2, axis=1)
    axes = _ints(0, 1, -1)
    _agree("CumSum", {"x": X, "a": axes[0]}, [{"a": one} for one in axes], exclusive=1)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_resize(mode: str, coordinates: str) -> None:
    """By sizes, larger and smaller."""
    x = X.reshape(1, 1, 4, 6)
    sizes = _ints([1, 1, 4, 6], [1, 1, 8, 9], [1, 1, 3, 2], [1, 1, 2, 13])
    values: list[Arrays] = [{"n": one} for one in sizes]
    _agree(
        "Resize",
        {"x": x, "n": sizes[0]},
        values,
        places="x--n",
        mode=mode,
        coordinate_transformation_mode=coordinates,
    )


def test_places_of_what_is_not_zero() -> None:
    """NonZero and Compress; none and all."""
    masks = [X > 0, np.zeros_like(X, bool), np.ones_like(X, bool)]
    _agree("NonZero", {"x": masks[0]}, [{"x": one} for one in masks])
    picks = [np.array(one, bool) for one in ([1, 0, 1], [0, 0, 0], [1, 1, 1])]
    _agree("Compress", {"x": X, "c": picks[0]}, [{"c": one} for one in picks], axis=1)


def test_unique() -> None:
    """Flattened and by rows, in order and by first place."""
    x = np.array([[2, 1, 1], [0, 3, 3], [2, 1, 1], [0, 3, 2]], np.float32)
    others = [{"x": np.ones_like(x)}, {"x": np.arange(12, dtype=np.float32).reshape(4, 3)}]
    forms: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": 1}, {"sorted": 0}, {"axis": 0, "sorted": 0}]
    for attributes in forms:
        _agree("Unique", {"x": x}, [{}, *others], outputs=4, **attributes)


@pytest.mark.parametrize(
    ("op", "inputs", "changes"),
    [
        ("Reshape", {"x": X, "t": [4, 6, 1]}, {"t": [5, 5, 1]}),
        ("Reshape", {"x": X, "t": [4, 6, 1]}, {"t": [-1, -1, 1]}),
        ("Expand", {"x": X, "t": [2, 3, 4]}, {"t": [2, 2, 4]}),
        ("Tile", {"x": X, "r": [1, 1, 1]}, {"r": [1, -1, 1]}),
        ("ReduceSum", {"x": X, "a": [0, 1]}, {"a": [0, 3]}),
        ("ReduceSum", {"x": X, "a": [0, 1]}, {"a": [1, 1]}),
        ("Unsqueeze", {"x": X, "a": [0]}, {"a": [4]}),
        ("Squeeze", {"x": X, "a": [0]}, {"a": [1]}),
        ("Split", {"x": X, "s": [2]}, {"s": [1]}),
        ("ConstantOfShape", {"s": [2]}, {"s": [-2]}),
        ("Range", {"a": 0, "b": 5, "c": 1}, {"c": 0}),
    ],
)
def test_values_that_the_op_forbids(op: str, inputs: Any, changes: Any) -> None:
    """Each ends the call with a sentence, whatever the level."""

    def arrays(raw: dict[str, Any]) -> Arrays:
        return {name: one if isinstance(one, np.ndarray) else np.array(one, I64) for name, one in raw.items()}

    given = arrays(inputs)
    graph = load(_model(op, given))
    with pytest.raises(InputError):
        list(_both(graph, given | arrays(changes)))
