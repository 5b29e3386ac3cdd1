"""Elements of one axis as weighted sums of others: cubic interpolation, and averages where a result is smaller.

Places and weights are known while importing; a result element costs as many products as its kernel has taps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil_core.errors import UnsupportedOpError
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Payload

Matrix = np.ndarray[Any, np.dtype[Any]]
MAX_TAPS = 1 << 22
"""Weights of one axis: a picture of 2,000 rows made from one of 2,000,000 has as many."""


NEAR_MIDDLE = 1e-6
"""A place so near to the middle of two elements counts as the middle, as in runtimes: it is rounding that moved it."""


def mode_of(node: Node) -> str:
    """The mode in the words of newer opsets."""
    mode = node.text("mode", "nearest")
    return "linear" if mode == "bilinear" else mode


def coordinates_of(node: Node) -> str:
    """How places of the result are laid over places of the input."""
    return node.text("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")


@dataclass(frozen=True, slots=True)
class Taps:
    """For each result element the places that it sums over, and their weights; both size × taps."""

    places: Matrix
    weights: Matrix


def linear(distance: float) -> float:
    """The triangle that is 1 at 0 and 0 from 1 on."""
    return max(0.0, 1.0 - abs(distance))


def cubic(a: float) -> Callable[[float], float]:
    """Keys' kernel: cubic from 0 to 1 and from 1 to 2, with the slope `a` at 1."""

    def kernel(distance: float) -> float:
        x = abs(distance)
        if x <= 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0

    return kernel


def taps_of(
    places: Sequence[float], extent: int, kernel: Callable[[float], float], reach: int, scale: float, inside: bool
) -> Taps:
    """The kernel round each place, widened by 1/scale where that is above 1, its weights made to sum to 1.

    Beyond the border lies the border's element; with `inside` nothing does.
    """
    wide = min(scale, 1.0)
    half = math.ceil(reach / wide)
    if len(places) * 2 * half > MAX_TAPS:
        raise UnsupportedOpError(f"it averages over {2 * half} elements for each of {len(places)}; resize in steps")
    first = np.floor(np.asarray(places, np.float64)).astype(np.int64) - half + 1
    at = first[:, None] + np.arange(2 * half)[None, :]
    distances = (at - np.asarray(places, np.float64)[:, None]) * wide
    weights = np.vectorize(kernel, otypes=[np.float64])(distances)
    if inside:
        weights = np.where((at < 0) | (at >= extent), 0.0, weights)
    total = weights.sum(axis=1, keepdims=True)
    return Taps(np.clip(at, 0, extent - 1), weights / np.where(total == 0, 1.0, total))


def weighted(context: Context, x: Tensor, axis: int, taps: Taps) -> Tensor:
    """sum over t of x[places[i, t]] * weights[i, t] along the axis"""
    size, count = taps.places.shape
    indices = Payload.of(DType.INT64, (size, count), [int(place) for place in taps.places.ravel()])
    near = context.emit("gather", x, Tensor.of_payload(indices), axis=axis)
    shape = (size, count, *[1] * (x.rank - axis - 1))
    weights = Payload.of(DType.FLOAT32, shape, [float(weight) for weight in taps.weights.ravel()])
    factors = context.cast(Tensor.of_payload(weights), x.dtype)
    return context.reduce("sum", context.binary("mul", near, factors), [axis + 1], keepdims=False)


def outside(places: Sequence[float], extent: int) -> Tensor | None:
    """Which places lie beyond the first or the last element; None where none does."""
    marked = [not 0 <= place <= extent - 1 for place in places]
    return Tensor.of_payload(Payload.of(DType.BOOL, (len(marked),), marked)) if any(marked) else None


def extrapolated(context: Context, x: Tensor, marks: Mapping[int, Tensor], value: float) -> Tensor:
    """The value wherever the place along one of the axes lies outside."""
    for axis, marked in marks.items():
        shape = [Dim.of(1)] * x.rank
        shape[axis] = x.shape[axis]
        where = context.stretch(context.reshape(marked, shape), x.shape)
        x = context.emit("select", where, context.like(x, value), x)
    return x
