"""Scan of models, and damaged models of all kinds of control flow."""

import numpy as np
import pytest

from control_models import LOOP, SIDES, agree, control, model
from cuvil_core.errors import CuvilError, InternalError
from cuvil_core.importer.onnx import load
from cuvil_core.lowering import lower
from cuvil_core.passes import run
from cuvil_core.scheduling import Isa, Machine, choose

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("attributes", [
    "",
    ", scan_input_directions = [1, 0], scan_output_directions = [1]",
    ", scan_input_axes = [-1, 1], scan_output_axes = [-1]",
])  # fmt: skip
def test_scan(attributes: str) -> None:
    """Any axis, forward and backward."""
    given = "float[T, B] a, float[T, B] b" if "axes" not in attributes else "float[B, T] a, float[B, T] b"
    body = f"""
      y, rows = Scan (start, a, b) <num_scan_inputs = 2{attributes},
        body = s (float[B] state, float[B] one, float[B] other) => (float[B] sum, float[B] row) {{
          product = Mul(one, other) sum = Add(state, product) row = Sub(sum, one)
        }}
      >
    """
    made = model(f"(float[B] start, {given}) => (float[B] y, float[U, V] rows)", body)
    graph = load(made)
    assert control(graph) == ["loop"]
    shape = (5, 3) if "axes" not in attributes else (3, 5)
    values = np.arange(15, dtype=np.float32).reshape(shape) / 8
    agree(made, graph, {"start": np.ones(3, np.float32), "a": values, "b": 1 - values})


def test_scan_with_a_batch() -> None:
    """Opset 8 scans each example of a batch by itself."""
    body = """
      y, rows = Scan (, start, a) <num_scan_inputs = 1, directions = [1],
        body = s (float[2] state, float[2] one) => (float[2] sum, float[2] row) {
          sum = Add(state, one) row = Mul(sum, sum)
        }
      >
    """
    made = model("(float[B, 2] start, float[B, T, 2] a) => (float[B, 2] y, float[B, T, 2] rows)", body, opset=8)
    a = np.arange(24, dtype=np.float32).reshape(3, 4, 2) / 8
    agree(made, load(made), {"start": np.ones((3, 2), np.float32), "a": a})


DAMAGED = {
    "branch": model("(float[N, 3] x, bool flag) => (float[N, 3] y)", f"z = Exp(x) {SIDES}"),
    "loop": model(
        "(float[N, 3] x, int64 turns) => (float[N, 3] y, float[R, N, 3] rows)",
        "outside = Exp(x)" + LOOP.format(turns="turns", flag="", condition="next = Identity(go_on)"),
    ),
    "scan": model(
        "(float[2] start, float[T, 2] a) => (float[2] y, float[T, 2] rows)",
        """
        y, rows = Scan (start, a) <num_scan_inputs = 1, scan_input_directions = [1],
          body = s (float[2] s, float[2] one) => (float[2] sum, float[2] row) { sum = Add(s, one) row = Exp(sum) }
        >
        """,
    ),
    "layer": model(
        "(float[T, N, 2] x, int32[N] lengths) => (float[T, 1, N, 2] y, float[1, N, 2] h, float[1, N, 2] c)",
        """
        w = Constant <value = float[1, 8, 2] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5}> ()
        y, h, c = LSTM <hidden_size = 2, activations = ["Sigmoid", "Tanh", "Affine"], activation_alpha = [0.5]>
          (x, w, w, , lengths)
        """,
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_control_flow_is_refused_or_compiled(name: str) -> None:
    """A flipped bit anywhere ends in a sentence, or in a graph that lowers; never in a fault of the compiler."""
    data, random = DAMAGED[name], np.random.default_rng(5)
    load(data)
    ends = set()
    for _ in range(250):
        at, bit = int(random.integers(len(data))), int(random.integers(8))
        try:
            graph = load(data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :])
            optimized, _ = run(graph, 2)
            lower(optimized, choose(optimized, Machine.of(Isa.AVX2)))
            ends.add("compiled")
        except CuvilError as error:
            assert not isinstance(error, InternalError), f"bit {bit} of byte {at}: {error}"
            assert len(str(error).splitlines()) == 1
            ends.add(type(error).__name__)
    assert {"compiled", "ModelError"} <= ends
