"""Reshaping, slicing, joining, repeating."""

from cuvil_core.importer.onnx import from_data
from cuvil_core.importer.onnx.context import Context, known_at_least, resolve_axes, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import Dim, DType, Relation, product


def _reshape(context: Context, node: Node, operands: Operands) -> Tensor:
    x, target = all_of(node, operands)
    if target.rank != 1:
        raise node.broken("the target shape must be a vector")
    copies = not node.flag("allowzero", False)
    if target.content is None:
        return context.reshape(x, from_data.reshape_target(context, x, target, copies))
    wanted = context.dims(target, "the target shape")
    shape: list[Dim | None] = []
    for axis, extent in enumerate(wanted):
        if extent == 0 and copies:
            if axis >= x.rank:
                raise node.broken(f"there is no axis {axis} to copy the extent of")
            extent = x.shape[axis]
        if extent.constant is not None and extent.constant < -1:
            raise node.broken(f"the target extent {extent} is negative")
        shape.append(None if extent == -1 else extent)
    return context.reshape(x, _fill(context, node, x, shape))


def _fill(context: Context, node: Node, x: Tensor, shape: list[Dim | None]) -> list[Dim]:
    """The one missing extent by division; a fixed batch of the file gives way to the caller's symbol."""
    known = [extent for extent in shape if extent is not None]
    missing = len(shape) - len(known)
    if missing > 1:
        raise node.broken("two target extents are -1")
    if missing == 0:
        return _rebatch(context, x, known)
    total, rest = x.type.elements, product(known)
    if rest == 0:
        raise node.broken("an extent of -1 cannot be found beside 0")
    rebatched = _rebatch_beside(context, shape, total)
    if rebatched is not None:
        return rebatched
    found = context.quotient(total, rest)
    return [found if extent is None else extent for extent in shape]


def _rebatch(context: Context, x: Tensor, shape: list[Dim]) -> list[Dim]:
    """Where the first extent is the file's fixed batch and the rest is filled exactly, the batch stays symbolic."""
    if not shape or not x.shape or (x.type.elements - product(shape)).constant == 0:
        return shape
    for symbol, fixed in context.rebatched.items():
        if shape[0] == fixed and x.type.elements == product(shape[1:]) * Dim.symbol(symbol):
            return [Dim.symbol(symbol), *shape[1:]]
    return shape


def _rebatch_beside(context: Context, shape: list[Dim | None], total: Dim) -> list[Dim] | None:
    """The same with an extent of -1: the symbol goes in front, not into that extent."""
    for symbol, fixed in context.rebatched.items():
        if shape[0] is None or shape[0] != fixed:
            continue
        first = Dim.symbol(symbol)
        found = total.exact_div(product(extent for extent in shape[1:] if extent is not None) * first)
        if found is not None:
            return [first, *(found if extent is None else extent for extent in shape[1:])]
    return None


def _flatten(context: Context, node: Node, operands: Operands) -> Tensor:
    x, axis = need(node, operands, 0), node.integer("axis", 1)
    if not -x.rank <= axis <= x.rank:
        raise node.broken(f"axis {axis} is outside of rank {x.rank}")
    axis = axis + x.rank if axis < 0 else axis
    return context.reshape(x, [product(x.shape[:axis]), product(x.shape[axis:])])


def _axes(context: Context, node: Node, operands: Operands, index: int = 1) -> tuple[int, ...] | None:
    """Axes from the attribute (old opsets) or the input; None when neither is given."""
    given = optional(operands, index)
    if given is not None:
        return tuple(context.ints(given, "the axes"))
    return node.integers("axes") if node.has("axes") else None


def _from_data(operands: Operands, index: int = 1) -> Tensor | None:
    """The operand at the index where it is given and only a call knows its elements."""
    given = optional(operands, index)
    return given if from_data.only_in_call(given) else None


def _squeeze(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    if (given := _from_data(operands)) is not None:
        return from_data.squeezed(context, x, given)
    axes = _axes(context, node, operands)
    if axes is None:
        axes = tuple(axis for axis, extent in enumerate(x.shape) if extent == 1)
        for extent in x.shape:
            if extent.constant is None:  # the rank is fixed: a call in which it is 1 would have one axis less
                context.guard(2, extent, Relation.AT_MOST)
    dropped = resolve_axes(axes, x.rank)
    for axis in dropped:
        context.guard(x.shape[axis], 1)
    return context.reshape(x, [extent for axis, extent in enumerate(x.shape) if axis not in dropped])


def _unsqueeze(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    if (given := _from_data(operands)) is not None:
        return from_data.unsqueezed(context, x, given)
    axes = _axes(context, node, operands)
    if axes is None:
        raise node.broken("its axes are missing")
    added = resolve_axes(axes, x.rank + len(axes))
    rest = iter(x.shape)
    shape = [Dim.of(1) if axis in added else next(rest) for axis in range(x.rank + len(added))]
    return context.reshape(x, shape)


def _transpose(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    perm = node.integers("perm", tuple(reversed(range(x.rank))))
    if sorted(perm) != list(range(x.rank)):
        raise node.broken(f"perm {list(perm)} does not permute rank {x.rank}")
    return context.transpose(x, perm)


def _concat(context: Context, node: Node, operands: Operands) -> Tensor:
    tensors = all_of(node, operands)
    axis = resolve_axis(node.integer("axis"), tensors[0].rank)
    if any(tensor.rank != tensors[0].rank for tensor in tensors):
        raise node.broken("its inputs have different ranks")
    return context.concat(tensors, axis)


def _expand(context: Context, node: Node, operands: Operands) -> Tensor:
    x, target = all_of(node, operands)
    if target.content is None:
        return context.stretch(x, from_data.expanded_shape(context, x, target))
    shape = context.common([x.shape, tuple(context.dims(target, "the target shape"))])
    return context.stretch(x, shape)


def _tile(context: Context, node: Node, operands: Operands) -> Tensor:
    x, given = all_of(node, operands)
    repeats = context.extents(given)
    if len(repeats) != x.rank or any(known_at_least(-repeat, 1) for repeat in repeats):
        raise node.broken("it needs one repeat an axis, none of them negative")
    apart = [extent for pair in zip([Dim.of(1)] * x.rank, x.shape, strict=True) for extent in pair]
    wide = [extent for pair in zip(repeats, x.shape, strict=True) for extent in pair]
    stretched = context.stretch(context.reshape(x, apart), tuple(wide))
    return context.reshape(stretched, [repeat * extent for repeat, extent in zip(repeats, x.shape, strict=True)])


def _gather(context: Context, node: Node, operands: Operands) -> Tensor:
    data, indices = all_of(node, operands)
    axis = resolve_axis(node.integer("axis", 0), data.rank)
    extent = data.shape[axis]
    if indices.content is None:
        wrapped = context.binary("add", indices, context.count(extent, indices.dtype))
        picked = context.emit("select", context.number("lt", indices, 0), wrapped, indices)
        return context.emit("gather", data, context.emit("in_bounds", picked, extent=(extent,)), axis=axis)
    places = [_place(context, index, extent) for index in indices.content.ravel()]
    if len(places) == 1:
        kept = context.slice(data, axis, places[0], 1)
        return context.reshape(kept, [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]])
    known = Tensor.of_content(indices.dtype, to_content(places, indices.content.shape))
    return context.emit("gather", data, known, axis=axis)


def _place(context: Context, index: Dim, extent: Dim) -> Dim:
    """A negative index counts from the end; guards keep it within the extent."""
    if index.constant is not None and index.constant < 0:
        index = index + extent
    context.guard(0, index, Relation.AT_MOST)
    context.guard(index + 1, extent, Relation.AT_MOST)
    return index


def _split(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    x, given = need(node, operands, 0), optional(operands, 1)
    axis, parts = resolve_axis(node.integer("axis", 0), x.rank), len(node.outputs)
    if given is not None or node.has("split"):
        sizes = context.extents(given) if given is not None else list(map(Dim.of, node.integers("split")))
        if len(sizes) != parts:
            raise node.broken(f"it has {parts} outputs for {len(sizes)} sizes")
        context.guard(sum(sizes, Dim.of(0)), x.shape[axis])
    else:
        sizes = _even_parts(context, node, x.shape[axis], parts)
    starts = [sum(sizes[:at], Dim.of(0)) for at in range(parts)]
    return tuple(context.slice(x, axis, start, size) for start, size in zip(starts, sizes, strict=True))


def _even_parts(context: Context, node: Node, extent: Dim, parts: int) -> list[Dim]:
    """Equal sizes; since opset 18 the last may be smaller, or empty."""
    if node.opset < 18 or extent.exact_div(parts) is not None:
        return [context.quotient(extent, parts)] * parts
    size = extent.ceil_div(parts)
    last = extent - size * (parts - 1)
    context.guard(0, last, Relation.AT_MOST)
    return [size] * (parts - 1) + [last]


def pad(context: Context, x: Tensor, low: list[Dim], high: list[Dim], value: float | int) -> Tensor:
    """pad; negative widths cut off."""
    for axis in range(x.rank):
        cut_low, cut_high = _cut(low[axis]), _cut(high[axis])
        if cut_low or cut_high:
            size = x.shape[axis] - cut_low - cut_high
            context.guard(0, size, Relation.AT_MOST)
            x = context.slice(x, axis, cut_low, size)
            low[axis], high[axis] = low[axis] + cut_low, high[axis] + cut_high
    if all(width == 0 for width in (*low, *high)):
        return x
    fill = context.scalar(x.dtype, value).payload
    assert fill is not None
    return context.emit("pad", x, low=tuple(low), high=tuple(high), value=fill)


def _cut(width: Dim) -> int:
    return max(0, -(width.constant or 0))


def _depth_to_space(context: Context, node: Node, operands: Operands) -> Tensor:
    x, block = need(node, operands, 0), node.integer("blocksize")
    if x.rank != 4 or block < 1:
        raise node.broken("it needs rank 4 and a positive block size")
    n, c, h, w = x.shape
    inner = context.quotient(c, block * block)
    columns_first = node.text("mode", "DCR") == "CRD"
    split: list[Dim | int] = [n, inner, block, block, h, w] if columns_first else [n, block, block, inner, h, w]
    perm = [0, 1, 4, 2, 5, 3] if columns_first else [0, 3, 4, 1, 5, 2]
    apart = context.transpose(context.reshape(x, split), perm)
    return context.reshape(apart, [n, inner, h * block, w * block])


def _space_to_depth(context: Context, node: Node, operands: Operands) -> Tensor:
    x, block = need(node, operands, 0), node.integer("blocksize")
    if x.rank != 4 or block < 1:
        raise node.broken("it needs rank 4 and a positive block size")
    n, c, h, w = x.shape
    rows, columns = context.quotient(h, block), context.quotient(w, block)
    apart = context.reshape(x, [n, c, rows, Dim.of(block), columns, Dim.of(block)])
    perm = [0, 1, 3, 5, 2, 4] if node.text("mode", "DCR") == "CRD" else [0, 3, 5, 1, 2, 4]
    return context.reshape(context.transpose(apart, perm), [n, c * block * block, rows, columns])


def _same(context: Context, node: Node, operands: Operands) -> Tensor:
    return need(node, operands, 0)


def _dropout(context: Context, node: Node, operands: Operands) -> Tensor | tuple[Tensor, ...]:
    """The identity, also in training where nothing is dropped."""
    x, ratio, training = need(node, operands, 0), optional(operands, 1), optional(operands, 2)
    if training is not None:
        chance = context.scalar(x.dtype, 0.5) if ratio is None else context.reshape(ratio, ())
        keeps = context.number("eq", chance, 0)
        keeps = context.emit("or", keeps, context.emit("not", context.reshape(training, ())))
        if keeps.numbers() == [False]:
            raise node.unsupported("training mode with a ratio above 0, whose result is random")
        if keeps.numbers() is None:
            context.check(keeps, "training_mode is false or the ratio is 0, since what is dropped is random,")
    if len(node.outputs) == 1:
        return x
    return x, context.full(DType.BOOL if node.opset >= 10 else x.dtype, 1, x.shape)


ENTRIES: tuple[Entry, ...] = (
    Entry("Reshape", _reshape),
    Entry("Flatten", _flatten),
    Entry("Squeeze", _squeeze),
    Entry("Unsqueeze", _unsqueeze),
    Entry("Transpose", _transpose),
    Entry("Concat", _concat),
    Entry("Expand", _expand, since=8),
    Entry("Tile", _tile),
    Entry("Gather", _gather),
    Entry("Split", _split),
    Entry("DepthToSpace", _depth_to_space),
    Entry("SpaceToDepth", _space_to_depth),
    Entry("Identity", _same),
    Entry("Dropout", _dropout),
)
