"""Which elements: the greatest, those that are not zero, those that a condition names, boxes that do not overlap."""

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.from_data import INT64, counted, scalar
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, product


def sort_order(context: Context, x: Tensor, descending: bool) -> Tensor:
    """The places of the last axis' elements in order; equals keep theirs."""
    x = context.cast(x, DType.FLOAT32) if x.dtype is DType.BFLOAT16 else x
    x = context.cast(x, DType.UINT8) if x.dtype is DType.BOOL else x
    return context.emit("sort_order", x, descending=descending)


def taken_along_last(context: Context, x: Tensor, places: Tensor) -> Tensor:
    """x[..., places[...]] for leading axes that both share."""
    length = x.shape[-1]
    rows = product(x.shape[:-1])
    flat = context.reshape(places, (rows, places.shape[-1]))
    row = context.emit("iota", shape=flat.shape, axis=0, dtype=INT64)
    begin = context.emit("mul", row, context.stretch(context.count(length, INT64), flat.shape))
    found = context.emit("gather", context.reshape(x, (rows * length,)), context.emit("add", begin, flat), axis=0)
    return context.reshape(found, places.shape)


def _top_k(context: Context, node: Node, operands: Operands) -> tuple[Tensor, Tensor]:
    x = need(node, operands, 0)
    axis = resolve_axis(node.integer("axis", -1), x.rank)
    size = Dim.of(node.integer("k")) if node.opset < 10 else context.extent(need(node, operands, 1))
    largest = node.opset < 11 or node.flag("largest", True)
    context.guard_at_most(size, x.shape[axis])
    perm = [*(at for at in range(x.rank) if at != axis), axis]
    back = sorted(range(x.rank), key=perm.__getitem__)
    moved = context.transpose(x, perm)
    order = context.slice(sort_order(context, moved, largest), x.rank - 1, 0, size)
    values = taken_along_last(context, moved, order)
    return context.transpose(values, back), context.transpose(order, back)


def places_of(context: Context, mask: Tensor) -> Tensor:
    """The places in row-major order at which a bool tensor is true; their number is an extent from data."""
    flat = context.reshape(mask, (mask.type.elements,))
    count = context.reduce("sum", context.cast(flat, INT64), (0,), keepdims=False)
    return context.emit("positions", flat, count=(context.extent(count),))


def _non_zero(context: Context, node: Node, operands: Operands) -> Tensor:
    """[rank, count]: the index of each element that is not zero."""
    x = need(node, operands, 0)
    mask = x if x.dtype is DType.BOOL else context.number("ne", x, 0)
    if x.rank == 0:
        mask = context.reshape(mask, (1,))
    return context.concat(_unraveled(context, places_of(context, mask), mask.shape), 0)


def _unraveled(context: Context, places: Tensor, shape: tuple[Dim, ...]) -> list[Tensor]:
    """Row-major places as one row [1, count] of indices an axis."""
    rows: list[Tensor] = []
    for extent in reversed(shape):
        size = context.stretch(context.count(extent, INT64), places.shape)
        size = context.number("max", size, 1)
        rows.append(context.reshape(context.emit("mod", places, size, kind="floor"), (1, *places.shape)))
        places = context.emit("div", places, size)
    return rows[::-1]


def _compress(context: Context, node: Node, operands: Operands) -> Tensor:
    """The slices along the axis (of the flattened tensor without one) whose condition holds."""
    x, condition = all_of(node, operands)
    if condition.rank != 1:
        raise node.broken("the condition must be a vector")
    axis = resolve_axis(node.integer("axis"), x.rank) if node.has("axis") else 0
    x = x if node.has("axis") else context.reshape(x, (x.type.elements,))
    context.guard_at_most(condition.shape[0], x.shape[axis])
    return context.emit("gather", x, places_of(context, condition), axis=axis)


def _non_max_suppression(context: Context, node: Node, operands: Operands) -> Tensor:
    """[count, 3]: batch, class and box of all boxes chosen, by batch, class and falling score."""
    boxes, scores = need(node, operands, 0), need(node, operands, 1)
    limits = [optional(operands, at) for at in (2, 3, 4)]
    most = scalar(context, 0) if limits[0] is None else context.reshape(limits[0], ())
    overlap, least = (
        context.scalar(DType.FLOAT32, missing) if given is None else context.reshape(given, ())
        for given, missing in zip(limits[1:], (0.0, -float("inf")), strict=True)
    )
    centered = node.flag("center_point_box", False)
    chosen = context.emit("suppress", boxes, scores, most, overlap, least, centered=centered)
    flat = context.reshape(chosen, (chosen.type.elements,))
    places = places_of(context, context.number("ge", flat, 0))
    batch, kind, _ = _unraveled(context, places, chosen.shape)
    box = context.reshape(context.emit("gather", flat, places, axis=0), (1, *places.shape))
    return context.transpose(context.concat([batch, kind, box], 0), (1, 0))


MAX_COLUMNS = 1024
"""Rows are put in order column by column."""


def _unique(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    """(the distinct rows, the first place of each, the row of each place, how often each occurs)."""
    x, axis = need(node, operands, 0), 0
    if node.has("axis"):
        axis = resolve_axis(node.integer("axis"), x.rank)
        x = context.transpose(x, [axis, *(at for at in range(x.rank) if at != axis)])
    else:
        x = context.reshape(x, (x.type.elements,))
    table = context.reshape(x, (x.shape[0], product(x.shape[1:])))
    order = _row_order(context, node, table)
    count, line = order.shape[0], counted(context, order.shape[0])
    new = _differs_from_former(context, table, order, line)
    starts = places_of(context, new)
    group = context.number("sub", context.emit("prefix_reduce", context.cast(new, INT64), kind="sum", axis=0), 1)
    inverse = context.emit("gather", group, sort_order(context, order, False), axis=0)
    firsts = context.emit("gather", order, starts, axis=0)
    counts = context.emit("sub", _next_starts(context, starts, count), starts)
    if not node.flag("sorted", True):
        by_first = sort_order(context, firsts, False)
        firsts, counts = (context.emit("gather", one, by_first, axis=0) for one in (firsts, counts))
        inverse = context.emit("gather", sort_order(context, by_first, False), inverse, axis=0)
    rows = context.emit("gather", x, firsts, axis=0)
    back = [*range(1, axis + 1), 0, *range(axis + 1, x.rank)]
    return context.transpose(rows, back), firsts, inverse, counts


def _row_order(context: Context, node: Node, table: Tensor) -> Tensor:
    """The places of the rows [count, columns] in order: stably by each column, the last one first."""
    columns = table.shape[1].constant
    if columns is None or columns > MAX_COLUMNS:
        raise node.unsupported(f"rows of {table.shape[1]} elements, more than {MAX_COLUMNS}")
    order = counted(context, table.shape[0])
    for column in reversed(range(columns)):
        keys = context.reshape(context.slice(table, 1, column, 1), (table.shape[0],))
        moved = context.emit("gather", keys, order, axis=0)
        order = context.emit("gather", order, sort_order(context, moved, False), axis=0)
    return order


def _differs_from_former(context: Context, table: Tensor, order: Tensor, line: Tensor) -> Tensor:
    """For each row in order whether it begins a group of equal ones."""
    former = context.number("max", context.number("sub", line, 1), 0)
    here, there = (
        context.emit("gather", table, context.emit("gather", order, at, axis=0), axis=0) for at in (line, former)
    )
    apart = context.reduce("max", context.cast(context.emit("ne", here, there), DType.UINT8), (1,), keepdims=False)
    return context.emit("or", context.number("eq", line, 0), context.cast(apart, DType.BOOL))


def _next_starts(context: Context, starts: Tensor, count: Dim) -> Tensor:
    """Where the next group begins; after the last one the number of rows."""
    line, last = counted(context, starts.shape[0]), context.count(starts.shape[0] - 1, INT64)
    following = context.emit("gather", starts, context.number("add", line, 1), axis=0)
    ends = context.stretch(context.count(count, INT64), line.shape)
    return context.emit("select", context.binary("eq", line, last), ends, following)


ENTRIES: tuple[Entry, ...] = (
    Entry("Unique", _unique, since=11),
    Entry("TopK", _top_k),
    Entry("NonZero", _non_zero, since=9),
    Entry("Compress", _compress, since=9),
    Entry("NonMaxSuppression", _non_max_suppression, since=10),
)
