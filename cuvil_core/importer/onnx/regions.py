"""Windows whose places come from data: RoiAlign and DeformConv."""

from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.contractions import add_bias, window_of
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.sampling import Tap, corners, linear, total, working, zeros
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.windows import MAX_WINDOW, Windows, window_attributes
from cuvil_core.ir import Dim, DType, Relation, product

MAX_SAMPLES = 1 << 10


@dataclass(frozen=True, slots=True)
class _Bins:
    """One axis of all regions, in the shape regions, 1, rows, samples, columns, samples."""

    taps: list[Tap]
    count: Tensor
    """Samples of a bin, as a float."""
    held: Tensor | None
    """Which samples there are, where their number differs from region to region."""


def _roi_align(context: Context, node: Node, operands: Operands) -> Tensor:
    """Each bin of a region is the mean, or the greatest, of samples² places read between elements."""
    x, rois, images = all_of(node, operands)
    if x.rank != 4 or rois.rank != 2 or images.rank != 1:
        raise node.broken("it needs images of rank 4, a matrix of regions and one image number a region")
    context.guard(rois.shape[1], 4)
    context.guard(rois.shape[0], images.shape[0])
    mode = node.text("mode", "avg")
    if mode not in ("avg", "max"):
        raise node.broken(f"there is no mode {mode!r}")
    dtype = working(x.dtype)
    both = [_bins(context, node, context.cast(rois, dtype), x, axis) for axis in (0, 1)]
    number, ones = rois.shape[0], [Dim.of(1)] * 4
    known = context.emit("in_bounds", context.cast(images, DType.INT64), extent=(x.shape[0],))
    image = context.reshape(known, [number, Dim.of(1), *ones])
    channel = counted(context, [Dim.of(1), x.shape[1], *ones], 1)
    parts = corners(context, context.cast(x, dtype), [image, channel], [bins.taps for bins in both])
    joined = total(context, parts, "add" if mode == "avg" else "max")
    return context.cast(_pooled(context, joined, both, mode), x.dtype)


def _pooled(context: Context, values: Tensor, both: list[_Bins], mode: str) -> Tensor:
    """Over the samples of both axes; a bin without any is 0."""
    for bins in both:
        if bins.held is not None:
            none = context.like(values, 0 if mode == "avg" else float("-inf"))
            values = context.emit("select", context.stretch(bins.held, values.shape), values, none)
    if mode == "max":
        most = context.reduce("max", values, [3, 5], keepdims=False)
        return context.emit("select", context.number("eq", most, float("-inf")), context.like(most, 0), most)
    summed = context.reduce("sum", values, [3, 5])
    count = context.number("max", context.binary("mul", both[0].count, both[1].count), 1)
    mean = context.binary("div", summed, count)
    return context.reshape(mean, [mean.shape[at] for at in (0, 1, 2, 4)])


def _bins(context: Context, node: Node, rois: Tensor, x: Tensor, axis: int) -> _Bins:
    """Places along rows (axis 0) or columns (axis 1)."""
    bins = node.integer("output_width" if axis else "output_height", 1)
    if not 1 <= bins <= MAX_WINDOW:
        raise node.broken(f"it has {bins} bins along an axis")
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    half = node.text("coordinate_transformation_mode", default) == "half_pixel"
    start, end = (_edge(context, node, rois, column, half) for column in (1 - axis, 3 - axis))
    length = context.emit("sub", end, start)
    size = context.number("div", length if half else context.number("max", length, 1), bins)
    extent, count = _samples(context, node, size)
    shape = [Dim.of(1)] * 6
    shape[2 + 2 * axis], shape[3 + 2 * axis] = Dim.of(bins), extent
    bin_at, sample = (context.cast(counted(context, shape, at + 2 * axis), rois.dtype) for at in (2, 3))
    inner = context.binary("div", context.number("add", sample, 0.5), context.number("max", count, 1))
    place = context.binary("add", context.binary("mul", context.binary("add", bin_at, inner), size), start)
    held = context.binary("lt", sample, count) if node.integer("sampling_ratio", 0) == 0 else None
    return _Bins(_within(context, place, x.shape[2 + axis]), count, held)


def _samples(context: Context, node: Node, size: Tensor) -> tuple[Dim, Tensor]:
    """(the greatest number of samples, that of each region): sampling_ratio, or one for each element of a bin."""
    fixed = node.integer("sampling_ratio", 0)
    if not 0 <= fixed <= MAX_SAMPLES:
        raise node.broken(f"there is no sampling_ratio {fixed}")
    if fixed:
        return Dim.of(fixed), context.scalar(size.dtype, fixed)
    count = context.number("max", context.emit("ceil", size), 0)
    most = context.reduce("max", context.reshape(count, [size.shape[0]]), [0], keepdims=False)
    most = context.number("max", most, 0)
    context.check(context.number("le", most, MAX_SAMPLES), f"bins are at most {MAX_SAMPLES} elements wide")
    return context.extent(context.number("min", most, MAX_SAMPLES)), count


def _edge(context: Context, node: Node, rois: Tensor, column: int, half: bool) -> Tensor:
    """One column of the regions, in elements of the image."""
    edge = context.reshape(context.slice(rois, 1, column, 1), [rois.shape[0], *[Dim.of(1)] * 5])
    scaled = context.number("mul", edge, node.number("spatial_scale", 1.0))
    return context.number("sub", scaled, 0.5) if half else scaled


def _within(context: Context, place: Tensor, extent: Dim) -> list[Tap]:
    """Zero from one element beyond the border on, else by the two neighbours of the clamped place."""
    context.guard(1, extent, Relation.AT_MOST)
    limit = context.stretch(context.count(extent, place.dtype), place.shape)
    inside = context.emit("and", context.number("ge", place, -1), context.emit("le", place, limit))
    last = context.stretch(context.count(extent - 1, place.dtype), place.shape)
    clamped = context.number("max", context.emit("min", place, last), 0)
    taps = linear(context, clamped, extent, zeros)
    return [Tap(tap.place, tap.weight, inside) for tap in taps]


def _deform_conv(context: Context, node: Node, operands: Operands) -> Tensor:
    """A convolution whose taps are moved by offsets, and weighted by a mask."""
    x, w, offset = (need(node, operands, at) for at in range(3))
    bias, mask = optional(operands, 3), optional(operands, 4)
    if x.rank != w.rank or offset.rank != x.rank:
        raise node.broken("its input, weights and offsets need equal ranks")
    windows = window_attributes(node, x, window_of(node, w))
    groups, shared = node.integer("group", 1), node.integer("offset_group", 1)
    if groups < 1 or shared < 1:
        raise node.broken("its groups must be at least 1")
    taps, spatial = product(map(Dim.of, windows.size)), windows.spatial
    context.guard(w.shape[1] * groups, x.shape[1])
    context.guard(offset.shape[1], taps * (shared * spatial))
    out = offset.shape[2:]
    for axis in range(spatial):
        pads = windows.pads[axis] + windows.pads[spatial + axis]
        whole = (x.shape[2 + axis] + pads - windows.reach(axis)) // windows.strides[axis] + 1
        context.guard(out[axis], whole)
    values = context.cast(x, working(x.dtype))
    apart = context.reshape(offset, [x.shape[0], shared, taps, spatial, *out])
    places = [_moved(context, x, context.cast(apart, values.dtype), windows, axis) for axis in range(spatial)]
    columns = _columns(context, values, places, shared)
    if mask is not None:
        context.guard(mask.shape[1], taps * shared)
        factor = context.reshape(context.cast(mask, values.dtype), [x.shape[0], shared, 1, taps, *out])
        columns = context.binary("mul", columns, factor)
    return add_bias(context, node, _contracted(context, context.cast(columns, x.dtype), w, groups, out), bias)


def _moved(context: Context, x: Tensor, offset: Tensor, windows: Windows, axis: int) -> list[Tap]:
    """Taps along one axis in the shape batch, offset groups, 1, taps of the window, results."""
    batch, shared, taps, _, *out = offset.shape
    context.guard(1, x.shape[2 + axis], Relation.AT_MOST)
    own = context.reshape(context.slice(offset, 3, axis, 1), [batch, shared, Dim.of(1), taps, *out])
    shape = [Dim.of(1)] * own.rank
    shape[3], shape[4 + axis] = taps, out[axis]
    below = 1
    for extent in windows.size[axis + 1 :]:
        below *= extent
    tap = context.number("div", counted(context, shape, 3), below)
    step = context.number("mul", context.number("mod", tap, windows.size[axis], kind="floor"), windows.dilations[axis])
    start = context.number("mul", counted(context, shape, 4 + axis), windows.strides[axis])
    place = context.number("sub", context.emit("add", start, step), windows.pads[axis])
    return linear(context, context.binary("add", own, context.cast(place, own.dtype)), x.shape[2 + axis], zeros)


def _columns(context: Context, x: Tensor, taps: list[list[Tap]], shared: int) -> Tensor:
    """batch, offset groups, channels of a group, taps of the window, results."""
    inner = context.quotient(x.shape[1], shared)
    grouped = context.reshape(x, [x.shape[0], Dim.of(shared), inner, *x.shape[2:]])
    rank = len(x.shape) + 2
    lead = []
    for axis in range(3):
        shape = [Dim.of(1)] * rank
        shape[axis] = grouped.shape[axis]
        lead.append(counted(context, shape, axis))
    return total(context, corners(context, grouped, lead, taps))


def _contracted(context: Context, columns: Tensor, w: Tensor, groups: int, out: tuple[Dim, ...]) -> Tensor:
    batch, shared, inner, taps, *_ = columns.shape
    outputs = context.quotient(w.shape[0], groups)
    depth = w.shape[1] * taps
    context.guard(shared * inner, w.shape[1] * groups)
    right = context.reshape(columns, [batch, Dim.of(groups), depth, product(out)])
    left = context.reshape(w, [Dim.of(groups), outputs, depth])
    result = context.emit("dot", left, right, batch_a=(0,), batch_b=(1,), contract_a=(2,), contract_b=(2,))
    return context.reshape(context.transpose(result, [2, 0, 1, 3]), [batch, w.shape[0], *out])


ENTRIES: tuple[Entry, ...] = (
    Entry("RoiAlign", _roi_align, since=10),
    Entry("DeformConv", _deform_conv, since=19),
)
