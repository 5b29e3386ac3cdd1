"""Movement primitives; symbolic attributes are evaluated with the symbols of the call."""

from collections.abc import Mapping

import numpy as np

from cuvil_core.errors import InputError
from cuvil_core.ir import Dim, Op
from cuvil_core.reference.arrays import Array, array_of, numpy_dtype

Symbols = Mapping[str, int]


def extents(dims: tuple[Dim, ...], symbols: Symbols) -> tuple[int, ...]:
    """The dims as numbers."""
    return tuple(dim.evaluate(symbols) for dim in dims)


def iota(op: Op, symbols: Symbols) -> Array:
    """0, 1, … along the axis, repeated along the others."""
    shape, axis = extents(op.dims("shape"), symbols), op.integer("axis")
    line = np.arange(shape[axis], dtype=numpy_dtype(op.dtype()))
    return np.broadcast_to(line.reshape([-1 if at == axis else 1 for at in range(len(shape))]), shape).copy()


def dim_vector(op: Op, symbols: Symbols) -> Array:
    """The values of the dims as int64."""
    return np.array(extents(op.dims("dims"), symbols), np.int64)


def broadcast_to(op: Op, symbols: Symbols, x: Array) -> Array:
    """Stretches axes of extent 1, right-aligned."""
    return np.broadcast_to(x, extents(op.dims("shape"), symbols))


def reshape(op: Op, symbols: Symbols, x: Array) -> Array:
    """The same elements in row-major order."""
    return x.reshape(extents(op.dims("shape"), symbols))


def transpose(op: Op, symbols: Symbols, x: Array) -> Array:
    """Result axis i is operand axis perm[i]."""
    return x.transpose(op.integers("perm"))


def slice_(op: Op, symbols: Symbols, x: Array) -> Array:
    """Result index i reads start + i * step on each axis; every index must lie within."""
    starts, sizes = extents(op.dims("starts"), symbols), extents(op.dims("sizes"), symbols)
    for axis, (start, size, step) in enumerate(zip(starts, sizes, op.integers("steps"), strict=True)):
        x = np.take(x, start + np.arange(size) * step, axis=axis)
    return x


def pad(op: Op, symbols: Symbols, x: Array) -> Array:
    """A border of one value."""
    width = list(zip(extents(op.dims("low"), symbols), extents(op.dims("high"), symbols), strict=True))
    return np.pad(x, width, constant_values=array_of(op.payload())) if width else x


def concat(op: Op, *parts: Array) -> Array:
    """The operands one behind the other along the axis."""
    return np.concatenate(parts, axis=op.integer("axis"))


def gather(op: Op, data: Array, indices: Array) -> Array:
    """The slices of data at the indices; an index outside is clamped into 0 .. extent - 1."""
    axis = op.integer("axis")
    last = data.shape[axis] - 1
    return np.take(data, np.clip(indices.astype(np.int64), 0, last), axis=axis)


def in_bounds(op: Op, symbols: Symbols, indices: Array) -> Array:
    """The indices as they are; InputError where one is outside of 0 .. extent - 1."""
    extent = op.dims("extent")[0].evaluate(symbols)
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < extent:
        raise InputError(f"{op.provenance} needs indices in {-extent} .. {extent - 1}; pass others.")
    return indices
