"""AffineGrid: where each place of a result lies in the input, by an affine map of coordinates in -1 .. 1."""

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of
from cuvil_core.importer.onnx.from_data import only_in_call
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Relation, product


def _affine_grid(context: Context, node: Node, operands: Operands) -> Tensor:
    """[N, places…, k] = theta [N, k, k + 1] by the coordinates (x, y, (z,) 1) of each place, x along the last axis."""
    theta, size = all_of(node, operands)
    extents = context.extents(size) if only_in_call(size) else context.dims(size, "the size")
    spatial = len(extents) - 2
    if spatial not in (2, 3) or theta.rank != 3:
        raise node.broken("it needs theta of rank 3 and a size of N, C and two or three spatial extents")
    wanted = (extents[0], Dim.of(spatial), Dim.of(spatial + 1))
    for given, needed in zip(theta.shape, wanted, strict=True):
        context.guard(given, needed)
    places = tuple(extents[2:])
    aligned = node.flag("align_corners", False)
    lines = [_line(context, node, theta.dtype, places, axis, aligned) for axis in reversed(range(spatial))]
    columns = [context.reshape(one, (product(places), 1)) for one in (*lines, context.full(theta.dtype, 1, places))]
    axes = {"batch_a": (), "batch_b": (), "contract_a": (1,), "contract_b": (2,)}
    mapped = context.transpose(context.emit("dot", context.concat(columns, 1), theta, **axes), (1, 0, 2))
    return context.reshape(mapped, (theta.shape[0], *places, spatial))


def _line(context: Context, node: Node, dtype: DType, places: tuple[Dim, ...], axis: int, aligned: bool) -> Tensor:
    """Coordinates along one axis: from border to border, at the middles of elements, or at both ends if aligned."""
    extent = places[axis]
    if aligned and extent == 1:
        raise node.unsupported("align_corners over an extent of 1, on which runtimes differ")
    if aligned:
        context.guard(2, extent, Relation.AT_MOST)
    step = context.emit("div", context.scalar(dtype, 2), context.count(extent - 1 if aligned else extent, dtype))
    half = context.scalar(dtype, 0) if aligned else context.number("mul", step, 0.5)
    start = context.number("sub", half, 1)
    number = context.emit("iota", shape=places, axis=axis, dtype=dtype)
    return context.binary("add", context.binary("mul", number, step), start)


ENTRIES: tuple[Entry, ...] = (Entry("AffineGrid", _affine_grid, since=20),)
