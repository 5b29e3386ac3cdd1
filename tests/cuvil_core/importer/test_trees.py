"""Tree ensembles of ai.onnx.ml, walked by hand."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from cuvil_core import reference
from cuvil_core.errors import ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load

Array = np.ndarray[Any, np.dtype[Any]]
STUMP: dict[str, Any] = {
    "n_targets": 1,
    "tree_roots": [0],
    "nodes_featureids": [0],
    "nodes_modes": helper.make_tensor("m", onnx.TensorProto.UINT8, [1], [0]),
    "nodes_splits": helper.make_tensor("s", onnx.TensorProto.FLOAT, [1], [0.5]),
    "nodes_truenodeids": [0],
    "nodes_trueleafs": [1],
    "nodes_falsenodeids": [1],
    "nodes_falseleafs": [1],
    "leaf_targetids": [0, 0],
    "leaf_weights": helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [10.0, 20.0]),
}
REGRESSOR: dict[str, Any] = {
    "n_targets": 2,
    "nodes_treeids": [0, 0, 0, 1],
    "nodes_nodeids": [0, 1, 2, 0],
    "nodes_featureids": [1, 0, 0, 0],
    "nodes_modes": ["BRANCH_LT", "LEAF", "LEAF", "LEAF"],
    "nodes_values": [2.0, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 0],
    "target_treeids": [0, 0, 0, 1],
    "target_nodeids": [1, 2, 2, 0],
    "target_ids": [0, 0, 1, 1],
    "target_weights": [1.0, 3.0, 5.0, 0.25],
    "base_values": [100.0, 200.0],
}


def _answer(op: str, x: Array, opset: int, **attributes: Any) -> list[list[float]]:
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    graph = helper.make_graph([node], "g", [info], [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", opset)])
    found: list[list[float]] = reference.run(load(model.SerializeToString()), {"x": x})["y"].tolist()
    return found


def _rows(*rows: list[float]) -> Array:
    return np.array(rows, np.float32)


def test_a_missing_value_goes_where_the_node_says() -> None:
    """NaN fails every comparison, unless the node tracks it as true."""
    x = _rows([0.5], [0.6], [np.nan])
    assert _answer("TreeEnsemble", x, 5, **STUMP) == [[10], [20], [20]]
    assert _answer("TreeEnsemble", x, 5, **STUMP, nodes_missing_value_tracks_true=[1]) == [[10], [20], [10]]


def test_a_regressor_adds_votes_and_base_values() -> None:
    """A leaf may vote for several targets, a tree may be a leaf, and base values come on top."""
    assert _answer("TreeEnsembleRegressor", _rows([0, 1], [0, 2]), 1, **REGRESSOR) == [[101, 200.25], [103, 205.25]]


def test_the_least_vote_counts() -> None:
    """MIN joins the trees that vote for a target."""
    attributes = {**REGRESSOR, "aggregate_function": "MIN", "target_ids": [0, 0, 1, 0]}
    answer = _answer("TreeEnsembleRegressor", _rows([0, 2]), 1, **{**attributes, "base_values": [0.0, 0.0]})
    assert answer == [[0.25, 5]]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"nodes_truenodeids": [0], "nodes_trueleafs": [0]}, ModelError, "leads nowhere"),
        ({"nodes_featureids": [3]}, ModelError, "4 and 1"),
        ({"leaf_targetids": [0, 1]}, ModelError, "beyond n_targets"),
        ({"nodes_falsenodeids": [7]}, ModelError, "leads nowhere"),
        ({"post_transform": 4}, UnsupportedOpError, "PROBIT"),
    ],
)
def test_broken_trees_are_refused(change: dict[str, Any], error: type[Exception], text: str) -> None:
    """Each by a sentence, a node that leads back to itself included."""
    with pytest.raises(error, match=text):
        _answer("TreeEnsemble", _rows([0.0]), 5, **{**STUMP, **change})
