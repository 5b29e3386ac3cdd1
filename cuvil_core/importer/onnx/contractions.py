"""MatMul, Gemm, Conv and ConvTranspose."""

from dataclasses import replace

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.windows import MAX_WINDOW, Windows, read_windows, window_attributes
from cuvil_core.ir import Dim, Relation


def matmul(context: Context, node: Node, operands: Operands) -> Tensor:
    """numpy.matmul's meaning as dots."""
    a, b = all_of(node, operands)
    if a.rank == 0 or b.rank == 0:
        raise node.broken("its inputs must not be scalars")
    if a.rank <= 2 or b.rank <= 2:
        return _dot(context, a, b, 0)
    batch = context.common([a.shape[:-2], b.shape[:-2]])
    a, b = context.stretch(a, (*batch, *a.shape[-2:])), context.stretch(b, (*batch, *b.shape[-2:]))
    return _dot(context, a, b, len(batch))


def _dot(context: Context, a: Tensor, b: Tensor, batch: int) -> Tensor:
    """The last axis of a by the last but one of b; where b has batch axes and a none, they are moved in front."""
    inner = max(0, b.rank - 2)
    context.guard(a.shape[-1], b.shape[inner])
    axes = tuple(range(batch))
    result = context.emit("dot", a, b, batch_a=axes, batch_b=axes, contract_a=(a.rank - 1,), contract_b=(inner,))
    free_a, free_b = a.rank - 1 - batch, b.rank - 1 - batch
    if free_a == 1 and free_b > 1:
        return context.transpose(result, [*range(1, free_b), 0, free_b])
    return result


def _gemm(context: Context, node: Node, operands: Operands) -> Tensor:
    a, b, c = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    if a.rank != 2 or b.rank != 2:
        raise node.broken("A and B must be matrices")
    at_a, at_b = int(not node.flag("transA", False)), int(node.flag("transB", False))
    context.guard(a.shape[at_a], b.shape[at_b])
    result = context.emit("dot", a, b, batch_a=(), batch_b=(), contract_a=(at_a,), contract_b=(at_b,))
    result = _scaled(context, result, node.number("alpha", 1.0))
    if c is None:
        return result
    addend = _scaled(context, c, node.number("beta", 1.0))
    return context.emit("add", result, context.stretch(addend, result.shape))


def _scaled(context: Context, x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else context.number("mul", x, factor)


def window_of(node: Node, w: Tensor) -> tuple[int, ...]:
    """The spatial extents of the weights, which the attribute must repeat if it is there."""
    extents = [extent.constant for extent in w.shape[2:]]
    if None in extents or not extents:
        raise node.unsupported("weights of symbolic extents")
    size = tuple(extent for extent in extents if extent is not None)
    if node.integers("kernel_shape", size) != size:
        raise node.broken("kernel_shape differs from the weights")
    return size


def _conv(context: Context, node: Node, operands: Operands) -> Tensor:
    x, w, bias = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    return add_bias(context, node, convolve(context, node, x, w), bias)


def convolve(context: Context, node: Node, x: Tensor, w: Tensor) -> Tensor:
    """conv by the node's window attributes; the border is 0."""
    if x.rank != w.rank:
        raise node.broken("its input and weights have different ranks")
    groups = node.integer("group", 1)
    context.guard(w.shape[1] * groups, x.shape[1])
    padded, windows = read_windows(context, node, x, window_of(node, w), 0)
    return context.emit(
        "conv",
        padded,
        w,
        strides=windows.strides,
        pads=windows.pads,
        dilations=windows.dilations,
        base_dilations=(1,) * windows.spatial,
        groups=groups,
    )


def add_bias(context: Context, node: Node, x: Tensor, bias: Tensor | None) -> Tensor:
    """x plus one number a channel (axis 1)."""
    if bias is None:
        return x
    if bias.rank != 1:
        raise node.broken("its bias must be a vector")
    context.guard(bias.shape[0], x.shape[1])
    return context.binary("add", x, context.reshape(bias, [bias.shape[0], *[1] * (x.rank - 2)]))


def _conv_transpose(context: Context, node: Node, operands: Operands) -> Tensor:
    """Convolution over the input with strides - 1 zeros between its elements, by the flipped weights."""
    x, w, bias = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    if x.rank != w.rank:
        raise node.broken("its input and weights have different ranks")
    groups, size = node.integer("group", 1), window_of(node, w)
    context.guard(w.shape[0], x.shape[1])
    windows = window_attributes(node, x, size)
    extra = node.integers("output_padding", (0,) * windows.spatial)
    if len(extra) != windows.spatial or not 0 <= min(extra) <= max(extra) <= MAX_WINDOW:
        raise node.broken("output_padding does not fit")
    mode = node.text("auto_pad", "NOTSET")
    if mode.startswith("SAME") or node.has("output_shape"):
        windows, extra = _fitted(node, x, windows, extra, mode)
    result = context.emit(
        "conv",
        x,
        _flipped(context, node, w, groups),
        strides=(1,) * windows.spatial,
        pads=_full_pads(windows, extra),
        dilations=windows.dilations,
        base_dilations=windows.strides,
        groups=groups,
    )
    return add_bias(context, node, _cropped(context, result, windows, extra), bias)


def _fitted(
    node: Node, x: Tensor, windows: Windows, extra: tuple[int, ...], mode: str
) -> tuple[Windows, tuple[int, ...]]:
    """Pads that give the wanted extents, the odd one in front but for SAME_UPPER; what lacks is added at the end."""
    totals = [_surplus(node, x, windows, extra, i) for i in range(windows.spatial)]
    if mode.startswith("SAME") and min(totals) < 0:
        raise node.unsupported("auto_pad SAME for less than the stride needs, on which runtimes differ")
    halves = [max(0, total) // 2 for total in totals]
    rests = [max(0, total) - half for total, half in zip(totals, halves, strict=True)]
    pads = (*halves, *rests) if mode == "SAME_UPPER" else (*rests, *halves)
    more = tuple(have + max(0, -total) for have, total in zip(extra, totals, strict=True))
    return replace(windows, pads=pads), more


def _surplus(node: Node, x: Tensor, windows: Windows, extra: tuple[int, ...], i: int) -> int:
    """By how much the result without pads is longer than wanted: by output_shape, else extent * stride."""
    extent, stride = x.shape[2 + i], windows.strides[i]
    shape = node.integers("output_shape", ())
    if shape and len(shape) not in (windows.spatial, x.rank):
        raise node.broken(f"output_shape does not fit {windows.spatial} spatial axes")
    wanted = Dim.of(shape[len(shape) - windows.spatial + i]) if shape else extent * stride
    total = ((extent - 1) * stride + extra[i] + windows.reach(i) - wanted).constant
    if total is None:
        raise node.unsupported("output_shape beside a symbolic extent")
    if (wanted.constant or 0) < 0 or abs(total) > MAX_WINDOW:
        raise node.broken(f"output_shape {list(shape)} does not fit its input")
    return total


def _full_pads(windows: Windows, extra: tuple[int, ...]) -> tuple[int, ...]:
    """reach - 1 - pad on each side; where that is negative 0, and `_cropped` takes the rest off."""
    low = [max(0, windows.reach(i) - 1 - windows.pads[i]) for i in range(windows.spatial)]
    high = [max(0, windows.reach(i) - 1 - windows.pads[windows.spatial + i] + extra[i]) for i in range(windows.spatial)]
    return (*low, *high)


def _cropped(context: Context, x: Tensor, windows: Windows, extra: tuple[int, ...]) -> Tensor:
    for i in range(windows.spatial):
        low = max(0, windows.pads[i] - windows.reach(i) + 1)
        high = max(0, windows.pads[windows.spatial + i] - extra[i] - windows.reach(i) + 1)
        size = x.shape[2 + i] - low - high
        context.guard(1, size, Relation.AT_MOST)
        x = context.slice(x, 2 + i, low, size)
    return x


def _flipped(context: Context, node: Node, w: Tensor, groups: int) -> Tensor:
    """I, O/g, k… → O, I/g, k… with each spatial axis reversed."""
    if groups < 1:
        raise node.broken(f"its input channels do not split into {groups} groups")
    inner = context.quotient(w.shape[0], groups)
    spatial = list(w.shape[2:])
    apart = context.reshape(w, [Dim.of(groups), inner, w.shape[1], *spatial])
    swapped = context.transpose(apart, [0, 2, 1, *range(3, 3 + len(spatial))])
    joined = context.reshape(swapped, [w.shape[1] * groups, inner, *spatial])
    for axis in range(2, joined.rank):
        if joined.shape[axis] != 1:
            joined = context.slice(joined, axis, joined.shape[axis] - 1, joined.shape[axis], -1)
    return joined


ENTRIES: tuple[Entry, ...] = (
    Entry("MatMul", matmul),
    Entry("Gemm", _gemm),
    Entry("Conv", _conv),
    Entry("ConvTranspose", _conv_transpose),
)
