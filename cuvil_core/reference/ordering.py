"""Sorting, places of true elements, and the greedy choice among overlapping boxes."""

import numpy as np

from cuvil_core.ir import Op
from cuvil_core.reference.arrays import Array


def sort_order(op: Op, x: Array) -> Array:
    """The places of the last axis' elements in order; equals keep theirs, NaN counts as greater than all numbers."""
    if not op.attributes["descending"]:
        return np.argsort(x, axis=-1, kind="stable").astype(np.int64)
    backward = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.asarray(x.shape[-1] - 1 - backward, np.int64)


def positions(op: Op, mask: Array) -> Array:
    """The places of true elements in order."""
    return np.flatnonzero(mask).astype(np.int64)


def suppress(op: Op, boxes: Array, scores: Array, most: Array, overlap: Array, least: Array) -> Array:
    """[batch, class, rank] → the box at that rank, -1 past the last.

    By falling score, equals by place, a box with a score above `least` is chosen unless its intersection over union
    with one chosen before exceeds `overlap`; at most `most` a class. Boxes are two corners, or centre and size if
    `centered`.
    """
    found = np.full(scores.shape, -1, np.int64)
    corners = _corners(boxes.astype(np.float32), bool(op.attributes["centered"]))
    for batch, kind in np.ndindex(*scores.shape[:2]):
        row = scores[batch, kind]
        order = [one for one in np.argsort(-row, kind="stable") if row[one] > least]
        chosen: list[int] = []
        for one in order:
            if len(chosen) >= int(most):
                break
            if all(_overlap(corners[batch, one], corners[batch, other]) <= overlap for other in chosen):
                chosen.append(int(one))
        found[batch, kind, : len(chosen)] = chosen
    return found


def _corners(boxes: Array, centered: bool) -> Array:
    """[…, (low0, low1, high0, high1)]"""
    first, second = boxes[..., :2], boxes[..., 2:]
    if centered:
        half = second / np.float32(2)
        first, second = first - half, first + half
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _overlap(a: Array, b: Array) -> np.float32:
    """Intersection over union in float32; 0 where they do not meet."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    if (high <= low).any():
        return np.float32(0)
    common = (high[0] - low[0]) * (high[1] - low[1])
    size_a, size_b = ((one[2] - one[0]) * (one[3] - one[1]) for one in (a, b))
    return np.float32(common / (size_a + size_b - common))
