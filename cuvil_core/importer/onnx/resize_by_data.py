"""Resize by scales, sizes or parts that only a call knows: the same float32 arithmetic, in the graph."""

from collections.abc import Callable
from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.from_data import INT64, counted, element, scalar
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType

F32 = DType.FLOAT32
CLOSE = 1e-6
"""A length so near to the size, relatively, is the size: rounding of the scale moved it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What becomes of one axis; scalars of the graph."""

    extent: Dim
    size: Dim
    scale: Tensor
    """float32"""
    start: Tensor
    end: Tensor
    """float32, in units of the axis."""


@dataclass(frozen=True, slots=True)
class Manner:
    """The node's words."""

    mode: str
    coordinates: str
    rounding: str
    cubic: float
    exclude_outside: bool
    outside: float | None
    """What stands outside of the part that is read; None where the border's elements go on."""


def axes_of(
    context: Context, node: Node, x: Tensor, axes: tuple[int, ...], sizes: Tensor | None, scales: Tensor | None
) -> list[tuple[Dim, Tensor]]:
    """(size, scale) of each named axis."""
    extents = [scalar(context, x.shape[axis]) for axis in axes]
    lengths = [context.cast(extent, F32) for extent in extents]
    if sizes is None:
        assert scales is not None
        factors = [context.cast(_at(context, scales, at), F32) for at in range(len(axes))]
        for factor in factors:
            context.check(context.number("gt", factor, 0), "its scales are positive")
        return [
            (_floor(context, context.emit("mul", length, by)), by) for length, by in zip(lengths, factors, strict=True)
        ]
    wanted = [element(context, sizes, at) for at in range(len(axes))]
    factors = [
        context.emit("div", context.cast(size, F32), length) for size, length in zip(wanted, lengths, strict=True)
    ]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [(context.extent(size), factor) for size, factor in zip(wanted, factors, strict=True)]
    common = factors[0]
    for factor in factors[1:]:
        common = context.emit("min" if policy == "not_larger" else "max", common, factor)
    rounded = (context.number("add", context.emit("mul", common, length), 0.5) for length in lengths)
    return [(_floor(context, one), common) for one in rounded]


def _at(context: Context, vector: Tensor, at: int) -> Tensor:
    return context.reshape(context.slice(vector, 0, at, 1), ())


def _floor(context: Context, number: Tensor) -> Dim:
    return context.extent(context.cast(context.emit("floor", number), INT64))


def resized(context: Context, x: Tensor, axis: int, target: Axis, manner: Manner) -> Tensor:
    """One axis resized."""
    place = _places(context, target, manner)
    if manner.mode == "nearest":
        result = _gathered(context, x, axis, _rounded(context, place, manner.rounding), target.extent)
    elif manner.mode == "linear":
        result = _blended(context, x, axis, place, target.extent)
    else:
        result = _cubic(context, x, axis, place, target.extent, manner)
    if manner.outside is None:
        return result
    last = context.cast(scalar(context, target.extent - 1), F32)
    beyond = context.emit("or", context.number("lt", place, 0), context.binary("gt", place, last))
    mask = context.stretch(_along(context, beyond, axis, x.rank), result.shape)
    return context.emit("select", mask, context.like(result, manner.outside), result)


def _places(context: Context, target: Axis, manner: Manner) -> Tensor:
    """The places in the input that the output elements stand for, float32."""
    at = context.cast(counted(context, target.size), F32)
    extent, size = (context.cast(scalar(context, one), F32) for one in (target.extent, target.size))
    middle = context.number("sub", context.binary("div", context.number("add", at, 0.5), target.scale), 0.5)
    match manner.coordinates:
        case "asymmetric":
            return context.binary("div", at, target.scale)
        case "half_pixel":
            return middle
        case "pytorch_half_pixel":
            single = context.stretch(context.number("eq", size, 1), at.shape)
            return context.emit("select", single, context.like(at, 0), middle)
    covered = context.emit("mul", target.scale, extent)
    apart = context.emit("abs", context.emit("sub", covered, size))
    length = context.emit("select", context.binary("le", apart, context.number("mul", size, CLOSE)), size, covered)
    last = context.number("sub", extent, 1)
    steps = context.number("sub", length, 1)
    if manner.coordinates == "half_pixel_symmetric":
        missing = context.emit("sub", context.like(size, 1), context.emit("div", size, length))
        return context.binary("add", middle, context.emit("mul", context.number("div", extent, 2), missing))
    single = context.stretch(context.number("eq", length, 1), at.shape)
    if manner.coordinates == "align_corners":
        spread = context.binary("div", context.binary("mul", at, last), steps)
        return context.emit("select", single, context.like(at, 0), spread)
    part = context.emit("mul", context.emit("sub", target.end, target.start), last)
    spread = context.binary("mul", at, context.emit("div", part, steps))
    half = context.stretch(context.number("div", part, 2), at.shape)
    return context.binary("add", context.emit("select", single, half, spread), context.emit("mul", target.start, last))


def _rounded(context: Context, place: Tensor, rounding: str) -> Tensor:
    near = 1e-6
    moved: dict[str, Callable[[], Tensor]] = {
        "floor": lambda: context.emit("floor", place),
        "ceil": lambda: context.emit("ceil", place),
        "round_prefer_floor": lambda: context.emit("ceil", context.number("sub", place, 0.5 + near)),
        "round_prefer_ceil": lambda: context.emit("floor", context.number("add", place, 0.5 + near)),
    }
    return context.cast(moved[rounding](), INT64)


def _gathered(context: Context, x: Tensor, axis: int, place: Tensor, extent: Dim) -> Tensor:
    """The elements at int64 places; beyond the border the border's."""
    last = context.stretch(scalar(context, extent - 1), place.shape)
    return context.emit("gather", x, context.number("max", context.emit("min", place, last), 0), axis=axis)


def _along(context: Context, line: Tensor, axis: int, rank: int) -> Tensor:
    shape = [Dim.of(1)] * rank
    shape[axis] = line.shape[0]
    return context.reshape(line, shape)


def _blended(context: Context, x: Tensor, axis: int, place: Tensor, extent: Dim) -> Tensor:
    last = context.stretch(context.cast(scalar(context, extent - 1), F32), place.shape)
    clamped = context.number("max", context.emit("min", place, last), 0)
    low = context.emit("floor", clamped)
    first = _gathered(context, x, axis, context.cast(low, INT64), extent)
    second = _gathered(context, x, axis, context.cast(context.number("add", low, 1), INT64), extent)
    part = context.cast(_along(context, context.emit("sub", clamped, low), axis, x.rank), x.dtype)
    step = context.emit("mul", context.emit("sub", second, first), context.stretch(part, first.shape))
    return context.emit("add", first, step)


def _cubic(context: Context, x: Tensor, axis: int, place: Tensor, extent: Dim, manner: Manner) -> Tensor:
    """Four neighbours by the kernel of Keys with the node's coefficient."""
    low = context.emit("floor", place)
    part = context.emit("sub", place, low)
    last = context.stretch(context.cast(scalar(context, extent - 1), F32), place.shape)
    weights: list[Tensor] = []
    spots: list[Tensor] = []
    for tap in (-1, 0, 1, 2):
        spot = context.number("add", low, tap)
        away = context.emit("abs", context.number("sub", part, tap))
        weight = _keys(context, away, manner.cubic, inner=tap in (0, 1))
        if manner.exclude_outside:
            outside = context.emit("or", context.number("lt", spot, 0), context.emit("gt", spot, last))
            weight = context.emit("select", outside, context.like(weight, 0), weight)
        weights.append(weight)
        spots.append(context.cast(spot, INT64))
    if manner.exclude_outside:
        total = weights[0]
        for weight in weights[1:]:
            total = context.emit("add", total, weight)
        weights = [context.emit("div", weight, total) for weight in weights]
    result: Tensor | None = None
    for spot, weight in zip(spots, weights, strict=True):
        taken = _gathered(context, x, axis, spot, extent)
        along = context.stretch(context.cast(_along(context, weight, axis, x.rank), x.dtype), taken.shape)
        part_ = context.emit("mul", taken, along)
        result = part_ if result is None else context.emit("add", result, part_)
    assert result is not None
    return result


def _keys(context: Context, away: Tensor, a: float, inner: bool) -> Tensor:
    """((a+2)d - (a+3))d² + 1 for d ≤ 1, ((a d - 5a)d + 8a)d - 4a beyond; by Horner."""
    terms = (a + 2, -(a + 3), 0.0, 1.0) if inner else (a, -5 * a, 8 * a, -4 * a)
    total = context.like(away, terms[0])
    for term in terms[1:]:
        total = context.number("add", context.emit("mul", total, away), term)
    return total
