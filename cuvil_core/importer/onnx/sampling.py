"""Elements at places between elements: neighbours along each axis with weights, joined over all axes.

Places are computed from the input's data; whatever they are, what is read lies within the tensor.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.lookups import flat_places
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType

CUBIC_SLOPE = -0.75


@dataclass(frozen=True, slots=True)
class Tap:
    """One neighbour along an axis; tensors that broadcast against those of other axes."""

    place: Tensor
    """int64, within the axis."""
    weight: Tensor | None
    """None counts as 1."""
    inside: Tensor | None
    """Where the element is read; elsewhere it is 0. None: everywhere."""


Border = Callable[[Context, Tensor, Dim], Tap]
"""(int64 place, extent) → the tap that stands there."""


def working(dtype: DType) -> DType:
    """The dtype in which places and weights are computed."""
    return DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32


def zeros(context: Context, place: Tensor, extent: Dim) -> Tap:
    """Beyond the border lie zeros."""
    last = context.count(extent - 1, DType.INT64)
    inside = context.emit("and", context.number("ge", place, 0), context.binary("le", place, last))
    return Tap(_clamped(context, place, extent), None, inside)


def edge(context: Context, place: Tensor, extent: Dim) -> Tap:
    """Beyond the border lies the border's element."""
    return Tap(_clamped(context, place, extent), None, None)


def _clamped(context: Context, place: Tensor, extent: Dim) -> Tensor:
    last = context.count(extent - 1, DType.INT64)
    return context.number("max", context.binary("min", place, last), 0)


def nearest(context: Context, place: Tensor, extent: Dim, border: Border) -> list[Tap]:
    """The element at a place that is whole already."""
    return [border(context, context.cast(place, DType.INT64), extent)]


def linear(context: Context, place: Tensor, extent: Dim, border: Border) -> list[Tap]:
    """The two neighbours, by distance."""
    low = context.emit("floor", place)
    part = context.emit("sub", place, low)
    rest = context.emit("sub", context.like(part, 1), part)
    return _taps(context, low, extent, border, [(0, rest), (1, part)])


def cubic(context: Context, place: Tensor, extent: Dim, border: Border) -> list[Tap]:
    """Four neighbours by Keys' kernel."""
    low = context.emit("floor", place)
    part = context.emit("sub", place, low)
    rest = context.emit("sub", context.like(part, 1), part)
    weights = [
        (-1, _outer(context, context.number("add", part, 1))),
        (0, _inner(context, part)),
        (1, _inner(context, rest)),
        (2, _outer(context, context.number("add", rest, 1))),
    ]
    return _taps(context, low, extent, border, weights)


def _inner(context: Context, x: Tensor) -> Tensor:
    """((a + 2)·x - (a + 3))·x·x + 1"""
    line = context.number("sub", context.number("mul", x, CUBIC_SLOPE + 2), CUBIC_SLOPE + 3)
    return context.number("add", context.emit("mul", context.emit("mul", line, x), x), 1)


def _outer(context: Context, x: Tensor) -> Tensor:
    """((a·x - 5·a)·x + 8·a)·x - 4·a"""
    a = CUBIC_SLOPE
    line = context.number("sub", context.number("mul", x, a), 5 * a)
    curve = context.number("add", context.emit("mul", line, x), 8 * a)
    return context.number("sub", context.emit("mul", curve, x), 4 * a)


def _taps(
    context: Context, low: Tensor, extent: Dim, border: Border, weights: Sequence[tuple[int, Tensor]]
) -> list[Tap]:
    first = context.cast(low, DType.INT64)
    found = []
    for step, weight in weights:
        tap = border(context, first if step == 0 else context.number("add", first, step), extent)
        found.append(Tap(tap.place, weight, tap.inside))
    return found


def corners(context: Context, x: Tensor, lead: Sequence[Tensor], taps: Sequence[Sequence[Tap]]) -> list[Tensor]:
    """Each combination of taps: the element at `lead` and their places, times their weights in x's dtype."""
    flat = context.reshape(x, [x.type.elements])
    found = []
    for combination in itertools.product(*taps):
        at = flat_places(context, [*lead, *(tap.place for tap in combination)], x.shape)
        value = context.emit("gather", flat, at, axis=0)
        for tap in combination:
            if tap.inside is not None:
                mask = context.stretch(tap.inside, value.shape)
                value = context.emit("select", mask, value, context.like(value, 0))
        weights = [context.cast(tap.weight, x.dtype) for tap in combination if tap.weight is not None]
        if weights:
            factor = weights[0]
            for weight in weights[1:]:
                factor = context.binary("mul", factor, weight)
            value = context.binary("mul", value, factor)
        found.append(value)
    return found


def total(context: Context, parts: Sequence[Tensor], name: str = "add") -> Tensor:
    """The parts joined by a binary primitive."""
    result = parts[0]
    for part in parts[1:]:
        result = context.emit(name, result, part)
    return result
