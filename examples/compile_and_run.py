"""A small model from nothing to its answer: `python examples/compile_and_run.py`.

Writes model.onnx and model.cuvil into the current folder, which the commands of README.md take from there.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cuvil

WEIGHTS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
BIAS = np.array([0.5, 0.0, -0.5], np.float32)


def model() -> onnx.ModelProto:
    """y = relu(x · weights + bias), for any number N of rows"""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    nodes = [helper.make_node("Gemm", ["x", "weights", "bias"], ["sum"]), helper.make_node("Relu", ["sum"], ["y"])]
    constants = [numpy_helper.from_array(WEIGHTS, "weights"), numpy_helper.from_array(BIAS, "bias")]
    graph = helper.make_graph(nodes, "small", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Compile, run, save, load, run again, and compare with NumPy."""
    onnx.save(model(), "model.onnx")
    module = cuvil.compile("model.onnx")
    x = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    y = module(x)
    module.save("model.cuvil")
    np.testing.assert_array_equal(cuvil.load("model.cuvil")(x), y)
    np.testing.assert_allclose(y, np.maximum(x @ WEIGHTS + BIAS, 0), rtol=1e-5, atol=1e-6)
    print(module)
    print(y)


if __name__ == "__main__":
    main()
