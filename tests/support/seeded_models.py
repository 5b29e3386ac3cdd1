"""Puts seeded weights into the weightless networks of the onnx package, so that outputs vary with inputs.

Convolutions get He weights, batch norms the statistics of a seeded picture measured layer by layer, and the last layer
a scale that spreads the logits to a standard deviation of 2. The batch extent becomes symbolic (`N`).
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

LOGIT_SPREAD = 2.0


def write_seeded(name: str, out: Path, seed: int = 0) -> None:
    """Write `light_NAME` of the onnx package with seeded weights to `out`."""
    source = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.load(str(source))
    rng = np.random.default_rng(seed)
    weights = _draw(model, rng)
    _replace_fills(model, weights)
    _free_batch(model)
    picture = rng.standard_normal((2, 3, 224, 224), dtype=np.float32)
    _measure_norms(model, weights, picture)
    _spread_logits(model, weights, picture)
    onnx.checker.check_model(model)
    onnx.save(model, str(out))


def _roles(model: onnx.ModelProto) -> dict[str, tuple[str, int]]:
    return {name: (node.op_type, index) for node in model.graph.node for index, name in enumerate(node.input)}


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    held = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    shapes = {name: tuple(value.shape) for name, value in held.items() if value.dtype == np.float32}
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(int(extent) for extent in held[node.input[0]])
    return shapes


def _draw(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    roles = _roles(model)
    drawn = {}
    for name, shape in _shapes(model).items():
        op, index = roles.get(name, ("", 0))
        noise = rng.standard_normal(shape).astype(np.float32)
        if op in ("Conv", "Gemm") and index == 1:
            drawn[name] = noise * np.float32(np.sqrt(2 / np.prod(shape[1:])))
        elif op == "BatchNormalization" and index in (1, 4):
            drawn[name] = 1 + 0.1 * np.abs(noise)
        else:
            drawn[name] = 0.1 * noise
    return drawn


def _replace_fills(model: onnx.ModelProto, weights: dict[str, NDArray[np.float32]]) -> None:
    graph = model.graph
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    del graph.node[:]
    graph.node.extend(kept)
    used = {name for node in kept for name in node.input}
    others = [one for one in graph.initializer if one.name in used and one.name not in weights]
    others.extend(numpy_helper.from_array(weights[name], name) for name in sorted(used & set(weights)))
    del graph.initializer[:]
    graph.initializer.extend(others)
    inputs = [one for one in graph.input if one.name in used - {held.name for held in others}]
    del graph.input[:]
    graph.input.extend(inputs)


def _free_batch(model: onnx.ModelProto) -> None:
    model.ir_version = 4
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    targets = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for held in model.graph.initializer:
        if held.name in targets:
            extents = numpy_helper.to_array(held).copy()
            extents[0] = 0
            held.CopyFrom(numpy_helper.from_array(extents, held.name))


def _run(model: onnx.ModelProto, output: str, picture: NDArray[np.float32]) -> NDArray[np.float32]:
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    (value,) = session.run([output], {session.get_inputs()[0].name: picture})
    return np.asarray(value, np.float32)


def _store(model: onnx.ModelProto, name: str, value: NDArray[np.float32]) -> None:
    held = next(one for one in model.graph.initializer if one.name == name)
    held.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))


def _measure_norms(
    model: onnx.ModelProto, weights: dict[str, NDArray[np.float32]], picture: NDArray[np.float32]
) -> None:
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            seen = _run(model, node.input[0], picture)
            _store(model, node.input[3], seen.mean(axis=(0, 2, 3)))
            _store(model, node.input[4], seen.var(axis=(0, 2, 3)) + 1e-3)


def _spread_logits(
    model: onnx.ModelProto, weights: dict[str, NDArray[np.float32]], picture: NDArray[np.float32]
) -> None:
    softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
    last = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm")][-1]
    factor = np.float32(LOGIT_SPREAD / _run(model, softmax.input[0], picture).std())
    for name in last.input[1:]:
        _store(model, name, weights[name] * factor)
