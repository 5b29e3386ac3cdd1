"""The functions of the support library that a program may call, with what each computes.

A function takes buffers, those that it reads first, and extents. A buffer that it writes for itself alone is scratch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil_core.ir import DType

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Sequence[Array], tuple[int, ...]], None]


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """What a program may rely on."""

    dtypes: tuple[DType, ...]
    """One a buffer."""
    reads: int
    """So many buffers are read, the rest is written."""
    run: Run
    """The same in NumPy, on buffers as they lie in memory."""


def _sort(buffers: Sequence[Array], extents: tuple[int, ...]) -> None:
    """(x; places, scratch), (rows, length, descending): the places of each row's elements in order."""
    x, places, _ = buffers
    rows, length, descending = extents
    table = x[: rows * length].reshape(rows, length)
    if descending:
        order = length - 1 - np.argsort(table[:, ::-1], axis=1, kind="stable")[:, ::-1]
    else:
        order = np.argsort(table, axis=1, kind="stable")
    places[: rows * length] = order.reshape(-1)


def _positions(buffers: Sequence[Array], extents: tuple[int, ...]) -> None:
    """(mask; places), (length, count): where the mask is true, the first `count` of them."""
    mask, places = buffers
    length, count = extents
    found = np.flatnonzero(mask[:length])[:count]
    places[: found.size] = found


def _suppress(buffers: Sequence[Array], extents: tuple[int, ...]) -> None:
    """(boxes, scores, most, overlap, least; chosen, scratch), (batches, classes, boxes, centered)."""
    boxes, scores, most, overlap, least, chosen, _ = buffers
    batches, classes, count, centered = extents
    table = boxes[: batches * count * 4].reshape(batches, count, 4)
    first, second = table[..., :2], table[..., 2:]
    if centered:
        first, second = first - second / np.float32(2), first + second / np.float32(2)
    low, high = np.minimum(first, second), np.maximum(first, second)
    for row in range(batches * classes):
        line = scores[row * count : (row + 1) * count]
        kept: list[int] = []
        for one in np.argsort(-line, kind="stable"):
            if not line[one] > least[0] or len(kept) >= most[0]:
                break
            at = row // classes
            ratios = (_ratio(low[at, one], high[at, one], low[at, two], high[at, two]) for two in kept)
            if all(ratio <= overlap[0] for ratio in ratios):
                kept.append(int(one))
        chosen[row * count : (row + 1) * count] = kept + [-1] * (count - len(kept))


def _ratio(low: Array, high: Array, other_low: Array, other_high: Array) -> np.float32:
    """Intersection over union of two boxes."""
    sides = np.minimum(high, other_high) - np.maximum(low, other_low)
    if not (sides > 0).all():
        return np.float32(0)
    common = sides[0] * sides[1]
    areas = [(b[0] - a[0]) * (b[1] - a[1]) for a, b in ((low, high), (other_low, other_high))]
    return np.float32(common / (areas[0] + areas[1] - common))


SORTED = (
    DType.INT8,
    DType.INT16,
    DType.INT32,
    DType.INT64,
    DType.UINT8,
    DType.UINT16,
    DType.UINT32,
    DType.UINT64,
    DType.FLOAT16,
    DType.FLOAT32,
    DType.FLOAT64,
)
_F32, _I64 = DType.FLOAT32, DType.INT64
CALLS: dict[str, LibraryFunction] = {
    **{f"cuvil_sort_{dtype}": LibraryFunction((dtype, _I64, _I64), 1, _sort) for dtype in SORTED},
    "cuvil_positions": LibraryFunction((DType.BOOL, _I64), 1, _positions),
    "cuvil_suppress": LibraryFunction((_F32, _F32, _I64, _F32, _F32, _I64, _I64), 5, _suppress),
}
"""By the function's name in C."""
