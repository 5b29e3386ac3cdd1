"""Slice: ranges of axes with ends that count from the back, clamp, or are symbolic."""

from cuvil_core.errors import UnsupportedOpError
from cuvil_core.importer.onnx import from_data
from cuvil_core.importer.onnx.context import Context, known_at_least, resolve_axes
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Relation, dim_max, dim_min

ENDLESS = 1_000_000_000
"""Exporters write an end of at least this for `to the end`; no extent in memory is as long."""

INT64 = DType.INT64
UNCLEAR_ENDS = ((1 << 31) - 1, (1 << 63) - 1)
"""With a step below zero ONNX clamps them to the last element, while runtimes go on to the first."""


def _slice(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    if node.opset >= 10 and any(one is not None and one.content is None for one in operands[1:]):
        return _slice_by_data(context, node, operands, x)
    starts, ends, axes, steps = _arguments(context, node, operands, x.rank)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.broken("starts, ends, axes and steps differ in number")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise node.broken("a step is zero")
        x = _slice_axis(context, x, axis, start, end, step)
    return x


def _slice_by_data(context: Context, node: Node, operands: Operands, x: Tensor) -> Tensor:
    """Places that only a call knows; axes too, then every axis is sliced, by its whole extent where it is not named."""
    starts, ends = (context.cast(need(node, operands, at), INT64) for at in (1, 2))
    axes, steps = optional(operands, 3), optional(operands, 4)
    count = context.length(starts)
    given = [starts, ends, context.full(INT64, 1, (count,)) if steps is None else context.cast(steps, INT64)]
    if axes is None or axes.content is not None:
        named = list(range(count)) if axes is None else context.ints(axes, "the axes")
        order = resolve_axes(named, x.rank)
    else:
        whole = [from_data.known([0] * x.rank), from_data.known(x.shape), from_data.known([1] * x.rank)]
        pairs = zip(given, whole, strict=True)
        given = [from_data.spread(context, axes, one, x.rank, other) for one, other in pairs]
        order = tuple(range(x.rank))
    for at, axis in enumerate(order):
        x = from_data.slice_axis(context, x, axis, *(from_data.element(context, one, at) for one in given))
    return x


def _arguments(
    context: Context, node: Node, operands: Operands, rank: int
) -> tuple[list[Dim], list[Dim], tuple[int, ...], list[int]]:
    if node.opset < 10:
        starts, ends = list(map(Dim.of, node.integers("starts"))), list(map(Dim.of, node.integers("ends")))
        axes = node.integers("axes", tuple(range(len(starts))))
        return starts, ends, resolve_axes(axes, rank), [1] * len(starts)
    starts = context.dims(need(node, operands, 1), "the starts")
    ends = context.dims(need(node, operands, 2), "the ends")
    given_axes, given_steps = optional(operands, 3), optional(operands, 4)
    axes = tuple(range(len(starts))) if given_axes is None else tuple(context.ints(given_axes, "the axes"))
    steps = [1] * len(starts) if given_steps is None else context.ints(given_steps, "the steps")
    return starts, ends, resolve_axes(axes, rank), steps


def _slice_axis(context: Context, x: Tensor, axis: int, start: Dim, end: Dim, step: int) -> Tensor:
    extent = x.shape[axis]
    if step < 0 and end.constant in UNCLEAR_ENDS:
        raise UnsupportedOpError(f"it goes backward to {end}, on which runtimes differ; write the least integer there")
    if step > 0:
        first, last = _clamp(context, start, extent), _clamp(context, end, extent)
        size = (last - first).ceil_div(step)
    else:
        first, last = _clamp_start_backward(context, start, extent), _clamp_end_backward(context, end, extent)
        size = (first - last).ceil_div(-step)
    size = size if known_at_least(size, 0) else _not_negative(context, size)
    return context.slice(x, axis, first, size, step)


def _clamp(context: Context, place: Dim, extent: Dim) -> Dim:
    """Into 0 .. extent; where a number meets a symbolic extent, a guard says that it lies within."""
    if place.constant is not None and place.constant >= ENDLESS:
        return extent
    if place.constant is not None and place.constant <= -ENDLESS:
        return Dim.of(0)
    if place.constant is not None and place.constant < 0:
        place = place + extent
    return _within(context, place, Dim.of(0), extent)


def _clamp_start_backward(context: Context, place: Dim, extent: Dim) -> Dim:
    """Into 0 .. extent - 1, for steps below zero; -1 where the extent is 0."""
    last = extent - 1
    beyond = place.constant is not None and place.constant <= -ENDLESS
    place = Dim.of(0) if beyond else _from_the_end(place, extent)
    if place == last:
        return last
    clamped = _within(context, place, Dim.of(0), last)
    return clamped if known_at_least(last, 0) else dim_min(clamped, last)


def _clamp_end_backward(context: Context, place: Dim, extent: Dim) -> Dim:
    """Into -1 .. extent - 1, for steps below zero."""
    return _within(context, _from_the_end(place, extent), Dim.of(-1), extent - 1)


def _from_the_end(place: Dim, extent: Dim) -> Dim:
    """Counted from the front, with ends beyond any extent at -1 and at the last element."""
    if place.constant is None:
        return place
    if place.constant >= ENDLESS:
        return extent - 1
    if place.constant <= -ENDLESS:
        return Dim.of(-1)
    return place + extent if place.constant < 0 else place


def _within(context: Context, place: Dim, low: Dim, high: Dim) -> Dim:
    if place == low:
        return low
    if (place - high).constant is not None or ((place - low).constant is not None and high.constant is not None):
        return dim_max(low, dim_min(place, high))
    context.guard(low, place, Relation.AT_MOST)
    context.guard(place, high, Relation.AT_MOST)
    return place


def _not_negative(context: Context, size: Dim) -> Dim:
    if size.constant is not None:
        return Dim.of(max(0, size.constant))
    context.guard(0, size, Relation.AT_MOST)
    return size


ENTRIES: tuple[Entry, ...] = (Entry("Slice", _slice),)
