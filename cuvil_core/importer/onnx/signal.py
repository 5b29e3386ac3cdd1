"""Spectra and windows: DFT, STFT, window functions, mel weights."""

import math
from collections.abc import Sequence

import numpy as np

from cuvil_core.errors import UnsupportedOpError
from cuvil_core.importer.onnx import from_data
from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of, need, optional
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import dtype_of
from cuvil_core.importer.onnx.transforms import (
    MAX_MATRIX,
    Matrix,
    by_matrix,
    constant,
    matrix_to_real,
    transformed,
    working,
)
from cuvil_core.ir import Dim, DType, Relation, dim_max

MAX_WINDOW_FUNCTION = 1 << 20
FLOAT_DATA = 1
"""ONNX's code of float32."""


def _dft(context: Context, node: Node, operands: Operands) -> Tensor:
    x, axis = need(node, operands, 0), optional(operands, 2)
    inverse, onesided = node.flag("inverse", False), node.flag("onesided", False)
    if x.rank < 2 or x.shape[-1].constant not in (1, 2):
        raise node.broken("its last axis must be 1 (real) or 2 (complex)")
    if onesided and x.shape[-1] != (2 if inverse else 1):
        raise node.broken("onesided it goes from real to complex, or back if it is inverse")
    if axis is not None and axis.content is None:
        return _along_late_axis(context, node, operands, x, axis)
    named = node.integer("axis", 1) if node.opset < 20 else -2
    at = resolve_axis(named if axis is None else context.ints(axis, "the axis")[0], x.rank)
    if at == x.rank - 1:
        raise node.broken("its axis is the one of real and imaginary parts")
    return _along(context, node, operands, x, at)


def _along(context: Context, node: Node, operands: Operands, x: Tensor, axis: int) -> Tensor:
    default = (x.shape[axis] - 1) * 2 if _is_to_real(node) else x.shape[axis]
    points = _points(context, optional(operands, 1), default)
    wide = context.cast(x, working(x.dtype))
    if _is_to_real(node):
        half = _fitted(context, wide, axis, points // 2 + 1)
        result = by_matrix(context, half, matrix_to_real(context, node, points, wide.dtype), axis)
    else:
        bins = points // 2 + 1 if node.flag("onesided", False) else points
        sign = 1.0 if node.flag("inverse", False) else -1.0
        result = transformed(context, node, _fitted(context, wide, axis, points), axis, points, bins, sign)
    if node.flag("inverse", False):
        result = context.binary("div", result, context.count(points, result.dtype))
    return context.cast(result, x.dtype)


def _is_to_real(node: Node) -> bool:
    """True for the way from half a spectrum to a real signal."""
    return node.flag("inverse", False) and node.flag("onesided", False)


def _along_late_axis(context: Context, node: Node, operands: Operands, x: Tensor, axis: Tensor) -> Tensor:
    """All axes are transformed, and the call takes the one that it names, with the extents that this one has."""
    named = context.reshape(from_data.wrapped(context, context.reshape(axis, [1]), x.rank), ())
    context.check(context.number("ne", named, x.rank - 1), "the axis is not the one of real and imaginary parts")
    made: dict[int, Tensor] = {}
    for at in range(x.rank - 1):
        if _is_to_real(node) and x.shape[at] == 1 and optional(operands, 1) is None:
            context.check(context.number("ne", named, at), f"the axis is not {at}, which has no point")
        else:
            made[at] = _along(context, node, operands, x, at)
    return _chosen(context, x, named, made)


def _chosen(context: Context, x: Tensor, named: Tensor, made: dict[int, Tensor]) -> Tensor:
    if not made:
        raise UnsupportedOpError("no axis has a point to transform")
    shape = list(next(iter(made.values())).shape)
    for at in range(x.rank - 1):
        if any(one.shape[at] != shape[at] for one in made.values()):
            own = context.count(shape[at], DType.INT64)
            for number, one in made.items():
                here = context.number("eq", named, number)
                own = context.emit("select", here, context.count(one.shape[at], DType.INT64), own)
            shape[at] = context.extent(own)
    result: Tensor | None = None
    for number, one in made.items():
        for at, extent in enumerate(shape):
            # Places beyond an axis that is not the one named are clamped by gather, and never taken.
            one = (
                one if one.shape[at] == extent else context.emit("gather", one, counted(context, [extent], 0), axis=at)
            )
        here = context.stretch(context.number("eq", named, number), tuple(shape))
        result = one if result is None else context.emit("select", here, one, result)
    assert result is not None
    return result


def _points(context: Context, given: Tensor | None, default: Dim) -> Dim:
    points = default if given is None else context.extent(given)
    context.guard(1, points, Relation.AT_MOST)
    return points


def _fitted(context: Context, x: Tensor, axis: int, size: Dim) -> Tensor:
    """Zeros behind, or the end cut off."""
    extent = x.shape[axis]
    if extent == size:
        return x
    low, high = [Dim.of(0)] * x.rank, [Dim.of(0)] * x.rank
    high[axis] = dim_max(size - extent, 0)
    return context.slice(pad(context, x, low, high, 0), axis, 0, size)


def _stft(context: Context, node: Node, operands: Operands) -> Tensor:
    """Frames of the signal, times the window, transformed."""
    signal, step = need(node, operands, 0), need(node, operands, 1)
    window, length = optional(operands, 2), optional(operands, 3)
    signal = context.reshape(signal, [*signal.shape, Dim.of(1)]) if signal.rank == 2 else signal
    parts = signal.shape[-1].constant
    onesided = node.flag("onesided", True)
    if signal.rank != 3 or parts not in (1, 2) or (onesided and parts == 2):
        raise node.broken("its signal must be real, or complex without onesided")
    if window is not None and window.rank != 1:
        raise node.broken("its window must be a vector")
    points = _points(context, length, window.shape[0] if window is not None else signal.shape[1])
    context.guard(points, signal.shape[1], Relation.AT_MOST)
    picked = _frames(context, node, signal, context.cast(context.reshape(step, ()), DType.INT64), points)
    if window is not None:
        context.guard(window.type.elements, points)
        picked = context.binary("mul", picked, context.reshape(window, [points, 1]))
    bins = points // 2 + 1 if onesided else points
    wide = context.cast(picked, working(signal.dtype))
    return context.cast(transformed(context, node, wide, 2, points, bins, -1.0), signal.dtype)


def _frames(context: Context, node: Node, signal: Tensor, hop: Tensor, points: Dim) -> Tensor:
    """batch, frames, points, parts"""
    if hop.content is not None and any((one.constant or 0) < 1 for one in hop.content.ravel()):
        raise node.broken("the frame step is not positive")
    context.check(context.number("ge", hop, 1), "the frame step is positive")
    hop = context.number("max", hop, 1)
    left = context.count(signal.shape[1] - points, DType.INT64)
    frames = context.extent(context.number("add", context.emit("div", left, hop), 1))
    grid = (frames, points)
    start = context.binary("mul", counted(context, grid, 0), hop)
    return context.emit("gather", signal, context.emit("add", start, counted(context, grid, 1)), axis=1)


def _window_function(*terms: float) -> Translate:
    """a0 - a1·cos(t) + a2·cos(2·t) with t = 2·pi·n over the size, or one less where it is symmetric."""

    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        (given,) = all_of(node, operands)
        size = context.extent(given)
        dtype = dtype_of(node.integer("output_datatype", FLOAT_DATA), str(node))
        if size.constant is not None and size.constant < 0:
            raise node.broken(f"the size {size} is negative")
        length = size if node.flag("periodic", True) else size - 1
        if size.constant is None or size.constant > MAX_WINDOW_FUNCTION:
            return context.cast(_computed(context, size, length, terms), dtype)
        turns = np.arange(size.constant) * (2 * np.pi / max(1, length.constant or 0))
        values = sum(((-1) ** at * term * np.cos(at * turns) for at, term in enumerate(terms)), np.zeros(size.constant))
        return context.cast(constant(values, dtype), dtype)

    return translate


def _computed(context: Context, size: Dim, length: Dim, terms: Sequence[float]) -> Tensor:
    place = context.emit("iota", shape=(size,), axis=0, dtype=DType.FLOAT32)
    least = context.number("max", context.count(length, DType.FLOAT32), 1)
    total = context.full(DType.FLOAT32, terms[0], [size])
    for at, term in enumerate(terms[1:], 1):
        turns = context.binary("div", context.number("mul", place, 2 * math.pi * at), least)
        wave = context.number("mul", context.emit("cos", turns), (-1) ** at * term)
        total = context.emit("add", total, wave)
    return total


def _mel_weights(context: Context, node: Node, operands: Operands) -> Tensor:
    """Triangles over the bins of a spectrum, evenly spaced on the mel scale."""
    sizes = zip(all_of(node, operands)[:3], ("the number of bins", "the length", "the sample rate"), strict=True)
    bins, points, rate = (context.ints(given, what)[0] for given, what in sizes)
    low, high = (float(context.numbers(need(node, operands, at), "the edges")[0]) for at in (3, 4))
    if min(bins, points, rate) < 1 or not 0 <= low <= high < math.inf or bins * points > MAX_MATRIX:
        raise node.broken("its sizes and edges do not describe a spectrum")
    dtype = dtype_of(node.integer("output_datatype", FLOAT_DATA), str(node))
    ends = [2595 * math.log10(1 + edge / 700) for edge in (low, high)]
    mels = np.arange(bins + 2) * ((ends[1] - ends[0]) / (bins + 2)) + ends[0]
    places = ((points + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    rows = points // 2 + 1
    if places[-2] >= rows:
        raise node.broken(f"its upper edge lies beyond the {rows} bins of the spectrum")
    weights = np.stack([_triangle(rows, *map(int, places[at : at + 3])) for at in range(bins)], axis=1)
    return context.cast(constant(weights, dtype), dtype)


def _triangle(rows: int, left: int, centre: int, right: int) -> Matrix:
    """0 at `left`, 1 at `centre`, 0 at `right`."""
    at = np.arange(rows, dtype=np.float64)
    rising = (at - left) / (centre - left) if centre > left else np.where(at == centre, 1.0, 0.0)
    falling = (right - at) / (right - centre) if right > centre else np.zeros(rows)
    upward = np.where((at >= left) & (at <= centre), rising, 0.0)
    return np.where((at >= centre) & (at < right), falling, upward)


ENTRIES: tuple[Entry, ...] = (
    Entry("DFT", _dft, since=17),
    Entry("STFT", _stft, since=17),
    Entry("HannWindow", _window_function(0.5, 0.5), since=17),
    Entry("HammingWindow", _window_function(25 / 46, 21 / 46), since=17),
    Entry("BlackmanWindow", _window_function(0.42, 0.5, 0.08), since=17),
    Entry("MelWeightMatrix", _mel_weights, since=17),
)
