"""Activation functions, spelled out in primitives."""

import math

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType


def _relu(context: Context, node: Node, operands: Operands) -> Tensor:
    return context.number("max", need(node, operands, 0), 0)


def _negative_part(context: Context, x: Tensor, negative: Tensor) -> Tensor:
    """`negative` where x < 0, else x."""
    return context.emit("select", context.number("lt", x, 0), negative, x)


def _leaky_relu(context: Context, node: Node, operands: Operands) -> Tensor:
    return leaky_relu(context, need(node, operands, 0), node.number("alpha", 0.01))


def leaky_relu(context: Context, x: Tensor, alpha: float) -> Tensor:
    """alpha * x where x < 0, else x"""
    return _negative_part(context, x, context.number("mul", x, alpha))


def _prelu(context: Context, node: Node, operands: Operands) -> Tensor:
    x, slope = all_of(node, operands)
    return _negative_part(context, x, context.emit("mul", x, context.stretch(slope, x.shape)))


def _expm1(context: Context, x: Tensor) -> Tensor:
    return context.number("sub", context.emit("exp", x), 1)


def _elu(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return _negative_part(context, x, context.number("mul", _expm1(context, x), node.number("alpha", 1.0)))


def _celu(context: Context, node: Node, operands: Operands) -> Tensor:
    x, alpha = need(node, operands, 0), node.number("alpha", 1.0)
    scaled = _expm1(context, context.number("div", x, alpha))
    return _negative_part(context, x, context.number("mul", scaled, alpha))


def _selu(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    alpha, gamma = node.number("alpha", 1.6732631921768188), node.number("gamma", 1.0507010221481323)
    negative = context.number("mul", _expm1(context, x), alpha)
    return context.number("mul", _negative_part(context, x, negative), gamma)


def _hard_sigmoid(context: Context, node: Node, operands: Operands) -> Tensor:
    """max(0, min(1, alpha * x + beta))"""
    x = need(node, operands, 0)
    return hard_sigmoid(context, x, node.number("alpha", 0.2), node.number("beta", 0.5))


def hard_sigmoid(context: Context, x: Tensor, alpha: float, beta: float) -> Tensor:
    """max(0, min(1, alpha * x + beta))"""
    line = context.number("add", context.number("mul", x, alpha), beta)
    return context.number("max", context.number("min", line, 1), 0)


def _hard_swish(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.emit("mul", x, hard_sigmoid(context, x, 1 / 6, 0.5))


def softplus_of(context: Context, x: Tensor) -> Tensor:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    tail = context.emit("exp", context.emit("neg", context.emit("abs", x)))
    return context.emit("add", context.number("max", x, 0), context.emit("log", context.number("add", tail, 1)))


def _softplus(context: Context, node: Node, operands: Operands) -> Tensor:
    return softplus_of(context, need(node, operands, 0))


def _softsign(context: Context, node: Node, operands: Operands) -> Tensor:
    return softsign_of(context, need(node, operands, 0))


def softsign_of(context: Context, x: Tensor) -> Tensor:
    """x / (1 + |x|)"""
    return context.emit("div", x, context.number("add", context.emit("abs", x), 1))


def _mish(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.emit("mul", x, context.emit("tanh", softplus_of(context, x)))


def _swish(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.emit("mul", x, context.emit("sigmoid", context.number("mul", x, node.number("alpha", 1.0))))


def _thresholded_relu(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.emit("select", context.number("gt", x, node.number("alpha", 1.0)), x, context.like(x, 0))


def _shrink(context: Context, node: Node, operands: Operands) -> Tensor:
    """x + bias where x < -lambd, x - bias where x > lambd, else 0; fractions are cut off integers only at the end"""
    given = need(node, operands, 0)
    x = given if given.dtype.is_float else context.cast(given, DType.FLOAT64)
    bias, edge = node.number("bias", 0.0), node.number("lambd", 0.5)
    middle = context.emit("select", context.number("gt", x, edge), context.number("sub", x, bias), context.like(x, 0))
    shrunk = context.emit("select", context.number("lt", x, -edge), context.number("add", x, bias), middle)
    return context.cast(shrunk, given.dtype)


def _gelu(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    kind = node.text("approximate", "none")
    if kind == "none":
        inner = context.emit("erf", context.number("mul", x, math.sqrt(0.5)))
    elif kind == "tanh":
        cube = context.number("mul", context.emit("mul", x, context.emit("mul", x, x)), 0.044715)
        inner = context.emit("tanh", context.number("mul", context.emit("add", x, cube), math.sqrt(2 / math.pi)))
    else:
        raise node.broken(f"there is no approximation {kind!r}")
    return context.emit("mul", context.number("mul", x, 0.5), context.number("add", inner, 1))


def _softmax_axes(node: Node, x: Tensor) -> tuple[int, ...]:
    """Since opset 13 one axis; before, all axes from it on, as if flattened to two."""
    if node.opset >= 13:
        return (resolve_axis(node.integer("axis", -1), x.rank),)
    return tuple(range(resolve_axis(node.integer("axis", 1), x.rank), x.rank))


def _shifted(context: Context, node: Node, x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    axes = _softmax_axes(node, x)
    return context.binary("sub", x, context.reduce("max", x, axes)), axes


def _softmax(context: Context, node: Node, operands: Operands) -> Tensor:
    shifted, axes = _shifted(context, node, need(node, operands, 0))
    powers = context.emit("exp", shifted)
    return context.binary("div", powers, context.reduce("sum", powers, axes))


def _log_softmax(context: Context, node: Node, operands: Operands) -> Tensor:
    shifted, axes = _shifted(context, node, need(node, operands, 0))
    total = context.reduce("sum", context.emit("exp", shifted), axes)
    return context.binary("sub", shifted, context.emit("log", total))


ENTRIES: tuple[Entry, ...] = (
    Entry("Relu", _relu),
    Entry("LeakyRelu", _leaky_relu),
    Entry("PRelu", _prelu),
    Entry("Elu", _elu),
    Entry("Celu", _celu, since=12),
    Entry("Selu", _selu),
    Entry("HardSigmoid", _hard_sigmoid),
    Entry("HardSwish", _hard_swish, since=14),
    Entry("Softplus", _softplus),
    Entry("Softsign", _softsign),
    Entry("Mish", _mish, since=18),
    Entry("Swish", _swish, since=24),
    Entry("ThresholdedRelu", _thresholded_relu, since=10),
    Entry("Shrink", _shrink, since=9),
    Entry("Gelu", _gelu, since=20),
    Entry("Softmax", _softmax),
    Entry("LogSoftmax", _log_softmax),
)
