"""Unary, binary and ternary primitives.

max and min propagate NaN; integer div truncates, and by zero gives 0; round is half to even; float to integer
truncates; mod kind `floor` takes the divisor's sign, `trunc` the dividend's; a shift by the width or more gives 0;
inverse functions give NaN outside of their domain.
"""

import math
from collections.abc import Callable

import numpy as np

from cuvil_core.ir import Op
from cuvil_core.reference.arrays import Array, numpy_dtype

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """The error function by the C library, element by element."""
    return np.asarray(_erf(x.astype(np.float64))).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), 0 and 1 at the infinities."""
    one = x.dtype.type(1)
    return np.asarray(one / (one + np.exp(-x)))


def divide(a: Array, b: Array) -> Array:
    """IEEE division for floats; for integers truncation, 0 where b is 0."""
    if not np.issubdtype(a.dtype, np.integer):
        return np.asarray(a / b)
    safe = np.where(b == 0, np.ones_like(b), b)
    quotient = np.floor_divide(a, safe)
    truncated = quotient + ((quotient < 0) & (quotient * safe != a)).astype(a.dtype)
    return np.where(b == 0, np.zeros_like(a), truncated)


def power(a: Array, b: Array) -> Array:
    """a to the b; negative integer exponents give the truncated reciprocal."""
    if not np.issubdtype(a.dtype, np.integer):
        return np.asarray(np.power(a, b))
    parity = np.where(b % 2 == 0, np.ones_like(a), a)
    return np.where(b >= 0, np.power(a, np.maximum(b, 0)), np.where(np.abs(a) == 1, parity, np.zeros_like(a)))


def modulo(op: Op, a: Array, b: Array) -> Array:
    """The remainder of either kind; for integers 0 where b is 0."""
    function = np.mod if op.text("kind") == "floor" else np.fmod
    return np.asarray(function(a, b))


def bitcast(op: Op, x: Array) -> Array:
    """The same bits as another dtype of that width."""
    return np.ascontiguousarray(x).view(numpy_dtype(op.dtype())).reshape(x.shape)


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "reciprocal": lambda x: np.asarray(x.dtype.type(1) / x),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "not": np.logical_not,
    "bit_not": np.invert,
    "isnan": np.isnan,
    "isinf": np.isinf,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "pow": power,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}


def cast(op: Op, x: Array) -> Array:
    """To the dtype of the attribute; to bool is `!= 0`; floats beyond an integer dtype give its ends, NaN gives 0."""
    dtype = numpy_dtype(op.dtype())
    if not np.issubdtype(dtype, np.integer) or np.issubdtype(x.dtype, np.integer) or x.dtype == np.bool_:
        return x.astype(dtype)
    ends, whole = np.iinfo(dtype), np.trunc(x.astype(np.float64))
    below, above = whole < float(ends.min), whole >= float(ends.max)
    within = np.where(below | above | np.isnan(whole), 0, whole).astype(dtype)
    return np.where(above, dtype.type(ends.max), np.where(below, dtype.type(ends.min), within))
