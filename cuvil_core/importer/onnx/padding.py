"""Pad: a border of one value, of the edge's elements, or of elements further in."""

from collections.abc import Callable

from cuvil_core.importer.onnx import from_data
from cuvil_core.importer.onnx.context import Context, resolve_axes
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Relation

Widths = list[Dim]
Sources = Callable[[Context, Tensor, Tensor], Tensor]
"""(place counted from the first element, extent) → place within 0 … extent - 1."""


def _pad(context: Context, node: Node, operands: Operands) -> Tensor:
    x, mode = need(node, operands, 0), node.text("mode", "constant")
    if mode != "constant" and mode not in _BORDERS:
        raise node.broken(f"there is no mode {mode!r}")
    if node.opset >= 11 and any(_comes_late(operands, at) for at in (1, 3)):
        return _pad_by_data(context, node, operands, x, mode)
    low, high = _widths(context, node, operands, x.rank)
    x = _cut(context, x, low, high)
    if mode == "constant":
        return _with_value(context, node, operands, x, low, high)
    for axis in range(x.rank):
        if low[axis] != 0 or high[axis] != 0:
            x = _bordered(context, x, axis, low[axis], high[axis], _BORDERS[mode])
    return x


def _comes_late(operands: Operands, index: int) -> bool:
    """True where only a call knows the elements."""
    given = optional(operands, index)
    return given is not None and given.content is None


def _pad_by_data(context: Context, node: Node, operands: Operands, x: Tensor, mode: str) -> Tensor:
    pads, value, axes = need(node, operands, 1), optional(operands, 2), optional(operands, 3)
    count = context.length(pads) // 2
    if context.length(pads) != 2 * (x.rank if axes is None else context.length(axes)):
        raise node.broken("it needs two pads an axis")
    halves = [context.slice(pads, 0, start, count) for start in (0, count)]
    if axes is not None:
        nothing = context.full(DType.INT64, 0, (x.rank,))
        halves = [from_data.spread(context, axes, half, x.rank, nothing) for half in halves]
    low, high = ([from_data.element(context, half, axis) for axis in range(x.rank)] for half in halves)
    if mode == "constant":
        fill = context.scalar(x.dtype, 0) if value is None else context.reshape(value, ())
        return from_data.padded(context, x, low, high, fill)
    for axis in range(x.rank):
        x = _bordered_by_data(context, x, axis, low[axis], high[axis], _BORDERS[mode])
    return x


def _bordered_by_data(context: Context, x: Tensor, axis: int, low: Tensor, high: Tensor, sources: Sources) -> Tensor:
    """As with known widths: what negative ones cut off is gone first, and then something must be left."""
    cut = [context.number("max", context.emit("neg", width), 0) for width in (low, high)]
    extent = context.count(x.shape[axis], DType.INT64)
    left = context.emit("sub", context.emit("sub", extent, cut[0]), cut[1])
    size = context.emit("add", context.emit("add", low, extent), high)
    empty = context.number("eq", size, 0)
    context.check(context.emit("or", empty, context.number("ge", left, 1)), f"something of axis {axis} is left to pad")
    line = counted(context, [context.extent(size)], 0)
    place = context.binary("sub", line, context.number("max", low, 0))
    return context.emit("gather", x, context.binary("add", sources(context, place, left), cut[0]), axis=axis)


def _widths(context: Context, node: Node, operands: Operands, rank: int) -> tuple[Widths, Widths]:
    """Low and high for each axis."""
    if node.opset < 11:
        given, axes = list(map(Dim.of, node.integers("pads"))), tuple(range(rank))
    else:
        given, named = context.dims(need(node, operands, 1), "the pads"), optional(operands, 3)
        axes = tuple(range(rank)) if named is None else resolve_axes(context.ints(named, "the axes"), rank)
    if len(given) != 2 * len(axes):
        raise node.broken("it needs two pads an axis")
    low, high = [Dim.of(0)] * rank, [Dim.of(0)] * rank
    for at, axis in enumerate(axes):
        low[axis], high[axis] = given[at], given[at + len(axes)]
    return low, high


def _cut(context: Context, x: Tensor, low: Widths, high: Widths) -> Tensor:
    """What negative widths cut off is gone before anything is added; they are 0 from then on."""
    for axis in range(x.rank):
        cuts = [max(0, -(width.constant or 0)) for width in (low[axis], high[axis])]
        if any(cuts):
            size = x.shape[axis] - sum(cuts)
            context.guard(0, size, Relation.AT_MOST)
            x = context.slice(x, axis, cuts[0], size)
            low[axis], high[axis] = low[axis] + cuts[0], high[axis] + cuts[1]
    return x


def _with_value(context: Context, node: Node, operands: Operands, x: Tensor, low: Widths, high: Widths) -> Tensor:
    given = optional(operands, 2) if node.opset >= 11 else None
    if given is None:
        return pad(context, x, low, high, node.number("value", 0.0) if node.opset < 11 else 0)
    if given.type.elements != 1:
        raise node.broken("its value must be a scalar")
    numbers = given.numbers()
    if numbers is not None:
        return pad(context, x, low, high, numbers[0])
    inside = pad(context, context.full(DType.BOOL, 1, x.shape), list(low), list(high), 0)
    value = context.stretch(context.reshape(given, ()), inside.shape)
    return context.emit("select", inside, pad(context, x, low, high, 0), value)


def _bordered(context: Context, x: Tensor, axis: int, low: Dim, high: Dim, sources: Sources) -> Tensor:
    extent = x.shape[axis]
    context.guard(1, extent, Relation.AT_MOST)
    line = counted(context, [low + extent + high], 0)
    place = context.binary("sub", line, context.count(low, DType.INT64))
    return context.emit("gather", x, sources(context, place, context.count(extent, DType.INT64)), axis=axis)


def _edge(context: Context, place: Tensor, extent: Tensor) -> Tensor:
    last = context.number("sub", extent, 1)
    return context.number("max", context.binary("min", place, last), 0)


def _wrap(context: Context, place: Tensor, extent: Tensor) -> Tensor:
    return context.binary("mod", place, extent, kind="floor")


def _reflect(context: Context, place: Tensor, extent: Tensor) -> Tensor:
    """There and back in 2·(extent - 1) steps; the border itself is not repeated."""
    period = context.number("mul", context.number("sub", extent, 1), 2)
    step = context.binary("mod", place, period, kind="floor")
    return context.emit("min", step, context.binary("sub", period, step))


_BORDERS: dict[str, Sources] = {"edge": _edge, "wrap": _wrap, "reflect": _reflect}
ENTRIES: tuple[Entry, ...] = (Entry("Pad", _pad),)
