"""Elements picked by index tensors: GatherElements, GatherND, ReverseSequence."""

from collections.abc import Sequence

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Relation, product


def places_of(context: Context, indices: Tensor, extent: Dim) -> Tensor:
    """The indices as int64 places; negative ones count from the end, and the call ends where one lies outside."""
    numbers = context.cast(indices, DType.INT64)
    wrapped = context.binary("add", numbers, context.count(extent, DType.INT64))
    picked = context.emit("select", context.number("lt", numbers, 0), wrapped, numbers)
    return context.emit("in_bounds", picked, extent=(extent,))


def counted(context: Context, shape: Sequence[Dim], axis: int) -> Tensor:
    """0, 1, … along the axis, int64."""
    return context.emit("iota", shape=tuple(shape), axis=axis, dtype=DType.INT64)


def flat_places(context: Context, places: Sequence[Tensor], extents: Sequence[Dim]) -> Tensor:
    """Row-major positions of elements whose indices along each axis are given as int64 tensors."""
    total = places[0]
    for place, extent in zip(places[1:], extents[1:], strict=True):
        wide = context.binary("mul", total, context.count(extent, DType.INT64))
        total = context.binary("add", wide, place)
    return total


def rows_at(context: Context, data: Tensor, places: Sequence[Tensor]) -> Tensor:
    """data[places[0], places[1], …]: the places are within bounds, what axes they leave over stays behind."""
    known = len(places)
    rows = context.reshape(data, [product(data.shape[:known]), *data.shape[known:]])
    return context.emit("gather", rows, flat_places(context, places, data.shape[:known]), axis=0)


def element_places(context: Context, node: Node, data: Tensor, indices: Tensor, axis: int) -> list[Tensor]:
    """Along `axis` the indices, along each other axis the place of the index itself."""
    if indices.rank != data.rank:
        raise node.broken("its data and indices have different ranks")
    for at in range(data.rank):
        if at != axis:
            context.guard(indices.shape[at], data.shape[at], Relation.AT_MOST)
    return [
        places_of(context, indices, data.shape[axis]) if at == axis else counted(context, indices.shape, at)
        for at in range(data.rank)
    ]


def tuple_places(context: Context, node: Node, data: Tensor, indices: Tensor, batch: int) -> list[Tensor]:
    """The places that the last axis of `indices` lists, behind those of the batch axes."""
    width = indices.shape[-1].constant if indices.rank else None
    if width is None:
        raise node.unsupported("indices whose last extent is symbolic") if indices.rank else node.broken("no indices")
    if not (0 <= batch < indices.rank and width >= 1 and batch + width <= data.rank):
        raise node.broken(f"indices of {width} numbers behind {batch} batch axes do not fit rank {data.rank}")
    shape = indices.shape[:-1]
    for at in range(batch):
        context.guard(indices.shape[at], data.shape[at])
    places = [counted(context, shape, at) for at in range(batch)]
    for at in range(width):
        column = context.reshape(context.slice(indices, indices.rank - 1, at, 1), shape)
        places.append(places_of(context, column, data.shape[batch + at]))
    return places


def _gather_elements(context: Context, node: Node, operands: Operands) -> Tensor:
    data, indices = all_of(node, operands)
    axis = resolve_axis(node.integer("axis", 0), data.rank)
    return rows_at(context, data, element_places(context, node, data, indices, axis))


def _gather_nd(context: Context, node: Node, operands: Operands) -> Tensor:
    data, indices = all_of(node, operands)
    return rows_at(context, data, tuple_places(context, node, data, indices, node.integer("batch_dims", 0)))


def _reverse_sequence(context: Context, node: Node, operands: Operands) -> Tensor:
    """x[length - 1 - t] for t below the length of the batch entry, x[t] from there on."""
    x, lengths = all_of(node, operands)
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if x.rank < 2 or {batch, time} != {0, 1} or lengths.rank != 1:
        raise node.broken("it needs batch_axis and time_axis to be 0 and 1 and one length a batch entry")
    context.guard(lengths.shape[0], x.shape[batch])
    grid = x.shape[:2]
    known = context.emit("in_bounds", context.cast(lengths, DType.INT64), extent=(x.shape[time] + 1,))
    length = context.stretch(
        context.reshape(known, [lengths.shape[0], 1] if batch == 0 else [1, lengths.shape[0]]), grid
    )
    at = counted(context, grid, time)
    back = context.emit("sub", context.number("sub", length, 1), at)
    source = context.emit("select", context.emit("lt", at, length), back, at)
    other = counted(context, grid, batch)
    return rows_at(context, x, [source, other] if time == 0 else [other, source])


ENTRIES: tuple[Entry, ...] = (
    Entry("GatherElements", _gather_elements, since=11),
    Entry("GatherND", _gather_nd, since=11),
    Entry("ReverseSequence", _reverse_sequence, since=10),
)
