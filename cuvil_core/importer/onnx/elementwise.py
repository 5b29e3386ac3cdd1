"""Arithmetic, comparison, logic, rounding; on known elements they are computed while importing."""

from functools import reduce

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType, Payload


def _binary(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        a, b = all_of(node, operands)
        return context.binary(name, a, b)

    return translate


def _unary(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        return context.emit(name, need(node, operands, 0))

    return translate


def _variadic(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        return reduce(lambda a, b: context.binary(name, a, b), all_of(node, operands))

    return translate


def _mean(context: Context, node: Node, operands: Operands) -> Tensor:
    tensors = all_of(node, operands)
    total = reduce(lambda a, b: context.binary("add", a, b), tensors)
    return context.number("div", total, len(tensors))


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


def _where(context: Context, node: Node, operands: Operands) -> Tensor:
    condition, a, b = all_of(node, operands)
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
    "Log": "log", "Neg": "neg", "Not": "not", "Reciprocal": "reciprocal", "Round": "round", "Sigmoid": "sigmoid",
    "Sign": "sign", "Sin": "sin", "Sqrt": "sqrt", "Tanh": "tanh",
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
    Entry("Pow", _pow),
    Entry("Mod", _mod, since=10),
    Entry("Where", _where, since=9),
    Entry("Clip", _clip),
    Entry("IsInf", _is_inf, since=10),
)
