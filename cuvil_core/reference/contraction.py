"""Contractions: dot by einsum's meaning through matmul, convolution tap by tap."""

from typing import Any

import numpy as np

from cuvil_core.ir import Op
from cuvil_core.reference.arrays import Array
from cuvil_core.reference.reduction import pad_spatial, taps


def dot(op: Op, a: Array, b: Array) -> Array:
    """Sum over the contracted axes: batch, free of a, free of b."""
    batch_a, batch_b = op.integers("batch_a"), op.integers("batch_b")
    contract_a, contract_b = op.integers("contract_a"), op.integers("contract_b")
    free_a = [axis for axis in range(a.ndim) if axis not in (*batch_a, *contract_a)]
    free_b = [axis for axis in range(b.ndim) if axis not in (*batch_b, *contract_b)]
    batch = [a.shape[axis] for axis in batch_a]
    shape_a, shape_b = [a.shape[axis] for axis in free_a], [b.shape[axis] for axis in free_b]
    inner = int(np.prod([a.shape[axis] for axis in contract_a], dtype=np.int64))
    left = a.transpose((*batch_a, *free_a, *contract_a)).reshape((*batch, _size(shape_a), inner))
    right = b.transpose((*batch_b, *contract_b, *free_b)).reshape((*batch, inner, _size(shape_b)))
    return np.asarray(np.matmul(left, right)).reshape((*batch, *shape_a, *shape_b))


def _size(shape: list[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def conv(op: Op, x: Array, w: Array) -> Array:
    """Cross-correlation: y[n, o, p…] = sum over i, k… of x[n, i, p*stride + k*dilation - pad…] * w[o, i, k…].

    With base dilation b the operand first has b - 1 zeros put between its elements.
    """
    groups, window = op.integer("groups"), w.shape[2:]
    padded = pad_spatial(_stretch(x, op.integers("base_dilations")), op.integers("pads"), 0)
    batch, outputs, inner = x.shape[0], w.shape[0], w.shape[1]
    grouped = w.reshape(groups, outputs // groups, inner, *window)
    total: Array | None = None
    extents: tuple[int, ...] = ()
    for tap, part in taps(padded, window, op.integers("strides"), op.integers("dilations")):
        extents = part.shape[2:]
        columns = part.reshape(batch, groups, inner, _size(list(extents)))
        at: tuple[Any, ...] = (..., *tap)
        weights = grouped[at]
        step = _tap_product(weights, columns)
        total = step if total is None else total + step
    assert total is not None
    return np.asarray(total).reshape(batch, outputs, *extents)


def _tap_product(weights: Array, columns: Array) -> Array:
    """weights g,o,i and columns n,g,i,p → n,g,o,p; one input channel a group needs no sum."""
    if weights.shape[2] == 1:
        return np.asarray(weights[None] * columns)
    return np.asarray(np.matmul(weights, columns))


def _stretch(x: Array, base: tuple[int, ...]) -> Array:
    if all(step == 1 for step in base):
        return x
    extents = [max(0, (extent - 1) * step + 1) for extent, step in zip(x.shape[2:], base, strict=True)]
    wide = np.zeros((*x.shape[:2], *extents), x.dtype)
    wide[(slice(None), slice(None), *(slice(None, None, step) for step in base))] = x
    return wide
