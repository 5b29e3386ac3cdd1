"""Resize and Upsample: nearest by whole factors; nearest, linear and cubic between extents that are known.

Extents and places are computed in float32, the type of the scales, as runtimes do: 10 elements by 0.7 are 7.
"""

import math
from dataclasses import dataclass

import numpy as np

from cuvil_core.errors import UnsupportedOpError
from cuvil_core.importer.onnx import resize_by_data
from cuvil_core.importer.onnx.context import Context, resolve_axes
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.resampling import (
    NEAR_MIDDLE,
    coordinates_of,
    cubic,
    extrapolated,
    linear,
    mode_of,
    outside,
    taps_of,
    weighted,
)
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import Dim, DType, Payload

MAX_PLACES = 1 << 16
"""Places along an axis that are written down while importing; more are computed in the call."""


@dataclass(frozen=True, slots=True)
class _Target:
    """What becomes of one axis."""

    size: Dim
    scale: float | None
    """None where the size decides."""
    start: float = 0.0
    end: float = 1.0
    """The part that is read, in units of the whole axis."""

    def keeps(self, extent: Dim) -> bool:
        """True where the axis stays as it is."""
        return self.size == extent and self.scale in (None, 1.0) and (self.start, self.end) == (0.0, 1.0)


def _resize(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    axes = resolve_axes(node.integers("axes", tuple(range(x.rank))), x.rank)
    scales, sizes, roi = _given(node, operands)
    late = [one for one in (scales, roi) if one is not None and one.numbers() is None]
    if late or (sizes is not None and (sizes.content is None or _keeps_ratio_of_symbols(context, node, x, sizes))):
        return resize_by_data.resized(context, node, x, axes, scales, sizes, roi)
    return _resized(context, node, x, _targets(context, node, x, axes, (scales, sizes, roi)))


def _given(node: Node, operands: Operands) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Scales, sizes and roi; sizes go before scales, and a roi that the coordinates do not read is none."""
    upsample = node.op_type == "Upsample"
    scales, sizes = optional(operands, 1 if node.opset < 11 or upsample else 2), optional(operands, 3)
    roi = None if node.opset < 11 or upsample else optional(operands, 1)
    if coordinates_of(node) != "tf_crop_and_resize":
        roi = None
    elif roi is None:
        raise node.broken("its coordinates need a roi")
    sizes = None if sizes is None or sizes.type.elements == 0 else sizes
    if sizes is None and scales is None and not node.has("scales"):
        raise node.broken("it has neither scales nor sizes")
    return (None if sizes is not None else scales), sizes, roi


def _keeps_ratio_of_symbols(context: Context, node: Node, x: Tensor, sizes: Tensor) -> bool:
    """True where one scale for all axes can be known to a call only."""
    extents = [*x.shape, *context.dims(sizes, "the sizes")]
    return node.text("keep_aspect_ratio_policy", "stretch") != "stretch" and any(
        extent.constant is None for extent in extents
    )


def _resized(context: Context, node: Node, x: Tensor, targets: list[_Target]) -> Tensor:
    factors = [_whole(node, extent, target) for extent, target in zip(x.shape, targets, strict=True)]
    if all(target.size == extent for target, extent in zip(targets, x.shape, strict=True)) and any(
        target.scale not in (None, 1.0) for target in targets
    ):
        raise node.unsupported("scales that change no extent, on which runtimes differ")
    marks: dict[int, Tensor] = {}
    for axis, target in enumerate(targets):
        if factors[axis] is None and not target.keeps(x.shape[axis]):
            x, marked = _resize_axis(context, node, x, axis, target)
            marks.update({axis: marked} if marked is not None else {})
    result = _repeat(context, x, [factor or 1 for factor in factors])
    if coordinates_of(node) != "tf_crop_and_resize":
        return result
    return extrapolated(context, result, marks, node.number("extrapolation_value", 0.0))


def _whole(node: Node, extent: Dim, target: _Target) -> int | None:
    """The factor where every element is repeated that often, else None; a scale of 1.05 may keep the size, not them."""
    factor = target.size.exact_div(extent)
    whole = None if factor is None else factor.constant
    fits = whole is not None and target.scale in (None, float(whole)) and _repeats(node, whole)
    return whole if fits else None


def _targets(
    context: Context,
    node: Node,
    x: Tensor,
    axes: tuple[int, ...],
    given: tuple[Tensor | None, Tensor | None, Tensor | None],
) -> list[_Target]:
    scales, sizes, roi = given
    if sizes is not None:
        chosen = _by_sizes(context, node, x, axes, sizes)
    else:
        chosen = _by_scales(context, node, x, axes, scales)
    ends = _roi(context, node, roi, len(axes))
    found = [_Target(extent, None) for extent in x.shape]
    for at, axis in enumerate(axes):
        size, scale = chosen[at]
        found[axis] = _Target(size, scale, ends[at], ends[at + len(axes)])
    return found


def _by_sizes(
    context: Context, node: Node, x: Tensor, axes: tuple[int, ...], sizes: Tensor
) -> list[tuple[Dim, float | None]]:
    """(size, scale or None where the size decides) an axis that is named."""
    wanted = context.dims(sizes, "the sizes")
    _check_count(node, len(axes), len(wanted))
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [(size, None) for size in wanted]
    if policy not in ("not_larger", "not_smaller"):
        raise node.broken(f"there is no keep_aspect_ratio_policy {policy!r}")
    extents = [x.shape[axis].constant for axis in axes]
    fixed = [size.constant for size in wanted]
    if None in extents or None in fixed or 0 in extents:
        raise node.unsupported("keep_aspect_ratio_policy on symbolic or empty extents")
    ratios = [(size or 0) / (extent or 1) for size, extent in zip(fixed, extents, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [(Dim.of(int(scale * (extent or 0) + 0.5)), scale) for extent in extents]


def _by_scales(
    context: Context, node: Node, x: Tensor, axes: tuple[int, ...], scales: Tensor | None
) -> list[tuple[Dim, float | None]]:
    given = node.numbers("scales", ()) if scales is None else context.numbers(scales, "the scales")
    factors, least = list(map(float, given)), 1 if node.op_type == "Upsample" else 0
    _check_count(node, len(axes), len(factors))
    if not all(least <= factor < 1 << 20 and factor > 0 for factor in factors):
        raise node.broken(f"its scales {factors} are not positive numbers, of at least 1 for Upsample")
    return [(_scaled(context, x.shape[axis], factor), factor) for axis, factor in zip(axes, factors, strict=True)]


def _roi(context: Context, node: Node, given: Tensor | None, count: int) -> list[float]:
    """All starts, then all ends; the whole axes where the coordinates do not go by them."""
    if given is None:
        return [0.0] * count + [1.0] * count
    roi = list(map(float, context.numbers(given, "the roi")))
    if len(roi) != 2 * count or not all(map(math.isfinite, roi)):
        raise node.broken(f"its roi {roi} does not give a start and an end for each of {count} axes")
    return roi


def _check_count(node: Node, axes: int, count: int) -> None:
    if count != axes:
        raise node.broken(f"it has {count} scales or sizes for {axes} axes")


def _scaled(context: Context, extent: Dim, factor: float) -> Dim:
    if factor.is_integer():
        return extent * int(factor)
    if extent.constant is not None:
        return Dim.of(math.floor(np.float32(extent.constant) * np.float32(factor)))
    return resize_by_data.scaled_size(context, extent, context.scalar(DType.FLOAT32, factor))


def _resize_axis(context: Context, node: Node, x: Tensor, axis: int, target: _Target) -> tuple[Tensor, Tensor | None]:
    """The axis resized, and which of its places lie outside of it."""
    extent, size, mode = x.shape[axis].constant, target.size.constant, mode_of(node)
    if extent == 0:
        raise node.broken(f"axis {axis} has no element to make others of")
    if size is not None and size < 1:
        raise node.unsupported(f"a result of extent {size}")
    if extent is None or size is None or size > MAX_PLACES:
        return resize_by_data.resized_axis(context, node, x, _late(context, x, axis, target))
    ratio = float(np.float32(size / extent if target.scale is None else target.scale))
    places = _sources(node, ratio, extent, size, target)
    marks = outside(places, extent)
    if mode == "nearest":
        return _pick(context, x, axis, [_round(_rounding(node, ratio), place) for place in places]), marks
    if mode not in ("linear", "cubic"):
        raise node.broken(f"there is no mode {mode!r}")
    if not x.dtype.is_float:
        raise node.unsupported(f"{mode} resizing of {x.dtype}, on whose rounding runtimes differ")
    smooth = node.flag("antialias", False) and ratio < 1
    if mode == "linear" and not smooth:
        return _blend(context, x, axis, places), marks
    kernel, reach = (linear, 1) if mode == "linear" else (cubic(node.number("cubic_coeff_a", -0.75)), 2)
    inside = node.flag("exclude_outside", False)
    taps = taps_of(places, extent, kernel, reach, ratio if smooth else 1.0, inside)
    return weighted(context, x, axis, taps), marks


def _late(context: Context, x: Tensor, axis: int, target: _Target) -> resize_by_data.Axis:
    """The same for extents that only a call knows."""
    if target.scale is None:
        scale = resize_by_data.scale_of(context, x.shape[axis], target.size)
    else:
        scale = context.scalar(DType.FLOAT32, target.scale)
    ends = (context.scalar(DType.FLOAT32, end) for end in (target.start, target.end))
    return resize_by_data.Axis(axis, target.size, scale, *ends)


def _rounding(node: Node, ratio: float) -> str:
    """Before opset 11 there is no choice: down, or up where the result is the smaller one."""
    if node.opset < 11:
        return "floor" if ratio >= 1 else "ceil"
    return node.text("nearest_mode", "round_prefer_floor")


def _repeats(node: Node, factor: int) -> bool:
    """True where every element is repeated `factor` times: the whole-number cases of nearest."""
    if mode_of(node) != "nearest" or factor < 1:
        return False
    kind, rounding = coordinates_of(node), _rounding(node, factor)
    if kind == "asymmetric":
        return rounding == "floor" or (factor == 2 and rounding == "round_prefer_floor")
    return kind in ("half_pixel", "half_pixel_symmetric") and rounding.startswith("round_prefer")


def _repeat(context: Context, x: Tensor, factors: list[int]) -> Tensor:
    """reshape to …, extent, 1, …; stretch the 1s; reshape back"""
    if set(factors) == {1}:
        return x
    apart: list[Dim] = []
    wide: list[Dim] = []
    for extent, factor in zip(x.shape, factors, strict=True):
        apart += [extent] if factor == 1 else [extent, Dim.of(1)]
        wide += [extent] if factor == 1 else [extent, Dim.of(factor)]
    stretched = context.stretch(context.reshape(x, apart), tuple(wide))
    return context.reshape(stretched, [extent * factor for extent, factor in zip(x.shape, factors, strict=True)])


def _sources(node: Node, ratio: float, extent: int, size: int, target: _Target) -> list[float]:
    """The places in the input that the output elements stand for; `length` is what they would cover of the result."""
    kind, at, by = coordinates_of(node), np.arange(size, dtype=np.float32), np.float32(ratio)
    half, last = np.float32(0.5), np.float32(extent - 1)
    length = np.float32(size) if math.isclose(ratio * extent, size, rel_tol=1e-6) else np.float32(ratio * extent)
    if kind == "asymmetric":
        places = at / by
    elif kind == "half_pixel" or (kind == "pytorch_half_pixel" and size > 1):
        places = (at + half) / by - half
    elif kind == "half_pixel_symmetric":
        places = np.float32(extent / 2) * (1 - np.float32(size) / length) + (at + half) / by - half
    elif kind == "align_corners":
        places = at * last / (length - 1) if length != 1 else at * 0
    elif kind == "tf_crop_and_resize":
        start, end = np.float32(target.start), np.float32(target.end)
        step = at * ((end - start) * last / (length - 1)) if length != 1 else at * 0 + (end - start) * last / 2
        places = start * last + step
    elif kind == "pytorch_half_pixel":
        places = at
    else:
        raise node.broken(f"there are no coordinates {kind!r}")
    return [float(place) for place in places]


def _pick(context: Context, x: Tensor, axis: int, places: list[int]) -> Tensor:
    last = (x.shape[axis].constant or 1) - 1
    picks = [min(max(place, 0), last) for place in places]
    indices = Payload.of(DType.INT64, (len(picks),), picks)
    return context.emit("gather", x, Tensor.of_payload(indices), axis=axis)


def _round(rounding: str, place: float) -> int:
    match rounding:
        case "floor":
            return math.floor(place)
        case "ceil":
            return math.ceil(place)
        case "round_prefer_floor":
            return math.ceil(place - 0.5 - NEAR_MIDDLE)
        case "round_prefer_ceil":
            return math.floor(place + 0.5 + NEAR_MIDDLE)
        case other:
            raise UnsupportedOpError(f"it uses the rounding {other}, which Cuvil does not compile")


def _blend(context: Context, x: Tensor, axis: int, places: list[float]) -> Tensor:
    """Between the two neighbours by distance; beyond the border the border's element."""
    last = (x.shape[axis].constant or 1) - 1
    clamped = [min(max(place, 0.0), float(last)) for place in places]
    low = [min(math.floor(place), last) for place in clamped]
    part = [place - floor for place, floor in zip(clamped, low, strict=True)]
    first = context.emit("gather", x, _indices(low), axis=axis)
    second = context.emit("gather", x, _indices([min(at + 1, last) for at in low]), axis=axis)
    shape = [1] * x.rank
    shape[axis] = len(part)
    weight = context.cast(Tensor.of_payload(Payload.of(DType.FLOAT32, tuple(shape), part)), x.dtype)
    step = context.emit("mul", context.emit("sub", second, first), context.stretch(weight, first.shape))
    return context.emit("add", first, step)


def _indices(places: list[int]) -> Tensor:
    if len(places) <= 1024:
        return Tensor.of_content(DType.INT64, to_content(places, (len(places),)))
    return Tensor.of_payload(Payload.of(DType.INT64, (len(places),), places))


ENTRIES: tuple[Entry, ...] = (
    Entry("Resize", _resize, since=10),
    Entry("Upsample", _resize, until=9),
)
