"""RNN, LSTM and GRU against ONNX Runtime: directions, lengths, states, peepholes, activations, layouts, symbols."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.contract import InputSpec
from cuvil_core.errors import ModelError
from cuvil_core.importer.onnx import load
from cuvil_core.passes import run
from graph_checks import interpreted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Array = np.ndarray[Any, np.dtype[Any]]
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
FUNCTIONS = {"RNN": 1, "LSTM": 3, "GRU": 2}
TIMES, BATCH, INPUT, HIDDEN = 4, 3, 2, 5


class Layer:
    """A model of one layer with random weights, and a feed of it."""

    def __init__(self, kind: str, direction: str, seed: int, attributes: Mapping[str, Any], given: set[str]) -> None:
        self.random = np.random.default_rng(seed)
        self.kind, self.sides = kind, 2 if direction == "bidirectional" else 1
        gates = GATES[kind]
        inputs = {
            "X": self.normal(TIMES, BATCH, INPUT),
            "W": self.normal(self.sides, gates * HIDDEN, INPUT),
            "R": self.normal(self.sides, gates * HIDDEN, HIDDEN),
            "B": self.normal(self.sides, 2 * gates * HIDDEN),
            "lengths": np.array([4, 1, 3], np.int32),
            "h": self.normal(self.sides, BATCH, HIDDEN),
            "c": self.normal(self.sides, BATCH, HIDDEN),
            "P": self.normal(self.sides, 3 * HIDDEN),
        }
        names = list(inputs)[: 8 if kind == "LSTM" else 6]
        used = [name if name in given or name in "XWR" else "" for name in names]
        outputs = ["Y", "Y_h", "Y_c"][: 3 if kind == "LSTM" else 2]
        node = helper.make_node(kind, used, outputs, direction=direction, hidden_size=HIDDEN, **attributes)
        self.feed = {name: inputs[name] for name in used if name in ("X", "lengths", "h", "c")}
        ports = [helper.make_tensor_value_info(n, _code(a), a.shape) for n, a in self.feed.items()]
        weights = [numpy_helper.from_array(inputs[name], name) for name in used if name and name not in self.feed]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph([node], "g", ports, results, weights)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def normal(self, *shape: int) -> Array:
        """Random weights."""
        return (self.random.normal(size=shape) / 2).astype(np.float32)

    def wanted(self) -> dict[str, Array]:
        """What ONNX Runtime answers."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), options)
        names = [one.name for one in session.get_outputs()]
        return dict(zip(names, session.run(names, self.feed), strict=True))

    def check(self, *specs: InputSpec) -> None:
        """The graph, as it is and optimized, gives ONNX Runtime's answers."""
        graph, want = load(self.model.SerializeToString(), specs), self.wanted()
        for found in (reference.run(graph, self.feed), reference.run(run(graph, 2)[0], self.feed)):
            for name, array in want.items():
                assert found[name].shape == array.shape
                np.testing.assert_allclose(found[name], array, 1e-4, 1e-5, err_msg=name)


def _code(array: Array) -> int:
    return int(TensorProto.INT32 if array.dtype == np.int32 else TensorProto.FLOAT)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(GATES)),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.sets(st.sampled_from(["B", "lengths", "h", "c", "P"])),
    st.booleans(),
    st.integers(0, 1 << 16),
)
def test_layers(kind: str, direction: str, given_inputs: set[str], flag: bool, seed: int) -> None:
    """Any optional inputs, in any direction, with each layer's own flag."""
    flags = {"LSTM": "input_forget", "GRU": "linear_before_reset"}
    attributes = {flags[kind]: int(flag)} if kind in flags else {}
    Layer(kind, direction, seed, attributes, given_inputs).check()


WITH_ALPHA = ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu")
WITH_BETA = ("Affine", "ScaledTanh", "HardSigmoid")


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("kind", sorted(GATES))
@pytest.mark.parametrize("name", [*WITH_ALPHA, "Relu", "Tanh", "Sigmoid", "Softsign", "Softplus"])
def test_activations(name: str, kind: str, clipped: bool) -> None:
    """Each function stands among others, with its own alpha and beta, clipped or not."""
    chosen = [name, "HardSigmoid", "Affine"][: FUNCTIONS[kind]] + ["Tanh", name, "LeakyRelu"][: FUNCTIONS[kind]]
    attributes: dict[str, Any] = {"activations": chosen} | ({"clip": 0.75} if clipped else {})
    for key, names, first in (("activation_alpha", WITH_ALPHA, 0.3), ("activation_beta", WITH_BETA, 0.2)):
        if count := sum(one in names for one in chosen):
            attributes[key] = [first + 0.1 * at for at in range(count)]
    Layer(kind, "bidirectional", 7, attributes, {"B", "h"}).check()


@pytest.mark.parametrize("kind", sorted(GATES))
def test_symbols_and_unused_outputs(kind: str) -> None:
    """Times and batch may be symbols; outputs that are left out cost no rows."""
    layer = Layer(kind, "bidirectional", 3, {}, {"B", "lengths", "h"})
    specs = (InputSpec("X", ("T", "N", INPUT)), InputSpec("lengths", ("N",)), InputSpec("h", (2, "N", HIDDEN)))
    layer.check(*specs)
    layer.model.graph.node[0].output[0] = ""
    del layer.model.graph.output[0]
    layer.check(*specs)
    graph = run(load(layer.model.SerializeToString(), specs), 2)[0]
    found = interpreted(graph, layer.feed)
    for name, array in layer.wanted().items():
        np.testing.assert_allclose(found[name], array, 1e-4, 1e-5, err_msg=name)
    loops = [op for op in load(layer.model.SerializeToString()).ops if op.blocks]
    assert all(len(op.results) == op.integer("carried") for op in loops)


@pytest.mark.parametrize("fault", [
    ({"activations": ["NoSuch"]}, "no activation 'nosuch'"),
    ({"activations": ["Tanh", "Tanh"]}, "2 activations, not 1"),
    ({"layout": 2}, "layout is 0 or 1"),
])  # fmt: skip
def test_attributes_that_do_not_fit(fault: tuple[dict[str, Any], str]) -> None:
    """A sentence names the node and what is wrong."""
    attributes, sentence = fault
    with pytest.raises(ModelError, match=rf"RNN, opset 17\): .*{sentence}"):
        load(Layer("RNN", "forward", 0, attributes, set()).model.SerializeToString())
    with pytest.raises(ModelError, match="no direction 'up'"):
        load(Layer("RNN", "up", 0, {}, set()).model.SerializeToString())
