"""Resize and Upsample: nearest by whole factors; nearest and linear between fixed extents.

Extents and places are computed in float32, the type of the scales, as runtimes do: 10 elements by 0.7 are 7.
"""

import math
from collections.abc import Sequence

import numpy as np

from cuvil_core.errors import UnsupportedOpError
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import Dim, DType, Payload

NEAR_MIDDLE = 1e-6
"""A place so near to the middle of two elements counts as the middle, as in runtimes: it is rounding that moved it."""


def _resize(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    scales, sizes = _targets(context, node, operands, x)
    factors = [_whole(node, *target) for target in zip(x.shape, scales, sizes, strict=True)]
    if sizes == list(x.shape) and any(scale not in (None, 1.0) for scale in scales):
        raise node.unsupported("scales that change no extent, on which runtimes differ")
    for axis, (scale, size) in enumerate(zip(scales, sizes, strict=True)):
        if factors[axis] is None and not (size == x.shape[axis] and scale in (None, 1.0)):
            x = _resize_axis(context, node, x, axis, scale, size)
    return _repeat(context, x, [factor or 1 for factor in factors])


def _whole(node: Node, extent: Dim, scale: float | None, size: Dim) -> int | None:
    """The factor where every element is repeated that often, else None; a scale of 1.05 may keep the size, not them."""
    factor = size.exact_div(extent)
    whole = None if factor is None else factor.constant
    fits = whole is not None and scale in (None, float(whole)) and _repeats(node, whole)
    return whole if fits else None


def _targets(
    context: Context, node: Node, operands: Operands, x: Tensor
) -> tuple[Sequence[float | None], Sequence[Dim]]:
    """(scale or None where the sizes decide, size) an axis."""
    scales_at = 1 if node.opset < 11 or node.op_type == "Upsample" else 2
    scales, sizes = optional(operands, scales_at), optional(operands, 3)
    for key in ("axes", "antialias", "exclude_outside"):
        if node.has(key) and (key == "axes" or node.integer(key)):
            raise node.unsupported(f"the attribute {key}")
    if sizes is not None and sizes.type.elements != 0:
        if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise node.unsupported("keep_aspect_ratio_policy")
        extents = context.dims(sizes, "the sizes")
        _check_count(node, x, len(extents))
        return [None] * x.rank, extents
    if scales is None and not node.has("scales"):
        raise node.broken("it has neither scales nor sizes")
    given = node.numbers("scales", ()) if scales is None else context.numbers(scales, "the scales")
    factors, least = list(map(float, given)), 1 if node.op_type == "Upsample" else 0
    _check_count(node, x, len(factors))
    if not all(least <= factor < 1 << 20 and factor > 0 for factor in factors):
        raise node.broken(f"its scales {factors} are not positive numbers, of at least 1 for Upsample")
    return factors, [_scaled(node, extent, factor) for extent, factor in zip(x.shape, factors, strict=True)]


def _check_count(node: Node, x: Tensor, count: int) -> None:
    if count != x.rank:
        raise node.broken(f"it has {count} scales or sizes for rank {x.rank}")


def _scaled(node: Node, extent: Dim, factor: float) -> Dim:
    if factor.is_integer():
        return extent * int(factor)
    if extent.constant is not None:
        return Dim.of(math.floor(np.float32(extent.constant) * np.float32(factor)))
    raise node.unsupported(f"the scale {factor} on a symbolic extent")


def _resize_axis(context: Context, node: Node, x: Tensor, axis: int, scale: float | None, size: Dim) -> Tensor:
    extent = x.shape[axis]
    if size.constant is not None and size.constant < 1:
        raise node.unsupported(f"a result of extent {size}")
    if extent.constant is None or size.constant is None:
        raise node.unsupported(f"{_mode(node)} resizing of the symbolic extent {extent}")
    ratio = float(np.float32(size.constant / extent.constant if scale is None else scale))
    places = _sources(node, ratio, extent.constant, size.constant)
    if _mode(node) == "nearest":
        return _pick(context, x, axis, [_round(_rounding(node, ratio), place) for place in places])
    if _mode(node) == "linear" and not x.dtype.is_float:
        raise node.unsupported(f"linear resizing of {x.dtype}, on whose rounding runtimes differ")
    if _mode(node) == "linear":
        return _blend(context, x, axis, places)
    raise node.unsupported(f"the mode {_mode(node)}")


def _mode(node: Node) -> str:
    mode = node.text("mode", "nearest")
    return "linear" if mode == "bilinear" else mode


def _coordinates(node: Node) -> str:
    return node.text("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")


def _rounding(node: Node, ratio: float) -> str:
    """Before opset 11 there is no choice: down, or up where the result is the smaller one."""
    if node.opset < 11:
        return "floor" if ratio >= 1 else "ceil"
    return node.text("nearest_mode", "round_prefer_floor")


def _repeats(node: Node, factor: int) -> bool:
    """True where every element is repeated `factor` times: the whole-number cases of nearest."""
    if _mode(node) != "nearest" or factor < 1:
        return False
    kind, rounding = _coordinates(node), _rounding(node, factor)
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


def _sources(node: Node, ratio: float, extent: int, size: int) -> list[float]:
    """The places in the input that the output elements stand for."""
    kind, at, by = _coordinates(node), np.arange(size, dtype=np.float32), np.float32(ratio)
    half = np.float32(0.5)
    if kind == "asymmetric":
        places = at / by
    elif kind == "half_pixel" or (kind == "pytorch_half_pixel" and size > 1):
        places = (at + half) / by - half
    elif kind == "align_corners" and not math.isclose(ratio * extent, size, rel_tol=1e-6):
        raise node.unsupported("align_corners with a scale that gives a fraction, on which runtimes differ")
    elif kind == "align_corners":
        places = at * np.float32(extent - 1) / np.float32(max(size - 1, 1))
    elif kind == "pytorch_half_pixel":
        places = at
    else:
        raise node.unsupported(f"the coordinates {kind}")
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
