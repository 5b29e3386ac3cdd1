"""AffineGrid: coordinates of places, for sizes that are known, symbolic, or come with a call."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import InputError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph

Array = np.ndarray[Any, Any]


def _load(theta: Any, size: list[int] | None, aligned: int = 0) -> Graph:
    """`size` None makes it an input."""
    inputs = [helper.make_tensor_value_info("theta", TensorProto.FLOAT, theta)]
    constants = [] if size is None else [numpy_helper.from_array(np.array(size, np.int64), "size")]
    if size is None:
        inputs.append(helper.make_tensor_value_info("size", TensorProto.INT64, [4]))
    node = helper.make_node("AffineGrid", ["theta", "size"], ["grid"], name="n1", align_corners=aligned)
    outputs = [helper.make_tensor_value_info("grid", TensorProto.FLOAT, None)]
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs, constants), opset_imports=[helper.make_opsetid("", 20)]
    )
    return load(model.SerializeToString())


def _lines(extents: list[int], aligned: int) -> list[Array]:
    return [np.linspace(-1, 1, n) if aligned else (2 * np.arange(n) + 1) / n - 1 for n in extents]


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("extents", [[2, 3], [4, 2, 3]])
def test_each_place_is_mapped(extents: list[int], aligned: int) -> None:
    """theta by (x, y, (z,) 1), x along the last axis: between the borders, or from end to end."""
    rank = len(extents)
    theta = np.random.default_rng(1).standard_normal((2, rank, rank + 1)).astype(np.float32)
    grids = np.meshgrid(*_lines(extents, aligned), indexing="ij")
    places = np.stack([*grids[::-1], np.ones(extents)], -1)
    want = np.einsum("...j,nij->n...i", places, theta)
    got = reference.run(_load(("N", rank, rank + 1), [2, 1, *extents], aligned), {"theta": theta})["grid"]
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_the_size_may_come_with_a_call() -> None:
    """Extents are bound from the size of the call, and its batch must be that of theta."""
    graph, theta = _load(("N", 2, 3), None), np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    got = reference.run(graph, {"theta": theta, "size": np.array([1, 3, 1, 2])})["grid"]
    assert got.tolist() == [[[[-0.5, 0], [0.5, 0]]]]
    with pytest.raises(InputError):
        reference.run(graph, {"theta": theta, "size": np.array([2, 3, 1, 2])})


def test_a_single_aligned_place_is_refused() -> None:
    """Both ends of one place are the same: runtimes differ on where it is."""
    with pytest.raises(UnsupportedOpError, match="extent 1, on which runtimes differ"):
        _load((1, 2, 3), [1, 1, 1, 2], aligned=1)
