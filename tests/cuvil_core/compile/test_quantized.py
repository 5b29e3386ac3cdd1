"""A quantized network as tools write it, compiled: the numbers of the reference on every instruction set."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import passes
from cuvil_core.importer.onnx import load
from graph_checks import check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def quantized_model() -> bytes:
    """Quantize, convolve and multiply in integers, dequantize."""
    rng = np.random.default_rng(5)
    held = {
        "s": np.float32(0.03),
        "z": np.uint8(120),
        "w": rng.integers(-128, 127, (20, 3, 3, 3)).astype(np.int8),
        "ws": rng.uniform(0.001, 0.01, 20).astype(np.float32),
        "wz": np.zeros(20, np.int8),
        "b": rng.integers(-3000, 3000, 20).astype(np.int32),
        "ys": np.float32(0.1),
        "yz": np.uint8(90),
        "m": rng.integers(-128, 127, (9, 5)).astype(np.int8),
        "mz": np.array([1, -2, 3, 0, 5], np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearConv", ["q", "s", "z", "w", "ws", "wz", "ys", "yz", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("DequantizeLinear", ["c", "ys", "yz"], ["f"]),
        helper.make_node("MatMulInteger", ["c", "m", "yz", "mz"], ["i"]),
    ]
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", 9])],
        [
            helper.make_tensor_value_info("f", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("i", TensorProto.INT32, None),
        ],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("level", [0, 2])
def test_quantized_networks_compile(level: int, tmp_path: Path) -> None:
    """Every integer is equal, at two sets of extents and two levels."""
    graph, _ = passes.run(load(quantized_model()), level)
    check(graph, ({"N": 1, "H": 7}, {"N": 2, "H": 18}), tmp_path)
