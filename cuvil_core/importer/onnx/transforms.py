"""Transforms as dots with matrices of cosines and sines: one for all points, or two for the factors of their number."""

import math
from typing import Any

import numpy as np

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Payload

Matrix = np.ndarray[Any, np.dtype[np.float64]]
MAX_MATRIX = 1 << 22
"""Elements of a matrix of cosines: a transform of 2,048 points has as many."""


def working(dtype: DType) -> DType:
    """The dtype in which transforms are computed."""
    return DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32


def transformed(context: Context, node: Node, x: Tensor, axis: int, points: Dim, bins: Dim, sign: float) -> Tensor:
    """sum over n of x[n]·exp(sign·2·pi·i·n·k/points) for k below `bins`; parts (real, imaginary) on the last axis.

    x is of a working dtype. Where the number of points has factors, a complex signal goes by two short transforms with
    a turn of each element between them. A real one goes by one matrix, whose zeros are true, while that is small.
    """
    parts, count = x.shape[-1].constant or 1, points.constant
    factor = 1 if count is None else _middle_factor(count)
    if count is None or factor == 1 or (parts == 1 and count * count <= MAX_MATRIX):
        return by_matrix(context, x, _matrix(context, node, (points, bins), parts, sign, x.dtype), axis)
    whole = _in_two(context, node, x, axis, (factor, count // factor), sign)
    return context.slice(whole, axis, 0, bins)


def _middle_factor(count: int) -> int:
    """The greatest factor up to the square root."""
    return next((factor for factor in range(math.isqrt(count), 1, -1) if count % factor == 0), 1)


def _in_two(context: Context, node: Node, x: Tensor, axis: int, sizes: tuple[int, int], sign: float) -> Tensor:
    """Point n is b·n1 + n2, bin k is k1 + a·k2: transforms over n1, a turn by n2·k1, transforms over n2."""
    a, b = sizes
    last, lead = x.rank - 1, [at for at in range(x.rank - 1) if at != axis]
    moved = context.transpose(x, [*lead, axis, last])
    apart = context.reshape(moved, [*moved.shape[:-2], a, b, moved.shape[-1]])
    at = len(lead)
    parts = x.shape[-1].constant or 1
    first = by_matrix(context, apart, _matrix(context, node, (Dim.of(a),) * 2, parts, sign, x.dtype), at)
    turned = _turned(context, node, first, at, a * b, sign)
    second = by_matrix(context, turned, _matrix(context, node, (Dim.of(b),) * 2, 2, sign, x.dtype), at + 1)
    swapped = context.transpose(second, [*range(at), at + 1, at, at + 2])
    joined = context.reshape(swapped, [*swapped.shape[:at], a * b, 2])
    perm = list(range(at))
    perm.insert(axis, at)
    return context.transpose(joined, [*perm, at + 1])


def _turned(context: Context, node: Node, x: Tensor, axis: int, points: int, sign: float) -> Tensor:
    """Each element times exp(sign·2·pi·i·n·k/points) by its places k and n on the axis and the next one."""
    grid = (x.shape[axis], x.shape[axis + 1])
    cos, sin = (context.reshape(one, [*grid, 1]) for one in _circle(context, node, grid, Dim.of(points), x.dtype))
    real, imaginary = (context.slice(x, x.rank - 1, part, 1) for part in (0, 1))
    forth = context.number("mul", sin, sign)
    return context.concat(
        [
            context.emit("sub", context.binary("mul", real, cos), context.binary("mul", imaginary, forth)),
            context.emit("add", context.binary("mul", real, forth), context.binary("mul", imaginary, cos)),
        ],
        x.rank - 1,
    )


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
    return constant(found[0], dtype), constant(found[1], dtype)


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


def _matrix(context: Context, node: Node, sizes: tuple[Dim, Dim], parts: int, sign: float, dtype: DType) -> Tensor:
    """points, parts of the input (real, imaginary) → bins, parts of the result: sum of x·exp(sign·i·angle)."""
    cos, sin = _circle(context, node, sizes, sizes[0], dtype)
    forth, back = context.number("mul", sin, sign), context.number("mul", sin, -sign)
    rows = [_side_by_side(context, cos, forth), _side_by_side(context, back, cos)][:parts]
    return context.concat([context.reshape(row, [sizes[0], 1, sizes[1], 2]) for row in rows], 1)


def _side_by_side(context: Context, a: Tensor, b: Tensor) -> Tensor:
    return context.concat([context.reshape(one, [*one.shape, 1]) for one in (a, b)], a.rank)


def matrix_to_real(context: Context, node: Node, points: Dim, dtype: DType) -> Tensor:
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
    return context.concat([context.reshape(row, [bins, 1, points, 1]) for row in rows], 1)


def constant(matrix: Matrix, dtype: DType) -> Tensor:
    """The matrix as a constant of the dtype in which such a one is computed with."""
    kind = working(dtype)
    data = np.ascontiguousarray(matrix.astype(kind.value))
    return Tensor.of_payload(Payload(kind, data.shape, data.tobytes()))


def by_matrix(context: Context, x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """Axis `axis` and the last one of x by the first two of the matrix; its other two take their places."""
    last = x.rank - 1
    result = context.emit("dot", x, matrix, batch_a=(), batch_b=(), contract_a=(axis, last), contract_b=(0, 1))
    perm = list(range(last - 1))
    perm.insert(axis, last - 1)
    return context.transpose(result, [*perm, last])
