"""Slice: ranges of axes with ends that count from the back, clamp, or are symbolic."""

import numpy as np

from cuvil_core.importer.onnx.context import Context, known_at_least, resolve_axes
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, Relation, dim_max, dim_min

ENDLESS = 1_000_000_000
"""Exporters write an end of at least this for `to the end`; no extent in memory is as long."""


def _slice(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    starts, ends, axes, steps = _arguments(context, node, operands, x.rank)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.broken("starts, ends, axes and steps differ in number")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise node.broken("a step is zero")
        x = _slice_axis(context, x, axis, start, end, step)
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
    if x.content is not None and None not in (start.constant, end.constant):
        picks = [slice(None)] * x.rank
        picks[axis] = slice(start.constant, _python_end(end.constant or 0, step), step)
        return Tensor.of_content(x.dtype, np.asarray(x.content[tuple(picks)], object))
    if step > 0:
        first, last = _clamp(context, start, extent), _clamp(context, end, extent)
        size = (last - first).ceil_div(step)
    else:
        first, last = _clamp_backward(context, start, extent), _clamp_backward(context, end, extent)
        size = (first - last).ceil_div(-step)
    size = size if known_at_least(size, 0) else _not_negative(context, size)
    return context.slice(x, axis, first, size, step)


def _python_end(end: int, step: int) -> int | None:
    """Python reads -1 as the last element; ONNX's `before the first` is a very negative number in both."""
    return None if step > 0 and end >= ENDLESS else end


def _clamp(context: Context, place: Dim, extent: Dim) -> Dim:
    """Into 0 .. extent; where a number meets a symbolic extent, a guard says that it lies within."""
    if place.constant is not None and place.constant >= ENDLESS:
        return extent
    if place.constant is not None and place.constant <= -ENDLESS:
        return Dim.of(0)
    if place.constant is not None and place.constant < 0:
        place = place + extent
    return _within(context, place, Dim.of(0), extent)


def _clamp_backward(context: Context, place: Dim, extent: Dim) -> Dim:
    """Into -1 .. extent - 1, for steps below zero."""
    if place.constant is not None and place.constant >= ENDLESS:
        return extent - 1
    if place.constant is not None and place.constant <= -ENDLESS:
        return Dim.of(-1)
    if place.constant is not None and place.constant < 0:
        place = place + extent
    return _within(context, place, Dim.of(-1), extent - 1)


def _within(context: Context, place: Dim, low: Dim, high: Dim) -> Dim:
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
