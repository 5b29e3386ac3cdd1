"""Spectra and windows: DFT and STFT as dots with matrices of cosines and sines, window functions, mel weights."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of, need, optional
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import dtype_of
from cuvil_core.ir import Dim, DType, Payload, Relation

Matrix = np.ndarray[Any, np.dtype[np.float64]]
MAX_MATRIX = 1 << 22
"""Elements of a matrix of cosines: a transform of 2,048 points has as many; longer ones want a fast algorithm."""
MAX_WINDOW_FUNCTION = 1 << 20
FLOAT_DATA = 1
"""ONNX's code of float32."""


def _circle(node: Node, rows: int, columns: int, length: int) -> tuple[Matrix, Matrix]:
    """cos and sin of 2·pi·row·column/length, with true zeros on the axes."""
    if rows * columns > MAX_MATRIX or length < 1:
        raise node.unsupported(f"a transform of {length} points; at most {MAX_MATRIX} products are written out")
    turns = np.outer(np.arange(rows, dtype=np.int64), np.arange(columns, dtype=np.int64)) % length
    angles = turns * (2 * np.pi / length)
    found = [np.where(abs(values) < 1e-15, 0.0, values) for values in (np.cos(angles), np.sin(angles))]
    return found[0], found[1]


def _forward(node: Node, points: int, bins: int, parts: int, sign: float, factor: float) -> Matrix:
    """points, parts of the input (real, imaginary) → bins, parts of the result: sum of x·exp(sign·i·angle)·factor."""
    cos, sin = _circle(node, points, bins, points)
    real = np.stack([cos, sign * sin], axis=-1)
    imaginary = np.stack([-sign * sin, cos], axis=-1)
    return np.stack([real, imaginary][:parts], axis=1) * factor


def _to_real(node: Node, points: int) -> Matrix:
    """The bins of a real signal's spectrum, but for those that mirror others → its points."""
    bins = points // 2 + 1
    cos, sin = _circle(node, bins, points, points)
    twice = np.where((np.arange(bins) == 0) | (2 * np.arange(bins) == points), 1.0, 2.0)[:, None]
    return np.stack([cos * twice, -sin * twice], axis=1)[..., None] / points


def _constant(matrix: Matrix, dtype: DType) -> Tensor:
    wide = np.float64 if dtype is DType.FLOAT64 else np.float32
    data = np.ascontiguousarray(matrix.astype(wide))
    kind = DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32
    return Tensor.of_payload(Payload(kind, data.shape, data.tobytes()))


def _transformed(context: Context, x: Tensor, matrix: Matrix, axis: int) -> Tensor:
    """Axis `axis` and the last one of x by the first two of the matrix; its other two take their places."""
    factors = _constant(matrix, x.dtype)
    wide = context.cast(x, factors.dtype)
    last = x.rank - 1
    result = context.emit("dot", wide, factors, batch_a=(), batch_b=(), contract_a=(axis, last), contract_b=(0, 1))
    perm = list(range(last - 1))
    perm.insert(axis, last - 1)
    return context.cast(context.transpose(result, [*perm, last]), x.dtype)


def _dft(context: Context, node: Node, operands: Operands) -> Tensor:
    x, given = need(node, operands, 0), optional(operands, 1)
    axis = _dft_axis(context, node, operands, x)
    inverse, onesided = node.flag("inverse", False), node.flag("onesided", False)
    parts, to_real = x.shape[-1].constant, inverse and onesided
    if parts not in (1, 2) or (onesided and parts != (2 if inverse else 1)):
        raise node.broken("its last axis must be 1 (real) or 2 (complex), as onesided and inverse say")
    points = _points(context, node, given, (x.shape[axis] - 1) * 2 if to_real else x.shape[axis])
    if to_real:
        return _transformed(context, _fitted(context, x, axis, points // 2 + 1), _to_real(node, points), axis)
    bins = points // 2 + 1 if onesided else points
    sign, factor = (1.0, 1 / points) if inverse else (-1.0, 1.0)
    matrix = _forward(node, points, bins, parts, sign, factor)
    return _transformed(context, _fitted(context, x, axis, points), matrix, axis)


def _dft_axis(context: Context, node: Node, operands: Operands, x: Tensor) -> int:
    given = optional(operands, 2)
    named = node.integer("axis", 1) if node.opset < 20 else -2
    if given is not None:
        named = context.ints(given, "the axis")[0]
    axis = resolve_axis(named, x.rank)
    if axis == x.rank - 1:
        raise node.broken("its axis is the one of real and imaginary parts")
    return axis


def _points(context: Context, node: Node, given: Tensor | None, default: Dim) -> int:
    points = default.constant if given is None else context.ints(given, "the length")[0]
    if points is None:
        raise node.unsupported(f"a transform of the symbolic extent {default}")
    if points < 1:
        raise node.broken(f"there is no transform of {points} points")
    return points


def _fitted(context: Context, x: Tensor, axis: int, size: int) -> Tensor:
    """Zeros behind, or the end cut off."""
    extent = x.shape[axis].constant
    if extent is None:
        context.guard(size, x.shape[axis], Relation.AT_MOST)
    if extent is None or extent > size:
        return context.slice(x, axis, 0, size)
    low, high = [Dim.of(0)] * x.rank, [Dim.of(0)] * x.rank
    high[axis] = Dim.of(size - extent)
    return pad(context, x, low, high, 0)


def _stft(context: Context, node: Node, operands: Operands) -> Tensor:
    """Frames of the signal, times the window, transformed."""
    signal, step, window, length = need(node, operands, 0), need(node, operands, 1), optional(operands, 2), None
    length = optional(operands, 3)
    signal = context.reshape(signal, [*signal.shape, Dim.of(1)]) if signal.rank == 2 else signal
    parts = signal.shape[-1].constant
    onesided = node.flag("onesided", True)
    if signal.rank != 3 or parts not in (1, 2) or (onesided and parts == 2):
        raise node.broken("its signal must be real, or complex without onesided")
    hop = context.ints(step, "the frame step")[0]
    points = _points(context, node, length, window.shape[0] if window is not None else signal.shape[1])
    if hop < 1:
        raise node.broken(f"the frame step {hop} is not positive")
    frames = (signal.shape[1] - points) // hop + 1
    context.guard(points, signal.shape[1], Relation.AT_MOST)
    grid = (frames, Dim.of(points))
    start = context.number("mul", counted(context, grid, 0), hop)
    picked = context.emit("gather", signal, context.emit("add", start, counted(context, grid, 1)), axis=1)
    if window is not None:
        context.guard(window.type.elements, points)
        picked = context.binary("mul", picked, context.reshape(window, [points, 1]))
    bins = points // 2 + 1 if onesided else points
    return _transformed(context, picked, _forward(node, points, bins, parts, -1.0, 1.0), 2)


def _window_function(*terms: float) -> Translate:
    """a0 - a1·cos(t) + a2·cos(2·t) with t = 2·pi·n over the size, or one less where it is symmetric."""

    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        (given,) = all_of(node, operands)
        size = context.dims(given, "the size")[0]
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
