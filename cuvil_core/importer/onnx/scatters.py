"""Elements written at index tensors: Scatter, ScatterElements, ScatterND, TensorScatter, MaxUnpool, Col2Im."""

from collections.abc import Sequence

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.lookups import counted, element_places, flat_places, tuple_places
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.windows import MAX_WINDOW
from cuvil_core.ir import Dim, DType, Relation, product

_KINDS = {"none": "set", "add": "sum", "mul": "prod", "max": "max", "min": "min"}


def _kind(node: Node) -> str:
    reduction = node.text("reduction", "none")
    if reduction not in _KINDS:
        raise node.broken(f"there is no reduction {reduction!r}")
    return _KINDS[reduction]


def _scattered(context: Context, data: Tensor, places: Sequence[Tensor], updates: Tensor, kind: str) -> Tensor:
    """data with updates at `places`, one tensor for each of the leading axes; first to last in row-major order."""
    known = len(places)
    count = places[0].type.elements
    rows = context.reshape(data, [product(data.shape[:known]), *data.shape[known:]])
    new = context.reshape(updates, [count, *data.shape[known:]])
    at = context.reshape(flat_places(context, places, data.shape[:known]), [count])
    return context.reshape(context.emit("scatter", rows, at, new, kind=kind), data.shape)


def _scatter_elements(context: Context, node: Node, operands: Operands) -> Tensor:
    data, indices, updates = all_of(node, operands)
    if data.rank == 0 or updates.rank != indices.rank:
        raise node.broken("its data, indices and updates need equal ranks of at least 1")
    for a, b in zip(indices.shape, updates.shape, strict=True):
        context.guard(a, b)
    axis = resolve_axis(node.integer("axis", 0), data.rank)
    return _scattered(context, data, element_places(context, node, data, indices, axis), updates, _kind(node))


def _scatter_nd(context: Context, node: Node, operands: Operands) -> Tensor:
    data, indices, updates = all_of(node, operands)
    places = tuple_places(context, node, data, indices, 0)
    wanted = (*indices.shape[:-1], *data.shape[len(places) :])
    if updates.rank != len(wanted):
        raise node.broken("its updates do not fit its indices and data")
    for a, b in zip(updates.shape, wanted, strict=True):
        context.guard(a, b)
    return _scattered(context, data, places, updates, _kind(node))


def _tensor_scatter(context: Context, node: Node, operands: Operands) -> Tensor:
    """The cache with the new entries of each batch entry from its own place on; circular goes on at the front."""
    cache, new, starts = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    if cache.rank < 2 or new.rank != cache.rank:
        raise node.broken("its cache and update need equal ranks of at least 2")
    axis, mode = resolve_axis(node.integer("axis", -2), cache.rank), node.text("mode", "linear")
    if axis == 0 or mode not in ("linear", "circular"):
        raise node.broken("it needs an axis behind the batch and the mode linear or circular")
    for at in range(cache.rank):
        context.guard(new.shape[at], cache.shape[at], Relation.AT_MOST if at == axis else Relation.EQUAL)
    grid = new.shape[: axis + 1]
    place = counted(context, grid, axis)
    if starts is not None:
        context.guard(starts.type.elements, cache.shape[0])
        column = context.reshape(context.cast(starts, DType.INT64), [cache.shape[0], *[1] * axis])
        place = context.emit("add", context.stretch(column, grid), place)
    if mode == "circular":
        length = context.stretch(context.count(cache.shape[axis], DType.INT64), grid)
        place = context.emit("mod", place, length, kind="floor")
    place = context.emit("in_bounds", place, extent=(cache.shape[axis],))
    return _scattered(context, cache, [*(counted(context, grid, at) for at in range(axis)), place], new, "set")


def _max_unpool(context: Context, node: Node, operands: Operands) -> Tensor:
    """Zeros but for x at its flat indices in the tensor that was pooled; a larger output_shape has zeros behind."""
    x, indices, shape = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    spatial, size = x.rank - 2, node.integers("kernel_shape")
    strides, pads = node.integers("strides", (1,) * spatial), node.integers("pads", (0,) * 2 * spatial)
    if spatial < 1 or (len(size), len(strides), len(pads)) != (spatial, spatial, 2 * spatial) or min(strides) < 1:
        raise node.broken(f"its window attributes do not fit {spatial} spatial axes")
    if indices.rank != x.rank or max(*size, *strides, *pads) > MAX_WINDOW or min(*size, *pads) < 0:
        raise node.broken("its indices or window attributes do not fit its input")
    for a, b in zip(x.shape, indices.shape, strict=True):
        context.guard(a, b)
    inferred = [(x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[spatial + i] + size[i] for i in range(spatial)]
    whole = [*x.shape[:2], *inferred]
    at = context.emit("in_bounds", context.reshape(indices, [x.type.elements]), extent=(product(whole),))
    empty = context.full(x.dtype, 0, [product(whole)])
    flat = context.emit("scatter", empty, at, context.reshape(x, [x.type.elements]), kind="set")
    result = context.reshape(flat, whole)
    return result if shape is None else _grown(context, node, result, context.extents(shape))


def _grown(context: Context, node: Node, x: Tensor, shape: Sequence[Dim]) -> Tensor:
    if len(shape) != x.rank:
        raise node.broken("its output shape has another rank than its input")
    for have, want in zip(x.shape, shape, strict=True):
        context.guard(have, want, Relation.AT_MOST)
    return pad(context, x, [Dim.of(0)] * x.rank, [b - a for a, b in zip(x.shape, shape, strict=True)], 0)


def _col2im(context: Context, node: Node, operands: Operands) -> Tensor:
    """Each column of a block added at its place in the padded image, whose border is then cut off."""
    x, image, block = all_of(node, operands)
    extents, taps = context.extents(image), context.extents(block)
    spatial = len(taps)
    dilations, strides = node.integers("dilations", (1,) * spatial), node.integers("strides", (1,) * spatial)
    pads = node.integers("pads", (0,) * 2 * spatial)
    lengths = {len(extents), len(dilations), len(strides), len(pads) // 2}
    if x.rank != 3 or spatial < 1 or lengths != {spatial} or min(*dilations, *strides) < 1 or min(pads) < 0:
        raise node.broken("its window attributes do not fit its input and image shape")
    if max(*(tap.constant or 0 for tap in taps), *dilations, *strides, *pads) > MAX_WINDOW:
        raise node.broken(f"an entry of its window attributes is larger than {MAX_WINDOW}")
    for tap in taps:
        context.guard(1, tap, Relation.AT_MOST)
    padded = [extent + pads[i] + pads[spatial + i] for i, extent in enumerate(extents)]
    blocks = [(padded[i] - dilations[i] * (taps[i] - 1) - 1) // strides[i] + 1 for i in range(spatial)]
    channels = context.quotient(x.shape[1], product(taps))
    grid = [*taps, *blocks]
    context.guard(x.shape[2], product(blocks))
    places = []
    for i in range(spatial):
        step = context.number("mul", counted(context, grid, i), dilations[i])
        places.append(context.emit("add", context.number("mul", counted(context, grid, spatial + i), strides[i]), step))
    flat = context.reshape(flat_places(context, places, padded), [product(grid)])
    apart = context.reshape(x, [x.shape[0], channels, product(taps), x.shape[2]])
    rows = context.reshape(context.transpose(apart, [2, 3, 0, 1]), [product(grid), x.shape[0], channels])
    empty = context.full(x.dtype, 0, [product(padded), x.shape[0], channels])
    added = context.transpose(context.emit("scatter", empty, flat, rows, kind="sum"), [1, 2, 0])
    whole = context.reshape(added, [x.shape[0], channels, *padded])
    for i in range(spatial):
        whole = context.slice(whole, 2 + i, pads[i], extents[i])
    return whole


ENTRIES: tuple[Entry, ...] = (
    Entry("Scatter", _scatter_elements, since=9, until=10),
    Entry("ScatterElements", _scatter_elements, since=11),
    Entry("ScatterND", _scatter_nd, since=11),
    Entry("TensorScatter", _tensor_scatter, since=24),
    Entry("MaxUnpool", _max_unpool, since=9),
    Entry("Col2Im", _col2im, since=18),
)
