"""Arithmetic, comparison, logic, rounding; on known elements they are computed while importing."""

from collections.abc import Callable
from functools import reduce

import numpy as np

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import MAX_CONTENT, Content, Tensor, to_content
from cuvil_core.ir import Dim, DType, Payload, dim_max, dim_min

Fold = Callable[[Dim, Dim], Dim | None]


def _divide(a: Dim, b: Dim) -> Dim | None:
    """Truncation equals rounding down only where both sides are known not to be negative."""
    low, by = a.least, b.least
    if b == 0 or low is None or by is None or (low < 0 and a.constant is None) or by < 1:
        return None
    return a // b if low >= 0 else -(-a // b)


def _equal(a: Dim, b: Dim) -> Dim | None:
    difference = a - b
    low, high = difference.bounds()
    if difference.constant is not None:
        return Dim.of(int(difference == 0))
    apart = (low is not None and low > 0) or (high is not None and high < 0)
    return Dim.of(0) if apart else None


def _less(a: Dim, b: Dim) -> Dim | None:
    low, high = (a - b).bounds()
    if high is not None and high < 0:
        return Dim.of(1)
    return Dim.of(0) if low is not None and low >= 0 else None


def _not(value: Dim | None) -> Dim | None:
    return None if value is None else Dim.of(1) - value


FOLDS: dict[str, Fold] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "max": dim_max,
    "min": dim_min,
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "lt": _less,
    "gt": lambda a, b: _less(b, a),
    "le": lambda a, b: _not(_less(b, a)),
    "ge": lambda a, b: _not(_less(a, b)),
    "and": lambda a, b: a * b,
    "or": lambda a, b: dim_max(a, b),
}


def binary(context: Context, node: Node, name: str, a: Tensor, b: Tensor) -> Tensor:
    """The primitive, or its known elements."""
    folded = _fold(name, a, b)
    return context.binary(name, a, b) if folded is None else folded


def _fold(name: str, a: Tensor, b: Tensor) -> Tensor | None:
    fold = FOLDS.get(name)
    if fold is None or a.content is None or b.content is None or a.dtype.is_float or a.dtype is not b.dtype:
        return None
    try:
        left, right = np.broadcast_arrays(a.content, b.content)
    except ValueError:
        return None
    if left.size > MAX_CONTENT:
        return None
    values = [fold(x, y) for x, y in zip(left.ravel(), right.ravel(), strict=True)]
    known = [value for value in values if value is not None]
    if len(known) != len(values) or not all(_fits(value) for value in known):
        return None
    boolean = name in ("eq", "ne", "lt", "gt", "le", "ge", "and", "or")
    dtype = DType.BOOL if boolean else a.dtype
    return Tensor.of_content(dtype, to_content([wrapped(dtype, value) for value in known], left.shape))


def _fits(dim: Dim) -> bool:
    """Coefficients beside symbols stay far from 64 bits, so that no result wraps unseen."""
    return dim.constant is not None or all(abs(coefficient) < 1 << 47 for _, coefficient in dim.terms)


def wrapped(dtype: DType, dim: Dim) -> Dim:
    """The number modulo the dtype's range, as at run time; a dim with symbols as it is."""
    if dim.constant is None or not dtype.is_integer:
        return dim
    bits = 8 * dtype.itemsize
    low = 1 << (bits - 1) if dtype.is_signed else 0
    return Dim.of((dim.constant + low) % (1 << bits) - low)


def _binary(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        a, b = all_of(node, operands)
        return binary(context, node, name, a, b)

    return translate


def _unary(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        return context.emit(name, need(node, operands, 0))

    return translate


def _variadic(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        return reduce(lambda a, b: binary(context, node, name, a, b), all_of(node, operands))

    return translate


def _mean(context: Context, node: Node, operands: Operands) -> Tensor:
    tensors = all_of(node, operands)
    total = reduce(lambda a, b: context.binary("add", a, b), tensors)
    return context.number("div", total, len(tensors))


def _neg(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    if x.content is not None and x.dtype.is_integer:
        return Tensor.of_content(
            x.dtype, to_content([wrapped(x.dtype, -dim) for dim in x.content.ravel()], x.content.shape)
        )
    return context.emit("neg", x)


def _pow(context: Context, node: Node, operands: Operands) -> Tensor:
    base, exponent = all_of(node, operands)
    if exponent.dtype is not base.dtype and exponent.dtype.is_float and not base.dtype.is_float:
        return _power_in_float64(context, base, exponent)
    if exponent.dtype.is_float and not _holds_exponents(base.dtype, exponent):
        raise node.unsupported(f"exponents in {exponent.dtype} that {base.dtype} may not hold")
    if base.dtype.is_float and exponent.dtype.is_integer and not _is_small(exponent, _EXACT_BITS[base.dtype]):
        return _whole_power(context, base, exponent)
    dtype = base.dtype if base.dtype.is_float else _modular(base.dtype, exponent)
    return context.cast(context.binary("pow", context.cast(base, dtype), context.cast(exponent, dtype)), base.dtype)


def _power_in_float64(context: Context, base: Tensor, exponent: Tensor) -> Tensor:
    """An integer base with a float exponent: the double's power, truncated, as runtimes have it."""
    wide = (context.cast(one, DType.FLOAT64) for one in (base, exponent))
    return context.cast(context.binary("pow", *wide), base.dtype)


_EXACT_BITS = {DType.BFLOAT16: 8, DType.FLOAT16: 11, DType.FLOAT32: 24, DType.FLOAT64: 53}


def _is_small(exponent: Tensor, bits: int) -> bool:
    """True where every element is known, or is by its dtype, at most 2 ** bits."""
    if 8 * exponent.dtype.itemsize <= bits:
        return True
    numbers = exponent.numbers()
    return numbers is not None and all(abs(number) <= 1 << bits for number in numbers)


def _holds_exponents(dtype: DType, exponent: Tensor) -> bool:
    """True where rounding to the dtype makes no whole number of another one, nor of a fraction."""
    if exponent.dtype.itemsize <= dtype.itemsize:
        return True
    numbers = exponent.numbers()
    pairs = [] if numbers is None else [(float(n), float(Payload.scalar(dtype, float(n)).values()[0])) for n in numbers]
    return numbers is not None and all(a == b or not (a.is_integer() or b.is_integer()) for a, b in pairs)


def _whole_power(context: Context, base: Tensor, exponent: Tensor) -> Tensor:
    """|base| to the exponent, negative for odd exponents of negative bases: a float does not hold their parity."""
    base, exponent = context.together(base, exponent)
    size = context.emit("pow", context.emit("abs", base), context.cast(exponent, base.dtype))
    odd = context.number("ne", context.emit("mod", exponent, context.like(exponent, 2), kind="floor"), 0)
    below = context.number("lt", base, 0), context.number("lt", context.emit("reciprocal", base), 0)
    negative = context.emit("and", odd, context.emit("or", *below))
    return context.emit("select", negative, context.emit("neg", size), size)


def _modular(base: DType, exponent: Tensor) -> DType:
    """The integer dtype that holds base and exponent; powers wrap alike in any that is at least as wide as the base."""
    given = exponent.dtype
    if given.itemsize < base.itemsize or _is_small(exponent, 30):
        return base
    return given if given.itemsize == 8 else DType.INT64


def _mod(context: Context, node: Node, operands: Operands) -> Tensor:
    a, b = all_of(node, operands)
    kind = "trunc" if node.flag("fmod", False) else "floor"
    if kind == "floor" and a.dtype.is_float and node.opset < 28:
        raise node.broken("fmod must be 1 for floats before opset 28")
    rest = context.binary("mod", a, b, kind=kind)
    return _signed_zero(context, rest, b) if kind == "floor" and a.dtype.is_float else rest


def _signed_zero(context: Context, x: Tensor, like: Tensor) -> Tensor:
    """x with its zeros signed as `like` is."""
    negative = context.number("lt", context.stretch(like, x.shape), 0)
    zero = context.emit("select", negative, context.like(x, -0.0), context.like(x, 0.0))
    return context.emit("select", context.number("eq", x, 0), zero, x)


def cast(context: Context, x: Tensor, dtype: DType) -> Tensor:
    """cast; known elements stay known where no number can change by it."""
    if x.content is not None and x.dtype.is_integer and _holds(dtype, x.content):
        return Tensor.of_content(dtype, x.content)
    return context.cast(x, dtype)


_RANGES = {DType.INT64: 63, DType.UINT64: 64, DType.INT32: 31, DType.UINT32: 32, DType.FLOAT64: 53, DType.FLOAT32: 24}


def _holds(dtype: DType, content: Content) -> bool:
    """Wide types hold every extent that a tensor in memory can have; numbers are checked one by one.

    float32 rounds extents beyond 2**24, which only Range reads as numbers, so symbols are let through.
    """
    bits = _RANGES.get(dtype)
    if bits is None:
        return False
    constants = [dim.constant for dim in content.ravel()]
    signed = dtype not in (DType.UINT32, DType.UINT64)
    return all(value is None or (-(1 << bits) < value < 1 << bits and (signed or value >= 0)) for value in constants)


def _where(context: Context, node: Node, operands: Operands) -> Tensor:
    condition, a, b = all_of(node, operands)
    if condition.content is not None and a.content is not None and b.content is not None and a.dtype is b.dtype:
        picks, left, right = np.broadcast_arrays(condition.content, a.content, b.content)
        if picks.size <= MAX_CONTENT and all(dim.constant is not None for dim in picks.ravel()):
            chosen = [
                x if pick == 1 else y for pick, x, y in zip(picks.ravel(), left.ravel(), right.ravel(), strict=True)
            ]
            return Tensor.of_content(a.dtype, to_content(chosen, picks.shape))
    return context.emit("select", *context.together(condition, a, b))


def _clip(context: Context, node: Node, operands: Operands) -> Tensor:
    x, low, high = need(node, operands, 0), optional(operands, 1), optional(operands, 2)
    if node.opset < 11:
        low = context.scalar(x.dtype, node.number("min", -3.4028234663852886e38)) if node.has("min") else None
        high = context.scalar(x.dtype, node.number("max", 3.4028234663852886e38)) if node.has("max") else None
    x = x if low is None else context.binary("max", x, low)
    return x if high is None else context.binary("min", x, high)


def _is_inf(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    below, above = node.flag("detect_negative", True), node.flag("detect_positive", True)
    infinite = context.emit("isinf", x)
    if below and above:
        return infinite
    if not below and not above:
        return context.full(DType.BOOL, False, x.shape)
    return context.emit("and", infinite, context.number("lt" if below else "gt", x, 0))


_UNARY = {
    "Abs": "abs", "Ceil": "ceil", "Cos": "cos", "Erf": "erf", "Exp": "exp", "Floor": "floor", "IsNaN": "isnan",
    "Log": "log", "Not": "not", "Reciprocal": "reciprocal", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign",
    "Sin": "sin", "Sqrt": "sqrt", "Tanh": "tanh",
    "Acos": "acos", "Asin": "asin", "Atan": "atan", "Tan": "tan",
}  # fmt: skip
_HYPERBOLIC = {
    "Acosh": "acosh", "Asinh": "asinh", "Atanh": "atanh", "Cosh": "cosh", "Sinh": "sinh",
}  # fmt: skip
_BINARY = {
    "Add": "add", "And": "and", "Div": "div", "Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
    "LessOrEqual": "le", "Mul": "mul", "Or": "or", "Sub": "sub", "Xor": "xor",
}  # fmt: skip
ENTRIES: tuple[Entry, ...] = (
    *(Entry(op_type, _unary(name)) for op_type, name in _UNARY.items()),
    *(Entry(op_type, _unary(name), since=9) for op_type, name in _HYPERBOLIC.items()),
    *(Entry(op_type, _binary(name)) for op_type, name in _BINARY.items()),
    *(Entry(op_type, _variadic(name)) for op_type, name in (("Max", "max"), ("Min", "min"), ("Sum", "add"))),
    Entry("Mean", _mean),
    Entry("Neg", _neg),
    Entry("Pow", _pow),
    Entry("Mod", _mod, since=10),
    Entry("Where", _where, since=9),
    Entry("Clip", _clip),
    Entry("IsInf", _is_inf, since=10),
)
