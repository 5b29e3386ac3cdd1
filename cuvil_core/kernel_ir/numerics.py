"""NumPy meaning of each scalar operation, cast and combination of the kernel IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuvil_core.ir import DType
from cuvil_core.kernel_ir.kernel import Combine

Array = npt.NDArray[Any]


def from_memory(data: Array, dtype: DType) -> Array:
    """Elements as values: bytes to bools, bfloat16 bits to float32."""
    if dtype is DType.BOOL:
        return np.asarray(data != 0)
    if dtype is DType.BFLOAT16:
        return np.asarray((np.asarray(data).astype(np.uint32) << 16).view(np.float32))
    return np.asarray(data)


def to_memory(value: Array, dtype: DType) -> Array:
    """Values as elements; a bfloat16 value is a float32 that has been rounded already."""
    if dtype is DType.BOOL:
        return value.astype(np.uint8)
    if dtype is DType.BFLOAT16:
        return (np.ascontiguousarray(value, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return value


def cast(value: Array, dtype: DType) -> Array:
    """By the rules of `kernel_ir.Cast`."""
    if dtype is DType.BFLOAT16:
        return _round_bfloat16(value.astype(np.float32))
    target = np.dtype(dtype.value)
    if dtype is DType.BOOL:
        return np.asarray(value != 0)
    if value.dtype.kind == "f" and dtype.is_integer:
        return _saturate(value, target)
    return value.astype(target)


def _round_bfloat16(value: Array) -> Array:
    bits = np.atleast_1d(value).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    quiet = (bits | np.uint32(0x400000)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(value), quiet, rounded).astype(np.uint32).view(np.float32).reshape(value.shape)


def _saturate(value: Array, target: np.dtype[Any]) -> Array:
    info = np.iinfo(target)
    wide = np.trunc(value.astype(np.float64))
    inside = np.where((wide > float(info.min)) & (wide < float(info.max)), wide, 0).astype(target)
    result = np.where(wide >= float(info.max), info.max, np.where(wide <= float(info.min), info.min, inside))
    return np.where(np.isnan(value), 0, result).astype(target)


def _sign(x: Array) -> Array:
    return np.asarray(np.where(x > 0, 1, np.where(x < 0, -1, x))).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x.astype(np.float64)))
    return np.asarray(np.where(x < 0, decay, 1) / (1 + decay)).astype(x.dtype)


def _exactly(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Computed in float64 and rounded once."""
    return lambda x: np.asarray(function(x.astype(np.float64))).astype(x.dtype)


UNARY: Mapping[str, Callable[[Array], Array]] = {
    "exp": _exactly(np.exp),
    "log": _exactly(np.log),
    "sqrt": lambda x: np.asarray(np.sqrt(x)),
    "reciprocal": lambda x: np.asarray(np.asarray(1, x.dtype) / x),
    "tanh": _exactly(np.tanh),
    "sigmoid": _sigmoid,
    "erf": _exactly(np.vectorize(math.erf, otypes=[np.float64])),
    "floor": lambda x: np.asarray(np.floor(x)),
    "ceil": lambda x: np.asarray(np.ceil(x)),
    "round": lambda x: np.asarray(np.rint(x)),
    "sin": _exactly(np.sin),
    "cos": _exactly(np.cos),
    "tan": _exactly(np.tan),
    "asin": _exactly(np.arcsin),
    "acos": _exactly(np.arccos),
    "atan": _exactly(np.arctan),
    "sinh": _exactly(np.sinh),
    "cosh": _exactly(np.cosh),
    "asinh": _exactly(np.arcsinh),
    "acosh": _exactly(np.arccosh),
    "atanh": _exactly(np.arctanh),
    "neg": lambda x: np.asarray(-x),
    "abs": lambda x: np.asarray(np.abs(x)),
    "sign": _sign,
    "isnan": lambda x: np.asarray(np.isnan(x)),
    "isinf": lambda x: np.asarray(np.isinf(x)),
    "not": lambda x: np.asarray(~x),
}


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    safe = np.where(b == 0, 1, b)
    quotient = a // safe
    up = (a % safe != 0) & ((a < 0) != (b < 0))
    return np.where(b == 0, 0, quotient + up).astype(a.dtype)


def _modulo(function: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    def apply(a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.asarray(function(a, b))
        return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))).astype(a.dtype)

    return apply


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.power(a.astype(np.float64), b.astype(np.float64))).astype(a.dtype)
    if a.dtype.kind == "u":
        return np.asarray(np.power(a, b))
    positive = np.power(a, np.where(b < 0, 0, b).astype(a.dtype))
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, positive).astype(a.dtype)


BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: np.asarray(a + b),
    "sub": lambda a, b: np.asarray(a - b),
    "mul": lambda a, b: np.asarray(a * b),
    "div": _divide,
    "pow": _power,
    "max": lambda a, b: np.asarray(np.maximum(a, b)),
    "min": lambda a, b: np.asarray(np.minimum(a, b)),
    "mod": _modulo(np.mod),
    "fmod": _modulo(np.fmod),
    "eq": lambda a, b: np.asarray(a == b),
    "ne": lambda a, b: np.asarray(a != b),
    "lt": lambda a, b: np.asarray(a < b),
    "le": lambda a, b: np.asarray(a <= b),
    "gt": lambda a, b: np.asarray(a > b),
    "ge": lambda a, b: np.asarray(a >= b),
    "and": lambda a, b: np.asarray(a & b),
    "or": lambda a, b: np.asarray(a | b),
    "xor": lambda a, b: np.asarray(a ^ b),
    "shift_left": lambda a, b: np.left_shift(a, b),
    "shift_right": lambda a, b: np.right_shift(a, b),
}

Reduction = Callable[[Array, tuple[int, ...]], Array]


def _wide(function: Callable[..., Any]) -> Reduction:
    def reduce(values: Array, axes: tuple[int, ...]) -> Array:
        carrier = np.dtype(np.float64) if values.dtype.kind == "f" else values.dtype
        return np.asarray(function(values, axis=axes, dtype=carrier)).astype(values.dtype)

    return reduce


def _position(function: Callable[..., Any], last: bool) -> Reduction:
    def reduce(values: Array, axes: tuple[int, ...]) -> Array:
        (axis,) = axes
        if not last:
            return np.asarray(function(values, axis=axis)).astype(np.int64)
        return np.asarray(values.shape[axis] - 1 - function(np.flip(values, axis), axis=axis)).astype(np.int64)

    return reduce


def _extreme(function: Callable[..., Any], start: float) -> Reduction:
    def reduce(values: Array, axes: tuple[int, ...]) -> Array:
        kind = values.dtype.kind
        if kind == "f":
            initial: Any = start
        elif kind == "b":
            initial = start > 0
        else:
            info = np.iinfo(values.dtype)
            initial = info.max if start > 0 else info.min
        return np.asarray(function(values, axis=axes, initial=initial))

    return reduce


REDUCTIONS: Mapping[Combine, Reduction] = {
    Combine.SUM: _wide(np.sum),
    Combine.PROD: _wide(np.prod),
    Combine.MAX: _extreme(np.max, -math.inf),
    Combine.MIN: _extreme(np.min, math.inf),
    Combine.ALL: lambda values, axes: np.asarray(np.all(values, axis=axes)),
    Combine.ANY: lambda values, axes: np.asarray(np.any(values, axis=axes)),
    Combine.ARG_MAX_FIRST: _position(np.argmax, last=False),
    Combine.ARG_MAX_LAST: _position(np.argmax, last=True),
    Combine.ARG_MIN_FIRST: _position(np.argmin, last=False),
    Combine.ARG_MIN_LAST: _position(np.argmin, last=True),
}
"""Each folds the given trailing axes."""
