"""Models with If, Loop and Scan in ONNX's own text, and what ONNX Runtime answers to them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
from onnx import parser

from cuvil_core import reference
from cuvil_core.ir import Graph
from cuvil_core.passes import run
from graph_checks import interpreted

Array = np.ndarray[Any, np.dtype[Any]]


def model(signature: str, body: str, opset: int = 17) -> bytes:
    """A model in ONNX's own text."""
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {signature} {{ {body} }}')
    return bytes(made.SerializeToString())


def control(graph: Graph) -> list[str]:
    """The ops of control flow of the outer level."""
    return [op.name for op in graph.ops if op.blocks]


def agree(made: bytes, graph: Graph, feed: Mapping[str, Array]) -> None:
    """Reference, passes and program give ONNX Runtime's outputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(made, options)
    outputs = [one.name for one in session.get_outputs()]
    want = dict(zip(outputs, session.run(outputs, dict(feed)), strict=True))
    given = {name: array for name, array in feed.items() if name in graph.input_names}
    optimized = run(graph, 2)[0]
    for found in (reference.run(graph, given), reference.run(optimized, given), interpreted(optimized, given)):
        for name in outputs:
            assert (found[name].shape, found[name].dtype) == (want[name].shape, want[name].dtype), name
            np.testing.assert_allclose(found[name], want[name], 1e-5, 1e-6, err_msg=name)


X = np.arange(12, dtype=np.float32).reshape(4, 3) / 8 - 0.5

SIDES = """
  y = If (flag) <
    then_branch = t () => (float[N, 3] a) { w = Constant <value = float[3] {1.0, 2.0, 3.0}> () a = Add(x, w) },
    else_branch = e () => (float[N, 3] b) { b = Neg(z) }
  >
"""

LOOP = """
  y, rows = Loop ({turns}, {flag}, x) <
    body = b (int64 i, bool go_on, float[N, 3] state) => (bool next, float[N, 3] added, float[N, 3] row)
      <float step = {{0.5}}> {{
        number = Cast <to = 1> (i)
        scaled = Mul(number, step)
        moved = Add(state, scaled)
        added = Add(moved, outside)
        row = Neg(state)
        {condition}
      }}
  >
"""
