"""Normalizations, spelled out; what is constant in them is folded by a pass."""

from collections.abc import Sequence

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim


def _per_channel(context: Context, vector: Tensor, rank: int) -> Tensor:
    """A vector of channels laid along axis 1."""
    return context.reshape(vector, [vector.type.elements, *[1] * (rank - 2)])


def _batch_norm(context: Context, node: Node, operands: Operands) -> Tensor | tuple[Tensor, ...]:
    """x * s + (bias - mean * s) with s = scale / sqrt(variance + epsilon)"""
    x, scale, bias, mean, variance = all_of(node, operands)
    training = node.flag("training_mode", False)
    if not training and len([name for name in node.outputs if name]) > 1:
        raise node.unsupported("training mode")
    if not node.flag("spatial", True):
        raise node.unsupported("statistics of each activation (spatial is 0)")
    if x.rank < 2 or any(vector.rank != 1 for vector in (scale, bias, mean, variance)):
        raise node.broken("it needs channels on axis 1 and one number a channel")
    for vector in (scale, bias, mean, variance):
        context.guard(vector.shape[0], x.shape[1])
    if training:
        return _training_batch_norm(context, node, x, scale, bias, (mean, variance))
    deviation = context.emit("sqrt", context.number("add", variance, node.number("epsilon", 1e-5)))
    factor = context.emit("div", scale, deviation)
    shift = context.emit("sub", bias, context.emit("mul", mean, factor))
    scaled = context.binary("mul", x, _per_channel(context, factor, x.rank))
    return context.binary("add", scaled, _per_channel(context, shift, x.rank))


def _training_batch_norm(
    context: Context, node: Node, x: Tensor, scale: Tensor, bias: Tensor, running: tuple[Tensor, Tensor]
) -> tuple[Tensor, ...]:
    """Normalized by mean and variance of the batch itself; the running ones move towards them by 1 - momentum."""
    axes = (0, *range(2, x.rank))
    normal, mean, variance = _standardized(context, x, axes, node.number("epsilon", 1e-5))
    scaled = context.binary("mul", normal, _per_channel(context, context.cast(scale, x.dtype), x.rank))
    results = [context.binary("add", scaled, _per_channel(context, context.cast(bias, x.dtype), x.rank))]
    keep = node.number("momentum", 0.9)
    for old, new in zip(running, (mean, variance), strict=True):
        now = context.cast(context.reshape(new, [x.shape[1]]), old.dtype)
        moved = context.number("mul", now, 1 - keep)
        results.append(context.emit("add", context.number("mul", old, keep), moved))
    return tuple(results[: len(node.outputs)])


def _standardized(context: Context, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """((x - mean) / sqrt(variance + epsilon), mean, variance) over the axes, which stay with extent 1."""
    mean = context.mean(x, axes)
    centred = context.binary("sub", x, mean)
    variance = context.mean(context.emit("mul", centred, centred), axes)
    deviation = context.emit("sqrt", context.number("add", variance, epsilon))
    return context.binary("div", centred, deviation), mean, variance


def _normalized(context: Context, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """((x - mean) / sqrt(variance + epsilon), mean, 1 / deviation) over the axes, which stay with extent 1."""
    mean = context.mean(x, axes)
    centred = context.binary("sub", x, mean)
    variance = context.mean(context.emit("mul", centred, centred), axes)
    inverse = context.emit("reciprocal", context.emit("sqrt", context.number("add", variance, epsilon)))
    return context.binary("mul", centred, inverse), mean, inverse


def _layer_norm(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    x, scale, bias = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    axes = range(resolve_axis(node.integer("axis", -1), x.rank), x.rank)
    normal, mean, inverse = _normalized(context, x, axes, node.number("epsilon", 1e-5))
    result = context.emit("mul", normal, context.stretch(scale, x.shape))
    if bias is not None:
        result = context.emit("add", result, context.stretch(bias, x.shape))
    return (result, mean, inverse)[: len(node.outputs)]


def _rms_norm(context: Context, node: Node, operands: Operands) -> Tensor:
    """x / sqrt(mean of x * x + epsilon) * scale"""
    x, scale = all_of(node, operands)
    axes = range(resolve_axis(node.integer("axis", -1), x.rank), x.rank)
    square = context.mean(context.emit("mul", x, x), axes)
    root = context.emit("sqrt", context.number("add", square, node.number("epsilon", 1e-5)))
    normal = context.binary("mul", x, context.emit("reciprocal", root))
    return context.emit("mul", normal, context.stretch(scale, x.shape))


def _lp_norm(context: Context, node: Node, operands: Operands) -> Tensor:
    """x by the sum of |x| or the root of the sum of squares along the axis; 0 where that is 0"""
    x, power = need(node, operands, 0), node.integer("p", 2)
    if power not in (1, 2):
        raise node.broken(f"p must be 1 or 2, not {power}")
    axis = (resolve_axis(node.integer("axis", -1), x.rank),)
    terms = context.emit("abs", x) if power == 1 else context.emit("mul", x, x)
    total = context.reduce("sum", terms, axis)
    norm = context.stretch(total if power == 1 else context.emit("sqrt", total), x.shape)
    return context.emit("select", context.number("eq", norm, 0), context.like(x, 0), context.emit("div", x, norm))


def _instance_norm(context: Context, node: Node, operands: Operands) -> Tensor:
    x, scale, bias = all_of(node, operands)
    normal, _, _ = _normalized(context, x, range(2, x.rank), node.number("epsilon", 1e-5))
    scaled = context.binary("mul", normal, _per_channel(context, scale, x.rank))
    return context.binary("add", scaled, _per_channel(context, bias, x.rank))


def _group_norm(context: Context, node: Node, operands: Operands) -> Tensor:
    x, scale, bias = all_of(node, operands)
    groups = node.integer("num_groups")
    if groups < 1 or x.rank < 2:
        raise node.broken(f"its channels do not split into {groups} groups")
    if node.opset < 21:
        raise node.unsupported("scale and bias a group")
    inner = context.quotient(x.shape[1], groups)
    apart = context.reshape(x, [x.shape[0], Dim.of(groups), inner, *x.shape[2:]])
    normal, _, _ = _normalized(context, apart, range(2, apart.rank), node.number("epsilon", 1e-5))
    joined = context.reshape(normal, x.shape)
    scaled = context.binary("mul", joined, _per_channel(context, scale, x.rank))
    return context.binary("add", scaled, _per_channel(context, bias, x.rank))


def _lrn(context: Context, node: Node, operands: Operands) -> Tensor:
    """x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ** beta"""
    x, size = need(node, operands, 0), node.integer("size")
    if x.rank < 3 or not 1 <= size <= 1 << 16:
        raise node.broken("it needs N, C, a spatial axis and a positive size")
    area = x.type.elements.exact_div(x.shape[0] * x.shape[1])
    if area is None:
        raise node.unsupported("an empty shape")
    squares = context.reshape(context.emit("mul", x, x), [x.shape[0], Dim.of(1), x.shape[1], area])
    low = (size - 1) // 2
    total = context.emit(
        "window_reduce",
        squares,
        kind="sum",
        window=(size, 1),
        strides=(1, 1),
        pads=(low, 0, size - 1 - low, 0),
        dilations=(1, 1),
    )
    mean = context.number("mul", context.reshape(total, x.shape), node.number("alpha", 1e-4) / size)
    base = context.number("add", mean, node.number("bias", 1.0))
    return context.emit("div", x, context.number("pow", base, node.number("beta", 0.75)))


ENTRIES: tuple[Entry, ...] = (
    Entry("BatchNormalization", _batch_norm),
    Entry("LayerNormalization", _layer_norm, since=17),
    Entry("InstanceNormalization", _instance_norm),
    Entry("GroupNormalization", _group_norm, since=18),
    Entry("RMSNormalization", _rms_norm, since=23),
    Entry("LpNormalization", _lp_norm),
    Entry("LRN", _lrn),
)
