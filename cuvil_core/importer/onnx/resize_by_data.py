"""Resize where extents, sizes, scales or the roi are known to a call only: places and weights are computed in it.

The formulas are those of `resize` and `resampling`, in float32 as there.
"""

from collections.abc import Callable
from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.resampling import NEAR_MIDDLE, coordinates_of, extrapolated, mode_of
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Relation

F32, I64 = DType.FLOAT32, DType.INT64
CLOSE = 1e-6
Kernel = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis to resize; numbers are float32 scalars."""

    axis: int
    size: Dim
    scale: Tensor
    start: Tensor
    end: Tensor
    """The part that is read, in units of the whole axis."""


def resized(
    context: Context,
    node: Node,
    x: Tensor,
    axes: tuple[int, ...],
    scales: Tensor | None,
    sizes: Tensor | None,
    roi: Tensor | None,
) -> Tensor:
    """The named axes by vectors with an element each; of scales and sizes one is given."""
    count = len(axes)
    for vector, length in ((scales, count), (sizes, count), (roi, 2 * count)):
        if vector is not None and context.length(vector) != length:
            raise node.broken(f"it has {context.length(vector)} scales, sizes or ends of a roi for {count} axes")
    if sizes is not None:
        chosen = _by_sizes(context, node, x, axes, sizes)
    else:
        assert scales is not None
        chosen = _by_scales(context, node, x, axes, scales)
    marks: dict[int, Tensor] = {}
    for at, axis in enumerate(axes):
        size, scale = chosen[at]
        start = context.scalar(F32, 0) if roi is None else _item(context, roi, at)
        end = context.scalar(F32, 1) if roi is None else _item(context, roi, at + count)
        x, marks[axis] = resized_axis(context, node, x, Axis(axis, size, scale, start, end))
    if coordinates_of(node) != "tf_crop_and_resize":
        return x
    return extrapolated(context, x, marks, node.number("extrapolation_value", 0.0))


def _item(context: Context, vector: Tensor, at: int) -> Tensor:
    return context.cast(context.reshape(context.slice(vector, 0, at, 1), ()), F32)


def _by_scales(
    context: Context, node: Node, x: Tensor, axes: tuple[int, ...], scales: Tensor
) -> list[tuple[Dim, Tensor]]:
    least = context.reshape(context.reduce("min", scales, [0], keepdims=False), ())
    upsample = node.op_type == "Upsample"
    fits = context.number("ge", least, 1) if upsample else context.number("gt", least, 0)
    context.check(fits, f"the scales are positive{', and at least 1,' if upsample else ''} numbers")
    found = [_item(context, scales, at) for at in range(len(axes))]
    return [(scaled_size(context, x.shape[axis], scale), scale) for axis, scale in zip(axes, found, strict=True)]


def _by_sizes(
    context: Context, node: Node, x: Tensor, axes: tuple[int, ...], sizes: Tensor
) -> list[tuple[Dim, Tensor]]:
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        pairs = zip(axes, context.extents(sizes), strict=True)
        return [(size, scale_of(context, x.shape[axis], size)) for axis, size in pairs]
    if policy not in ("not_larger", "not_smaller"):
        raise node.broken(f"there is no keep_aspect_ratio_policy {policy!r}")
    wanted = [_item(context, sizes, at) for at in range(len(axes))]
    extents = [context.number("max", context.count(x.shape[axis], F32), 1) for axis in axes]
    scale, *others = [context.emit("div", size, extent) for size, extent in zip(wanted, extents, strict=True)]
    for other in others:
        scale = context.emit("min" if policy == "not_larger" else "max", scale, other)
    half_up = [context.number("add", context.emit("mul", scale, extent), 0.5) for extent in extents]
    return [(context.extent(context.emit("floor", size)), scale) for size in half_up]


def scaled_size(context: Context, extent: Dim, scale: Tensor) -> Dim:
    """floor(extent · scale)"""
    return context.extent(context.emit("floor", context.emit("mul", context.count(extent, F32), scale)))


def scale_of(context: Context, extent: Dim, size: Dim) -> Tensor:
    """size / extent; an axis of no elements counts as one of one."""
    own = context.number("max", context.count(extent, F32), 1)
    return context.emit("div", context.count(size, F32), own)


def resized_axis(context: Context, node: Node, x: Tensor, target: Axis) -> tuple[Tensor, Tensor]:
    """The axis resized, and which of its places lie outside of it."""
    mode, extent = mode_of(node), x.shape[target.axis]
    context.guard(1, extent, Relation.AT_MOST)
    if mode != "nearest" and not x.dtype.is_float:
        raise node.unsupported(f"{mode} resizing of {x.dtype}, on whose rounding runtimes differ")
    place = _places(context, node, extent, target)
    last = context.count(extent - 1, F32)
    outside = context.emit("or", context.number("lt", place, 0), context.binary("gt", place, last))
    if mode == "nearest":
        return _picked(context, node, x, place, target), outside
    smooth = node.flag("antialias", False)
    if mode == "linear" and not smooth:
        return _blended(context, x, target.axis, place), outside
    kernel, reach = (_triangle(context), 1) if mode == "linear" else (_keys(context, node), 2)
    if mode not in ("linear", "cubic"):
        raise node.broken(f"there is no mode {mode!r}")
    wide = context.number("min", target.scale, 1) if smooth else context.like(target.scale, 1)
    return _weighted(context, node, x, target.axis, place, wide, kernel, reach), outside


def _places(context: Context, node: Node, extent: Dim, target: Axis) -> Tensor:
    """The places in the input that the output elements stand for."""
    kind, at = coordinates_of(node), context.cast(counted(context, [target.size], 0), F32)
    if kind == "asymmetric":
        return context.binary("div", at, target.scale)
    middle = context.number("sub", context.binary("div", context.number("add", at, 0.5), target.scale), 0.5)
    if kind == "half_pixel":
        return middle
    size, whole = context.count(target.size, F32), context.count(extent, F32)
    if kind == "pytorch_half_pixel":
        return context.emit("select", _spread(context, context.number("gt", size, 1), at), middle, context.like(at, 0))
    length = _length(context, whole, size, target.scale)
    if kind == "half_pixel_symmetric":
        rest = context.emit("sub", context.like(size, 1), context.emit("div", size, length))
        return context.binary("add", middle, context.emit("mul", context.number("mul", whole, 0.5), rest))
    last, single = context.number("sub", whole, 1), context.number("eq", length, 1)
    below = context.emit("select", single, context.like(length, 1), context.number("sub", length, 1))
    if kind == "align_corners":
        spaced = context.binary("div", context.binary("mul", at, last), below)
        return context.emit("select", _spread(context, single, at), context.like(at, 0), spaced)
    if kind != "tf_crop_and_resize":
        raise node.broken(f"there are no coordinates {kind!r}")
    reach = context.emit("mul", context.emit("sub", target.end, target.start), last)
    spaced = context.binary("mul", at, context.emit("div", reach, below))
    centre = _spread(context, context.number("mul", reach, 0.5), at)
    step = context.emit("select", _spread(context, single, at), centre, spaced)
    return context.binary("add", step, context.emit("mul", target.start, last))


def _spread(context: Context, scalar: Tensor, like: Tensor) -> Tensor:
    return context.stretch(scalar, like.shape)


def _length(context: Context, extent: Tensor, size: Tensor, scale: Tensor) -> Tensor:
    """What the scale makes of the extent, without its fraction where that is rounding."""
    exact = context.emit("mul", extent, scale)
    off = context.emit("abs", context.emit("sub", exact, size))
    near = context.emit("le", off, context.number("mul", size, CLOSE))
    return context.emit("select", near, size, exact)


def _picked(context: Context, node: Node, x: Tensor, place: Tensor, target: Axis) -> Tensor:
    low = context.emit("floor", place)
    part = context.emit("sub", place, low)
    if node.opset < 11:
        shrinks = _spread(context, context.number("lt", target.scale, 1), part)
        up = context.emit("and", shrinks, context.number("gt", part, 0))
    else:
        up = _rounds_up(context, node, part)
    index = context.emit("add", context.cast(low, I64), context.cast(up, I64))
    return context.emit("gather", x, _clamped(context, index, x.shape[target.axis]), axis=target.axis)


def _rounds_up(context: Context, node: Node, part: Tensor) -> Tensor:
    rounding = node.text("nearest_mode", "round_prefer_floor")
    tests = {
        "floor": ("gt", 1.0),
        "ceil": ("gt", 0.0),
        "round_prefer_floor": ("gt", 0.5 + NEAR_MIDDLE),
        "round_prefer_ceil": ("ge", 0.5 - NEAR_MIDDLE),
    }
    if rounding not in tests:
        raise node.broken(f"there is no nearest_mode {rounding!r}")
    return context.number(tests[rounding][0], part, tests[rounding][1])


def _clamped(context: Context, index: Tensor, extent: Dim) -> Tensor:
    return context.number("max", context.binary("min", index, context.count(extent - 1, I64)), 0)


def _blended(context: Context, x: Tensor, axis: int, place: Tensor) -> Tensor:
    """Between the two neighbours by distance; beyond the border the border's element."""
    extent = x.shape[axis]
    inside = context.number("max", context.binary("min", place, context.count(extent - 1, F32)), 0)
    low = context.emit("floor", inside)
    index = context.cast(low, I64)
    first = context.emit("gather", x, index, axis=axis)
    second = context.emit("gather", x, _clamped(context, context.number("add", index, 1), extent), axis=axis)
    shape = [Dim.of(1)] * x.rank
    shape[axis] = place.shape[0]
    weight = context.cast(context.reshape(context.emit("sub", inside, low), shape), x.dtype)
    step = context.emit("mul", context.emit("sub", second, first), context.stretch(weight, first.shape))
    return context.emit("add", first, step)


def _weighted(
    context: Context, node: Node, x: Tensor, axis: int, place: Tensor, wide: Tensor, kernel: Kernel, reach: int
) -> Tensor:
    """sum of x · kernel(distance · wide), the weights made to sum to 1; as many taps as the call needs."""
    half = context.emit("ceil", context.emit("div", context.like(wide, reach), wide))
    taps = context.extent(context.number("mul", half, 2))
    shape = (place.shape[0], taps)
    column = context.stretch(context.reshape(place, [place.shape[0], 1]), shape)
    first = context.number("add", context.binary("sub", context.emit("floor", column), half), 1)
    at = context.emit("add", context.cast(first, I64), counted(context, shape, 1))
    distance = context.emit("sub", context.cast(at, F32), column)
    weights = kernel(context.binary("mul", distance, wide))
    if node.flag("exclude_outside", False):
        last = context.stretch(context.count(x.shape[axis] - 1, I64), shape)
        held = context.emit("and", context.number("ge", at, 0), context.emit("le", at, last))
        weights = context.emit("select", held, weights, context.like(weights, 0))
    total = context.reduce("sum", weights, [1])
    total = context.emit("select", context.number("eq", total, 0), context.like(total, 1), total)
    weights = context.binary("div", weights, total)
    near = context.emit("gather", x, _clamped(context, at, x.shape[axis]), axis=axis)
    factors = context.reshape(context.cast(weights, x.dtype), [*shape, *[1] * (x.rank - axis - 1)])
    return context.reduce("sum", context.binary("mul", near, factors), [axis + 1], keepdims=False)


def _triangle(context: Context) -> Kernel:
    """The triangle that is 1 at 0 and 0 from 1 on."""

    def kernel(distance: Tensor) -> Tensor:
        size = context.emit("abs", distance)
        return context.number("max", context.emit("sub", context.like(size, 1), size), 0)

    return kernel


def _keys(context: Context, node: Node) -> Kernel:
    """Keys' kernel, as `resampling.cubic`."""
    a = node.number("cubic_coeff_a", -0.75)

    def polynomial(x: Tensor, *factors: float) -> Tensor:
        total = context.like(x, factors[0])
        for factor in factors[1:]:
            total = context.number("add", context.emit("mul", total, x), factor)
        return total

    def kernel(distance: Tensor) -> Tensor:
        x = context.emit("abs", distance)
        inner, outer = polynomial(x, a + 2, -(a + 3), 0, 1), polynomial(x, a, -5 * a, 8 * a, -4 * a)
        far = context.emit("select", context.number("lt", x, 2), outer, context.like(x, 0))
        return context.emit("select", context.number("le", x, 1), inner, far)

    return kernel
