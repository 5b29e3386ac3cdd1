"""Whether an expression is zero in lanes beyond the channels, where everything that is loaded is zero."""

import math
from collections.abc import Callable

from cuvil_core.kernel_ir import Accumulator, Binary, Cast, Expr, Fma, Literal, Load, Select, Unary
from cuvil_core.kernel_ir.kernel import walk

Number = float | int | bool | None
"""None: not known."""


def vanishes(expr: Expr, lanes: frozenset[str]) -> bool:
    """True where the value is 0 whenever every load that moves with `lanes` gives 0, and accumulators are 0."""
    known: dict[int, Number] = {}
    for one in walk(expr):
        known[id(one)] = _value(one, known, lanes)
    return known[id(expr)] == 0


def _value(expr: Expr, known: dict[int, Number], lanes: frozenset[str]) -> Number:
    match expr:
        case Load():
            return 0 if expr.access.index.axes & lanes and expr.otherwise == 0 else None
        case Accumulator():
            return 0
        case Literal():
            return expr.value
        case Cast():
            return _guarded(lambda: known[id(expr.operand)])
        case Unary():
            return _unary(expr.name, known[id(expr.operand)])
        case Binary():
            return _binary(expr.name, known[id(expr.left)], known[id(expr.right)])
        case Fma():
            left, right, addend = (known[id(one)] for one in expr.operands)
            return _binary("add", _binary("mul", left, right), addend)
        case Select():
            then, other = known[id(expr.then)], known[id(expr.other)]
            return then if then == other else None
        case _:
            return None


def _unary(name: str, x: Number) -> Number:
    if x is None:
        return None
    rules: dict[str, Callable[[], Number]] = {
        "neg": lambda: -x,
        "abs": lambda: abs(x),
        "sign": lambda: (x > 0) - (x < 0),
        "exp": lambda: math.exp(x),
        "sqrt": lambda: math.sqrt(x),
        "reciprocal": lambda: 1 / x,
        "tanh": lambda: math.tanh(x),
        "sigmoid": lambda: 1 / (1 + math.exp(-x)),
        "erf": lambda: math.erf(x),
        "floor": lambda: math.floor(x),
        "ceil": lambda: math.ceil(x),
        "round": lambda: round(x),
        "sin": lambda: math.sin(x),
        "cos": lambda: math.cos(x),
        "log": lambda: math.log(x),
        "tan": lambda: math.tan(x),
        "asin": lambda: math.asin(x),
        "acos": lambda: math.acos(x),
        "atan": lambda: math.atan(x),
        "sinh": lambda: math.sinh(x),
        "cosh": lambda: math.cosh(x),
        "asinh": lambda: math.asinh(x),
        "acosh": lambda: math.acosh(x),
        "atanh": lambda: math.atanh(x),
    }
    return _guarded(rules[name]) if name in rules else None


def _binary(name: str, x: Number, y: Number) -> Number:
    if x is None or y is None:
        return None
    rules: dict[str, Callable[[], Number]] = {
        "add": lambda: x + y,
        "sub": lambda: x - y,
        "mul": lambda: x * y,
        "div": lambda: x / y,
        "max": lambda: max(x, y),
        "min": lambda: min(x, y),
        "pow": lambda: x**y,
    }
    return _guarded(rules[name]) if name in rules else None


def _guarded(rule: Callable[[], Number]) -> Number:
    try:
        value = rule()
    except (ArithmeticError, ValueError):
        return None
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None
