"""Reductions over axes and windows."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cuvil_core.ir import Op
from cuvil_core.reference.arrays import Array

_REDUCERS: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


def identity(kind: str, dtype: np.dtype[Any]) -> float | int:
    """The element that changes nothing: 0, 1, or the least or greatest of the dtype."""
    if kind in ("sum", "prod"):
        return int(kind == "prod")
    if not np.issubdtype(dtype, np.integer):
        return -np.inf if kind == "max" else np.inf
    info = np.iinfo(dtype)
    return int(info.min if kind == "max" else info.max)


def reduce(op: Op, x: Array) -> Array:
    """Over whole axes, which vanish; an empty axis gives the identity."""
    kind = op.text("kind")
    start = {"initial": identity(kind, x.dtype)} if kind in ("max", "min") else {"dtype": x.dtype}
    return np.asarray(_REDUCERS[kind](x, axis=op.integers("axes"), **start))


def arg_reduce(op: Op, x: Array) -> Array:
    """The place of the extreme along the axis: the first of equals, or the last."""
    axis, last = op.integer("axis"), bool(op.attributes["select_last"])
    find = np.argmax if op.text("kind") == "max" else np.argmin
    if not last:
        return np.asarray(find(x, axis=axis)).astype(np.int64)
    return np.asarray(x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis)).astype(np.int64)


def taps(
    x: Array, window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """(tap, the elements of padded x under it, one a window): N, C, windows…"""
    counts = [
        (extent - dilation * (size - 1) - 1) // stride + 1
        for extent, size, stride, dilation in zip(x.shape[2:], window, strides, dilations, strict=True)
    ]
    for tap in itertools.product(*map(range, window)):
        yield tap, x[(slice(None), slice(None), *_picks(tap, counts, strides, dilations))]


def _picks(
    tap: tuple[int, ...], counts: list[int], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[slice, ...]:
    return tuple(
        slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
        for at, count, stride, dilation in zip(tap, counts, strides, dilations, strict=True)
    )


def pad_spatial(x: Array, pads: tuple[int, ...], value: float | int) -> Array:
    """A border of the value round the spatial axes; pads are all lows, then all highs."""
    spatial = len(pads) // 2
    width = [(0, 0), (0, 0), *((pads[i], pads[spatial + i]) for i in range(spatial))]
    return np.pad(x, width, constant_values=value)


def window_reduce(op: Op, x: Array) -> Array:
    """max or sum over each window; the padding is the identity."""
    kind = op.text("kind")
    padded = pad_spatial(x, op.integers("pads"), identity(kind, x.dtype))
    combine = np.maximum if kind == "max" else np.add
    parts = taps(padded, op.integers("window"), op.integers("strides"), op.integers("dilations"))
    total: Array | None = None
    for _, part in parts:
        total = part if total is None else combine(total, part)
    assert total is not None
    return np.array(total)
