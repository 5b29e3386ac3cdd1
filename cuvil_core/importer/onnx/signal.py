"""Spectra and windows: DFT and STFT as dots with matrices of cosines and sines, window functions, mel weights."""

import math
from collections.abc import Sequence
from typing import Any

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
from cuvil_core.ir import Dim, DType, Payload, Relation, dim_max

Matrix = np.ndarray[Any, np.dtype[np.float64]]
MAX_MATRIX = 1 << 22
"""Elements of a matrix of cosines: a transform of 2,048 points has as many; longer ones want a fast algorithm."""
MAX_WINDOW_FUNCTION = 1 << 20
FLOAT_DATA = 1
"""ONNX's code of float32."""


def _circle(context: Context, node: Node, grid: tuple[Dim, Dim], length: Dim, dtype: DType) -> tuple[Tensor, Tensor]:
    """cos and sin of 2·pi·row·column/length, with true zeros on the axes."""
    rows, columns = (extent.constant for extent in grid)
    if rows is None or columns is None or length.constant is None:
        return _computed_circle(context, node, grid, length, dtype)
    if rows * columns > MAX_MATRIX:
        raise node.unsupported(f"a transform of {length} points; at most {MAX_MATRIX} products are written out")
    turns = np.outer(np.arange(rows, dtype=np.int64), np.arange(columns, dtype=np.int64)) % max(1, length.constant)
    angles = turns * (2 * np.pi / max(1, length.constant))
    found = [np.where(abs(values) < 1e-15, 0.0, values) for values in (np.cos(angles), np.sin(angles))]
    return _constant(found[0], dtype), _constant(found[1], dtype)


def _computed_circle(
    context: Context, node: Node, grid: tuple[Dim, Dim], length: Dim, dtype: DType
) -> tuple[Tensor, Tensor]:
    """The same in the call; quarters of a turn are taken off first, so that zeros are true."""
    if dtype is DType.FLOAT64:
        raise node.unsupported("a transform in float64 whose length is symbolic or comes from the input's data")
    steps = context.emit("mul", counted(context, grid, 0), counted(context, grid, 1))
    least = context.number("max", context.count(length, DType.INT64), 1)
    turns = context.cast(context.binary("mod", steps, least, kind="floor"), DType.FLOAT32)
    turns = context.binary("div", turns, context.cast(least, DType.FLOAT32))
    return _sine_of_turns(context, context.number("add", turns, 0.25)), _sine_of_turns(context, turns)


def _sine_of_turns(context: Context, turns: Tensor) -> Tensor:
    halves = context.emit("round", context.number("mul", turns, 2))
    rest = context.emit("sub", turns, context.number("mul", halves, 0.5))
    odd = context.number("mod", halves, 2, kind="floor")
    sign = context.emit("sub", context.like(odd, 1), context.number("mul", odd, 2))
    return context.emit("mul", sign, context.emit("sin", context.number("mul", rest, 2 * math.pi)))


def _forward(context: Context, node: Node, sizes: tuple[Dim, Dim], parts: int, sign: float, dtype: DType) -> Tensor:
    """points, parts of the input (real, imaginary) → bins, parts of the result: sum of x·exp(sign·i·angle)."""
    cos, sin = _circle(context, node, sizes, sizes[0], dtype)
    forth, back = context.number("mul", sin, sign), context.number("mul", sin, -sign)
    rows = [_side_by_side(context, cos, forth), _side_by_side(context, back, cos)][:parts]
    return context.concat([context.reshape(row, [sizes[0], 1, sizes[1], 2]) for row in rows], 1)


def _side_by_side(context: Context, a: Tensor, b: Tensor) -> Tensor:
    return context.concat([context.reshape(one, [*one.shape, 1]) for one in (a, b)], a.rank)


def _to_real(context: Context, node: Node, points: Dim, dtype: DType) -> Tensor:
    """The bins of a real signal's spectrum, but for those that mirror others → its points."""
    bins = points // 2 + 1
    cos, sin = _circle(context, node, (bins, points), points, dtype)
    at = counted(context, [bins], 0)
    own = context.number("eq", at, 0)
    own = context.emit(
        "or", own, context.binary("eq", context.number("mul", at, 2), context.count(points, DType.INT64))
    )
    twice = context.emit("select", own, context.full(cos.dtype, 1, [bins]), context.full(cos.dtype, 2, [bins]))
    weights = context.stretch(context.reshape(twice, [bins, 1]), cos.shape)
    rows = [context.emit("mul", one, weights) for one in (cos, context.emit("neg", sin))]
    matrix = context.concat([context.reshape(row, [bins, 1, points, 1]) for row in rows], 1)
    return matrix


def _constant(matrix: Matrix, dtype: DType) -> Tensor:
    wide = np.float64 if dtype is DType.FLOAT64 else np.float32
    data = np.ascontiguousarray(matrix.astype(wide))
    kind = DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32
    return Tensor.of_payload(Payload(kind, data.shape, data.tobytes()))


def _transformed(context: Context, x: Tensor, matrix: Tensor, axis: int, by: Dim | None = None) -> Tensor:
    """Axis `axis` and the last one of x by the first two of the matrix; its other two take their places."""
    wide = context.cast(x, matrix.dtype)
    last = x.rank - 1
    result = context.emit("dot", wide, matrix, batch_a=(), batch_b=(), contract_a=(axis, last), contract_b=(0, 1))
    if by is not None:
        result = context.binary("div", result, context.count(by, result.dtype))
    perm = list(range(last - 1))
    perm.insert(axis, last - 1)
    return context.cast(context.transpose(result, [*perm, last]), x.dtype)


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
    inverse, onesided, parts = node.flag("inverse", False), node.flag("onesided", False), x.shape[-1].constant or 1
    default = (x.shape[axis] - 1) * 2 if _is_to_real(node) else x.shape[axis]
    points = _points(context, optional(operands, 1), default)
    if _is_to_real(node):
        matrix = _to_real(context, node, points, x.dtype)
        return _transformed(context, _fitted(context, x, axis, points // 2 + 1), matrix, axis, points)
    bins = points // 2 + 1 if onesided else points
    matrix = _forward(context, node, (points, bins), parts, 1.0 if inverse else -1.0, x.dtype)
    return _transformed(context, _fitted(context, x, axis, points), matrix, axis, points if inverse else None)


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
    points = _points(context, length, window.shape[0] if window is not None else signal.shape[1])
    context.guard(points, signal.shape[1], Relation.AT_MOST)
    picked = _frames(context, node, signal, context.cast(context.reshape(step, ()), DType.INT64), points)
    if window is not None:
        context.guard(window.type.elements, points)
        picked = context.binary("mul", picked, context.reshape(window, [points, 1]))
    bins = points // 2 + 1 if onesided else points
    return _transformed(context, picked, _forward(context, node, (points, bins), parts, -1.0, signal.dtype), 2)


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
        return context.cast(_constant(values, dtype), dtype)

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
    return context.cast(_constant(weights, dtype), dtype)


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
