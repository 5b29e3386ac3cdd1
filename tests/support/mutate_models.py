"""Well-formed models that mean something else: other attributes, other ops, other small constants."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import AttributeProto, numpy_helper

KINDRED: tuple[tuple[str, ...], ...] = (
    ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"),
    ("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid",
     "Floor", "Ceil", "Identity", "Softmax", "LogSoftmax", "Sign", "GlobalMaxPool", "GlobalAveragePool"),
    ("MaxPool", "AveragePool"),
    ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2", "ReduceSumSquare"),
)  # fmt: skip
"""Ops that may stand for each other in a file that is still well formed."""


def mutated(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(what was changed, the file): up to two changes each."""
    choose = random.Random(seed)
    for _ in range(count):
        model = onnx.ModelProto.FromString(data)
        changes = [choose.choice(MUTATIONS)(model, choose) for _ in range(choose.choice((1, 1, 2)))]
        del model.graph.value_info[:]
        yield ", ".join(filter(None, changes)) or "nothing", model.SerializeToString()


def _node(model: onnx.ModelProto, choose: random.Random) -> onnx.NodeProto:
    return choose.choice([node for node in model.graph.node if node.op_type != "Constant"])


def _attribute(model: onnx.ModelProto, choose: random.Random) -> str:
    node = _node(model, choose)
    kinds = (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.INTS)
    known = [attribute for attribute in node.attribute if attribute.type in kinds]
    if not known:
        return ""
    attribute = choose.choice(known)
    if attribute.type == AttributeProto.INT:
        attribute.i += choose.choice((-2, -1, 1, 2))
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f *= choose.choice((0.0, 0.5, 2.0, -1.0))
    elif attribute.ints:
        attribute.ints[choose.randrange(len(attribute.ints))] += choose.choice((-1, 1, 2))
    return f"{attribute.name} of {node.op_type}"


def _op_type(model: onnx.ModelProto, choose: random.Random) -> str:
    node = _node(model, choose)
    family = next((family for family in KINDRED if node.op_type in family), ())
    if not family:
        return ""
    before, node.op_type = node.op_type, choose.choice(family)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    try:
        known = onnx.defs.get_schema(node.op_type, opset, "").attributes
    except onnx.defs.SchemaError:
        return f"{before} to unknown {node.op_type}"
    kept = [attribute for attribute in node.attribute if attribute.name in known]
    del node.attribute[:]
    node.attribute.extend(kept)
    return f"{before} to {node.op_type}"


def _constant(model: onnx.ModelProto, choose: random.Random) -> str:
    held = [a.t for node in model.graph.node if node.op_type == "Constant" for a in node.attribute if a.name == "value"]
    integers = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
    small = [t for t in (*model.graph.initializer, *held) if t.data_type in integers and 0 < np.prod(t.dims) <= 8]
    if not small:
        return ""
    tensor = choose.choice(small)
    values, name = numpy_helper.to_array(tensor).copy(), tensor.name
    values.reshape(-1)[choose.randrange(values.size)] += choose.choice((-2, -1, 1, 2, 3))
    tensor.CopyFrom(numpy_helper.from_array(values, name))
    return f"constant {name} to {values.tolist()}"


def _inputs(model: onnx.ModelProto, choose: random.Random) -> str:
    node = _node(model, choose)
    if len(node.input) < 2:
        return ""
    a, b = choose.sample(range(len(node.input)), 2)
    node.input[a], node.input[b] = node.input[b], node.input[a]
    return f"inputs {a} and {b} of {node.op_type} exchanged"


Mutation = Callable[[onnx.ModelProto, random.Random], str]
MUTATIONS: tuple[Mutation, ...] = (_attribute, _attribute, _op_type, _op_type, _constant, _inputs)
