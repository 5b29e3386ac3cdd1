"""Resize and Upsample: nearest by whole factors; nearest and linear between fixed extents."""

import math
from collections.abc import Sequence

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import Dim, DType, Payload


def _resize(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    scales, sizes = _targets(context, node, operands, x)
    factors = [_whole(node, extent, size) for extent, size in zip(x.shape, sizes, strict=True)]
    for axis, (scale, size) in enumerate(zip(scales, sizes, strict=True)):
        if factors[axis] is None and not (size == x.shape[axis] and scale in (None, 1.0)):
            x = _resize_axis(context, node, x, axis, scale, size)
    return _repeat(context, x, [factor or 1 for factor in factors])


def _whole(node: Node, extent: Dim, size: Dim) -> int | None:
    """The factor where every element is repeated that often, else None."""
    factor = size.exact_div(extent)
    whole = None if factor is None else factor.constant
    return whole if whole is not None and _repeats(node, whole) else None


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
    factors = list(node.numbers("scales", ())) if scales is None else context.floats(scales, "the scales")
    _check_count(node, x, len(factors))
    if not all(math.isfinite(factor) and 0 < factor < 1 << 20 for factor in factors):
        raise node.broken(f"its scales {factors} are not positive numbers")
    return factors, [_scaled(node, extent, factor) for extent, factor in zip(x.shape, factors, strict=True)]


def _check_count(node: Node, x: Tensor, count: int) -> None:
    if count != x.rank:
        raise node.broken(f"it has {count} scales or sizes for rank {x.rank}")


def _scaled(node: Node, extent: Dim, factor: float) -> Dim:
    if factor.is_integer():
        return extent * int(factor)
    if extent.constant is not None:
        return Dim.of(math.floor(extent.constant * factor))
    if (1 / factor).is_integer():
        return extent // int(1 / factor)
    raise node.unsupported(f"the scale {factor} on a symbolic extent")


def _resize_axis(context: Context, node: Node, x: Tensor, axis: int, scale: float | None, size: Dim) -> Tensor:
    extent = x.shape[axis]
    if extent.constant is None or size.constant is None or size.constant < 1:
        raise node.unsupported(f"{_mode(node)} resizing of the symbolic extent {extent}")
    ratio = scale if scale is not None else size.constant / extent.constant
    places = [_source(node, at, ratio, extent.constant, size.constant) for at in range(size.constant)]
    if _mode(node) == "nearest":
        return _pick(context, node, x, axis, places)
    if _mode(node) == "linear":
        return _blend(context, x, axis, places)
    raise node.unsupported(f"the mode {_mode(node)}")


def _mode(node: Node) -> str:
    mode = node.text("mode", "nearest")
    return "linear" if mode == "bilinear" else mode


def _coordinates(node: Node) -> str:
    return node.text("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")


def _rounding(node: Node) -> str:
    return node.text("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")


def _repeats(node: Node, factor: int) -> bool:
    """True where every element is repeated `factor` times: the whole-number cases of nearest."""
    if _mode(node) != "nearest" or factor < 1:
        return False
    kind, rounding = _coordinates(node), _rounding(node)
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


def _source(node: Node, at: int, ratio: float, extent: int, size: int) -> float:
    """The place in the input that the output element stands for."""
    kind = _coordinates(node)
    if kind == "asymmetric":
        return at / ratio
    if kind == "half_pixel":
        return (at + 0.5) / ratio - 0.5
    if kind == "pytorch_half_pixel":
        return (at + 0.5) / ratio - 0.5 if size > 1 else 0.0
    if kind == "align_corners" and not math.isclose(ratio * extent, size):
        raise node.unsupported("align_corners with a scale that gives a fraction, on which runtimes differ")
    if kind == "align_corners":
        return at * (extent - 1) / (size - 1) if size > 1 else 0.0
    raise node.unsupported(f"the coordinates {kind}")


def _pick(context: Context, node: Node, x: Tensor, axis: int, places: list[float]) -> Tensor:
    last = (x.shape[axis].constant or 1) - 1
    picks = [min(max(_round(node, place), 0), last) for place in places]
    shape = (len(picks),)
    indices = Payload.of(DType.INT64, shape, picks)
    return context.emit("gather", x, Tensor.of_payload(indices), axis=axis)


def _round(node: Node, place: float) -> int:
    match _rounding(node):
        case "floor" | "simple":
            return math.floor(place)
        case "ceil":
            return math.ceil(place)
        case "round_prefer_floor":
            return math.ceil(place - 0.5)
        case "round_prefer_ceil":
            return math.floor(place + 0.5)
        case other:
            raise node.unsupported(f"the rounding {other}")


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
