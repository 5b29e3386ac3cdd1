"""Ops imported with symbolic extents compute what the same model with fixed extents does, which ONNX's cases hold."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from cuvil_core import passes, reference
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph
from graph_checks import assert_same, interpreted, module_of, variants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Array = np.ndarray[Any, np.dtype[Any]]
SIZES = ({"N": 1, "M": 5}, {"N": 3, "M": 8})
F32, I64 = "float32", "int64"


@dataclass(frozen=True)
class Case:
    """One node: inputs as (shape, dtype or greatest integer), constants by position in `late`'s stead."""

    op: str
    inputs: dict[str, tuple[tuple[int | str, ...], str | int]]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    names: str = ""
    """Inputs in order; by default all inputs, then all constants."""
    outputs: int = 1
    opset: int = 24
    domain: str = ""
    compiled: bool = False

    def model(self, sizes: dict[str, int] | None) -> bytes:
        """The model with these extents, or with symbols."""
        names = self.names.split() or [*self.inputs, *self.constants]
        outs = [f"y{at}" for at in range(self.outputs)]
        node = helper.make_node(
            self.op, [name if name != "_" else "" for name in names], outs, domain=self.domain, **self.attributes
        )
        values = []
        for name, (shape, kind) in self.inputs.items():
            dims = [sizes[one] if sizes is not None and isinstance(one, str) else one for one in shape]
            dtype = helper.np_dtype_to_tensor_dtype(np.dtype(kind if isinstance(kind, str) else I64))
            values.append(helper.make_tensor_value_info(name, dtype, dims))
        infos = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in outs]
        stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()]
        opsets = [helper.make_opsetid("", 24 if self.domain else self.opset)]
        opsets += [helper.make_opsetid(self.domain, self.opset)] if self.domain else []
        graph = helper.make_graph([node], "g", values, infos, stored)
        return bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())

    def feed(self, sizes: dict[str, int]) -> dict[str, Array]:
        """Random inputs of these extents; integers lie in -most … most - 1, bounds in 0 … most."""
        random = np.random.default_rng(0)
        found: dict[str, Array] = {}
        for name, (shape, kind) in self.inputs.items():
            dims = [sizes[one] if isinstance(one, str) else one for one in shape]
            if isinstance(kind, int):
                found[name] = random.integers(-kind, kind, dims) if kind > 0 else random.integers(0, 1 - kind, dims)
            else:
                found[name] = (random.normal(size=dims) * 2).astype(kind)
        return found


WINDOW = {"kernel_shape": [3], "strides": [2]}
SQUARE = {"kernel_shape": [3, 3], "strides": [2, 2]}
X2: dict[str, Any] = {"x": (("N", 3, "M"), F32)}
IMAGE: dict[str, Any] = {"x": (("N", 2, "M", 7), F32)}
CASES: dict[str, Case] = {
    "gather elements": Case("GatherElements", {**X2, "i": (("N", 3, 4), 3)}, {"axis": 2}, compiled=True),
    "gather tuples": Case("GatherND", {**X2, "i": (("N", 4, 1), 3)}, {"batch_dims": 1}),
    "reversed sequences": Case("ReverseSequence", {"x": (("M", "N", 2), F32), "n": (("N",), -5)}, compiled=True),
    "scatter elements": Case(
        "ScatterElements",
        {**X2, "i": (("N", 3, 4), 3), "u": (("N", 3, 4), F32)},
        {"axis": 2, "reduction": "add"},
        compiled=True,
    ),
    "scatter rows": Case(
        "ScatterND", {**X2, "i": ((4, 1), 1), "u": ((4, 3, "M"), F32)}, {"reduction": "max"}, compiled=True
    ),
    "a cache": Case(
        "TensorScatter",
        {"x": (("N", "M", 4), F32), "u": (("N", 2, 4), F32), "s": (("N",), -3)},
        {"mode": "circular"},
        compiled=True,
    ),
    "unpooled": Case(
        "MaxUnpool", {"x": (("N", 1, 2, 2), F32), "i": (("N", 1, 2, 2), -15)}, SQUARE | {"strides": [1, 1]}
    ),
    "columns to an image": Case(
        "Col2Im",
        {"x": (("N", 8, 12), F32)},
        {"pads": [1, 0, 0, 0]},
        {"s": np.array([4, 4]), "b": np.array([2, 2])},
        compiled=True,
    ),
    "running sums": Case("CumSum", X2, {"exclusive": 1, "reverse": 1}, {"a": np.int64(2)}, compiled=True),
    "running products by a late axis": Case("CumProd", {**X2, "a": ((), -2)}, opset=26, compiled=True),
    "hardmax": Case("Hardmax", X2, {"axis": 1}),
    "identity": Case("EyeLike", {"x": (("N", "M"), F32)}, {"k": 1}, compiled=True),
    "determinants": Case("Det", {"x": (("N", 2, 3, 3), F32)}, compiled=True),
    "einsum": Case(
        "Einsum", {"a": (("N", "M", "M"), F32), "b": (("M", 4), F32)}, {"equation": "...ii,ij->...j"}, compiled=True
    ),
    "einsum of three": Case(
        "Einsum",
        {"a": (("N", "M"), F32), "b": (("M", 4), F32), "c": ((4, "N"), F32)},
        {"equation": "ij,jk,kl"},
    ),
    "places of maxima": Case(
        "MaxPool", {"x": (("N", 2, 9, 7), F32)}, SQUARE | {"pads": [1, 1, 1, 1]}, outputs=2, compiled=True
    ),
    "maxima padded to fit": Case("MaxPool", IMAGE, SQUARE | {"auto_pad": "SAME_LOWER"}),
    "means padded to fit": Case("AveragePool", IMAGE, SQUARE | {"auto_pad": "SAME_UPPER"}, compiled=True),
    "norms of windows": Case("LpPool", X2, WINDOW | {"p": 3, "auto_pad": "SAME_UPPER"}, compiled=True),
    "transposed to fit": Case(
        "ConvTranspose",
        {"x": (("N", 2, "M"), F32)},
        {"strides": [2], "auto_pad": "SAME_UPPER"},
        {"w": np.random.default_rng(1).normal(size=(2, 3, 3)).astype(F32)},
        compiled=True,
    ),
    "reflected": Case("Pad", X2, {"mode": "reflect"}, {"p": np.array([0, -1, 2, 0, 2, 3])}, compiled=True),
    "wrapped by late widths": Case("Pad", {**X2, "p": ((6,), -2)}, {"mode": "wrap"}, compiled=True),
    "edge": Case("Pad", X2, {"mode": "edge"}, {"p": np.array([0, 1, 7, 0, 0, 2])}),
    "a sampled grid": Case(
        "GridSample",
        {"x": (("N", 2, "M", 4), F32), "g": (("N", 3, 5, 2), F32)},
        {"mode": "cubic", "padding_mode": "reflection"},
        compiled=True,
    ),
    "a sampled grid with borders": Case(
        "GridSample",
        {"x": (("N", 2, "M", 4), F32), "g": (("N", 3, 5, 2), F32)},
        {"mode": "linear", "padding_mode": "border", "align_corners": 1},
    ),
    "aligned regions": Case(
        "RoiAlign",
        {"x": (("N", 2, "M", 9), F32), "r": (("M", 4), F32), "i": (("M",), 0)},
        {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 1.5},
        compiled=True,
    ),
    "aligned regions by their size": Case(
        "RoiAlign",
        {"x": (("N", 2, "M", 9), F32), "r": (("M", 4), F32), "i": (("M",), 0)},
        {"output_height": 2, "output_width": 1, "mode": "max", "spatial_scale": 3.5},
        compiled=True,
    ),
    "a deformed convolution": Case(
        "DeformConv",
        {"x": (("N", 2, "M", 5), F32), "w": ((3, 2, 2, 2), F32), "o": (("N", 8, "M", 4), F32)},
        {"pads": [0, 0, 1, 0]},
        compiled=True,
    ),
    "a spectrum": Case(
        "DFT", {"x": (("N", "M", 6, 1), F32)}, {"onesided": 1}, {"a": np.int64(2)}, "x _ a", compiled=True
    ),
    "a spectrum in two steps": Case(
        "DFT", {"x": (("N", 12, "M", 2), F32)}, {"inverse": 1, "axis": 1}, opset=17, compiled=True
    ),
    "a spectrum of symbolic length": Case("DFT", {"x": (("N", "M", 2), F32)}, {"inverse": 1}, compiled=True),
    "framed spectra": Case(
        "STFT",
        {"x": (("N", 40, 1), F32), "w": (("M",), F32)},
        {},
        {"s": np.int64(3)},
        "x s w",
        compiled=True,
    ),
    "a window of late size": Case("HannWindow", {"n": ((), -9)}, opset=17, compiled=True),
    "n-grams": Case(
        "TfIdfVectorizer",
        {"x": (("N", "M"), -3)},
        {
            "mode": "IDF",
            "min_gram_length": 1,
            "max_gram_length": 2,
            "max_skip_count": 1,
            "ngram_counts": [0, 2],
            "ngram_indexes": [0, 1, 2, 3],
            "pool_int64s": [1, 2, 0, 1, 2, 3],
            "weights": [0.5, 1.0, 2.0, 4.0],
        },
        compiled=True,
    ),
    "training statistics": Case(
        "BatchNormalization",
        {"x": (("N", 3, "M"), F32), **{name: ((3,), F32) for name in "sbmv"}},
        {"training_mode": 1},
        outputs=3,
        compiled=True,
    ),
    "a step of Adam": Case(
        "Adam",
        {"r": ((), F32), "t": ((), -3), **{name: (("N", "M"), F32) for name in "xgvh"}},
        {"norm_coefficient": 0.01},
        outputs=3,
        opset=1,
        domain="ai.onnx.preview.training",
        compiled=True,
    ),
    "a step with momentum": Case(
        "Momentum",
        {"r": ((), F32), "t": ((), -3), **{name: (("N", "M"), F32) for name in "xgv"}},
        {"norm_coefficient": 0.01, "alpha": 0.9, "beta": 0.5, "mode": "nesterov"},
        outputs=2,
        opset=1,
        domain="ai.onnx.preview.training",
    ),
    "trees": Case(
        "TreeEnsemble",
        {"x": (("N", 2), F32)},
        {
            "n_targets": 2,
            "aggregate_function": 0,
            "tree_roots": [0, 2],
            "nodes_featureids": [0, 1, 1],
            "nodes_modes": helper.make_tensor("m", onnx.TensorProto.UINT8, [3], [0, 3, 6]),
            "nodes_splits": helper.make_tensor("s", onnx.TensorProto.FLOAT, [3], [0.5, -0.25, 0.0]),
            "nodes_truenodeids": [1, 0, 2],
            "nodes_trueleafs": [0, 1, 1],
            "nodes_falsenodeids": [1, 2, 3],
            "nodes_falseleafs": [1, 1, 1],
            "nodes_missing_value_tracks_true": [1, 0, 0],
            "leaf_targetids": [0, 1, 0, 1],
            "leaf_weights": helper.make_tensor("w", onnx.TensorProto.FLOAT, [4], [1.0, 2.0, 4.0, 8.0]),
            "membership_values": helper.make_tensor("v", onnx.TensorProto.FLOAT, [3], [1.0, -1.0, float("nan")]),
        },
        opset=5,
        domain="ai.onnx.ml",
        compiled=True,
    ),
    "labels": Case(
        "LabelEncoder",
        {"x": (("N", "M"), 3)},
        {"keys_int64s": [-1, 2, -1], "values_floats": [1.5, 2.5, 3.5], "default_float": -7.0},
        opset=4,
        domain="ai.onnx.ml",
        compiled=True,
    ),
    "columns": Case(
        "ArrayFeatureExtractor",
        {"x": (("N", 4), F32), "i": ((1, "M"), 3)},
        opset=1,
        domain="ai.onnx.ml",
    ),
    "resized by scales": Case(
        "Resize", IMAGE, {"mode": "linear"}, {"s": np.array([1, 1, 1.7, 0.6], F32)}, "x _ s", compiled=True
    ),
    "resized to late sizes": Case(
        "Resize",
        {**IMAGE, "z": ((2,), -6)},
        {"mode": "cubic", "axes": [3, 2], "antialias": 1},
        {},
        "x _ _ z",
        compiled=True,
    ),
    "cropped and resized": Case(
        "Resize",
        IMAGE,
        {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0},
        {"r": np.array([0, 0, 0.2, -0.1, 1, 1, 0.9, 1.2], F32), "z": np.array([1, 2, 4, 6])},
        "x r _ z",
    ),
}


def _both(case: Case, sizes: dict[str, int]) -> tuple[Graph, dict[str, Array], dict[str, Array]]:
    """(the symbolic graph, inputs, what the model with fixed extents gives)."""
    feed = case.feed(sizes)
    fixed = load(case.model(sizes))
    return load(case.model(None)), feed, reference.run(fixed, feed)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_symbols_change_nothing(name: str, sizes: dict[str, int]) -> None:
    """At either size the symbolic graph gives what the fixed one does, before the passes and after."""
    graph, feed, wanted = _both(CASES[name], sizes)
    for form in (graph, passes.run(graph, 2)[0]):
        assert_same(reference.run(form, feed), wanted, 1e-4)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.compiled])
def test_compiled_families(name: str, tmp_path: Path) -> None:
    """The program's interpreter and the code of each variant give what the fixed model does, at both sizes."""
    graph = passes.run(load(CASES[name].model(None)), 2)[0]
    modules = [module_of(graph, variant, tmp_path) for variant in variants()]
    for sizes in SIZES:
        _, feed, wanted = _both(CASES[name], sizes)
        assert_same(interpreted(graph, feed), wanted, 1e-4)
        for module in modules:
            assert_same(module.run(feed), wanted, 1e-4)
