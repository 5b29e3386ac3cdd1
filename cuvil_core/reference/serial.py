"""Primitives whose steps follow one another."""

from typing import Any

import numpy as np

from cuvil_core.ir import Op
from cuvil_core.reference.arrays import Array

_JOIN: dict[str, "np.ufunc"] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def prefix_reduce(op: Op, x: Array) -> Array:
    """result[i] joins x[0] … x[i] along the axis, one after the other in the dtype of x."""
    axis, join = op.integer("axis"), _JOIN[op.text("kind")]
    return np.asarray(join.accumulate(x, axis=axis, dtype=x.dtype))


def scatter(op: Op, data: Array, indices: Array, updates: Array) -> Array:
    """data with the rows of updates joined in at the indices, first to last; rows at indices outside are left out."""
    result = np.array(data)
    join = _JOIN.get(op.text("kind"))
    for index, row in zip(indices.tolist(), updates, strict=True):
        if 0 <= index < len(result):
            at: Any = index
            result[at] = row if join is None else join(result[at], row)
    return result
