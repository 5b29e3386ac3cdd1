"""Scalar expressions as straight-line C over vectors of lanes.

Bool values are masks (0 or -1) of the width of what was compared; in memory they are bytes of 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterable

from cuvil_core.codegen.c.memory import load, step_of
from cuvil_core.codegen.c.scope import Scope, Value
from cuvil_core.codegen.c.types import SHORT, element_type, literal_text, vector_type
from cuvil_core.errors import InternalError, UnsupportedOpError
from cuvil_core.ir import DType
from cuvil_core.kernel_ir import (
    Accumulator,
    AxisIndex,
    Binary,
    Bitcast,
    Cast,
    Expr,
    Fma,
    Literal,
    Load,
    Select,
    Unary,
)

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_BUILTINS = {"abs": "abs", "floor": "floor", "ceil": "ceil", "round": "roundeven", "sqrt": "sqrt"}
_LIBRARY = frozenset(("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos")) | frozenset(
    ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
)
_SHIFTS = {"shift_left": "<<", "shift_right": ">>"}
_FLIPPED = {"max": "<", "min": ">"}


def emit(expr: Expr, scope: Scope) -> Value:
    """The expression's value at the scope's point; writes what is not yet known."""
    if isinstance(expr, Accumulator):
        return scope.accumulators[expr.position]
    key = scope.key(expr)
    if key not in scope.known:
        scope.known[key] = _emit(expr, scope)
    return scope.known[key]


def know(looked_up: Iterable[Expr], scope: Scope) -> None:
    """Computes the looked-up terms of an index before its text is asked for."""
    for expr in looked_up:
        emit(expr, scope)


def _emit(expr: Expr, scope: Scope) -> Value:
    if isinstance(expr, Load):
        know(expr.operands, scope)
        return load(expr, scope)
    if isinstance(expr, Literal):
        return _splat(literal_text(expr.value, expr.dtype), expr.dtype, scope)
    if isinstance(expr, AxisIndex):
        know(expr.operands, scope)
        return _axis_index(expr, scope)
    if isinstance(expr, Unary):
        return _unary(expr, emit(expr.operand, scope), scope)
    if isinstance(expr, Binary):
        return _binary(expr, scope)
    if isinstance(expr, Fma):
        texts = [emit(operand, scope).text for operand in expr.operands]
        return _define(f"__builtin_elementwise_fma({', '.join(texts)})", expr.dtype, scope)
    if isinstance(expr, Select):
        return _select(expr, scope)
    if isinstance(expr, Cast):
        return cast(emit(expr.operand, scope), expr.dtype, scope)
    if isinstance(expr, Bitcast):
        return _bitcast(emit(expr.operand, scope), expr.dtype, scope)
    raise InternalError(f"The C back end met an accumulator or an unknown expression {type(expr).__name__}; report it.")


def _define(text: str, dtype: DType, scope: Scope) -> Value:
    return Value(scope.define(vector_type(dtype, scope.lanes), text), dtype)


def _splat(text: str, dtype: DType, scope: Scope) -> Value:
    if dtype is DType.BOOL:
        return scope.define_mask(f"(i8x{scope.lanes})(int8_t)-({text})", 8)
    return _define(f"({vector_type(dtype, scope.lanes)})({text})", dtype, scope)


def _axis_index(expr: AxisIndex, scope: Scope) -> Value:
    index = scope.place(expr.index)
    kind = vector_type(expr.dtype, scope.lanes)
    if scope.vector is None or scope.vector not in index.axes:
        return _splat(f"({element_type(expr.dtype)}){scope.offset(index)}", expr.dtype, scope)
    step = step_of(index, scope.vector)
    if step is not None and expr.dtype in (DType.INT32, DType.INT64):
        lane = f"cuvil_lane_{kind}()"
        base = f"({kind})({element_type(expr.dtype)}){scope.offset(index)}"
        return _define(
            f"{base} + {lane}{'' if step == 1 else f' * ({element_type(expr.dtype)}){step}'}", expr.dtype, scope
        )
    name = scope.name()
    scope.lines.append(f"{kind} {name};")
    text = f"({element_type(expr.dtype)}){scope.offset(index, 'lane')}"
    scope.lines.append(f"for (int lane = 0; lane < {scope.lanes}; ++lane) {name}[lane] = {text};")
    return Value(name, expr.dtype)


# --- operations ------------------------------------------------------------------------------------------------------


def _unary(expr: Unary, operand: Value, scope: Scope) -> Value:
    name, dtype, x = expr.name, operand.dtype, operand.text
    if name == "not":
        return scope.define_mask(f"~{x}", operand.mask) if dtype is DType.BOOL else _define(f"~{x}", dtype, scope)
    _check_computed(name, dtype)
    bits = dtype.itemsize * 8
    if name == "isnan":
        return scope.define_mask(f"{x} != {x}", bits)
    if name == "isinf":
        infinity = f"({vector_type(dtype, scope.lanes)})({literal_text(float('inf'), dtype)})"
        return scope.define_mask(f"__builtin_elementwise_abs({x}) == {infinity}", bits)
    if name in _LIBRARY:
        return _library(f"cuvil_{name}", (operand,), dtype, scope)
    return _define(_unary_text(name, x, dtype, scope), dtype, scope)


def _check_computed(name: str, dtype: DType) -> None:
    if dtype is DType.BFLOAT16:
        raise UnsupportedOpError(f"{name} on bfloat16 has no C kernel; cast the tensor to float32 in the model.")
    if dtype is DType.BOOL:
        raise InternalError(f"Kernel operation {name} on bool must be computed in uint8; cast it first.")


def _unary_text(name: str, x: str, dtype: DType, scope: Scope) -> str:
    kind = vector_type(dtype, scope.lanes)
    if name == "neg":
        return f"-{x}"
    if name == "reciprocal":
        return f"({kind})({literal_text(1, dtype)}) / {x}"
    if name == "abs" and not dtype.is_signed:
        return x
    if name in _BUILTINS:
        return f"__builtin_elementwise_{_BUILTINS[name]}({x})"
    if name == "sign":
        zero, one = f"({kind})({literal_text(0, dtype)})", f"({kind})({literal_text(1, dtype)})"
        below = f"({x} < {zero} ? -{one} : {x})" if dtype.is_signed else x
        return f"{x} > {zero} ? {one} : {below}"
    raise InternalError(f"The C back end knows no kernel operation {name}; report it.")


def _library(function: str, operands: tuple[Value, ...], dtype: DType, scope: Scope) -> Value:
    """A function of cuvil_math.h; float16 goes through float32."""
    inner = [cast(v, DType.FLOAT32, scope) if dtype is DType.FLOAT16 else v for v in operands]
    kind = SHORT[DType.FLOAT32 if dtype is DType.FLOAT16 else dtype]
    call = f"{function}_{kind}x{scope.lanes}({', '.join(v.text for v in inner)})"
    if dtype is DType.FLOAT16:
        return cast(_define(call, DType.FLOAT32, scope), dtype, scope)
    return _define(call, dtype, scope)


def _binary(expr: Binary, scope: Scope) -> Value:
    name = expr.name
    left, right = emit(expr.left, scope), emit(expr.right, scope)
    if name in _LOGIC and left.dtype is DType.BOOL:
        return scope.define_mask(f"{left.text} {_LOGIC[name]} {as_mask(right, left.mask, scope)}", left.mask)
    if name in _COMPARISONS:
        return _comparison(name, left, right, scope)
    dtype = left.dtype
    if name in _LOGIC:
        return _define(f"{left.text} {_LOGIC[name]} {right.text}", dtype, scope)
    _check_computed(name, dtype)
    if name in _SHIFTS:
        return _shift(_SHIFTS[name], left, right, scope)
    if name in ("max", "min"):
        return extremum(name, left, right, scope, expr)
    if name in _OPERATORS and (dtype.is_float or name != "div"):
        return _define(f"{left.text} {_OPERATORS[name]} {right.text}", dtype, scope)
    if name == "pow" and isinstance(expr.right, Literal) and dtype.is_float and expr.right.value == 2:
        return _define(f"{left.text} * {left.text}", dtype, scope)
    return _library(f"cuvil_{name}", (left, right), dtype, scope)


def _shift(sign: str, left: Value, right: Value, scope: Scope) -> Value:
    """0 for counts of the width and more, which C leaves open."""
    kind, bits = vector_type(left.dtype, scope.lanes), left.dtype.itemsize * 8
    last, zero = f"({kind})({literal_text(bits - 1, left.dtype)})", f"({kind})({literal_text(0, left.dtype)})"
    within = scope.define_mask(f"{right.text} <= {last}", bits)
    return _define(f"{within.text} ? {left.text} {sign} ({right.text} & {last}) : {zero}", left.dtype, scope)


def _comparison(name: str, left: Value, right: Value, scope: Scope) -> Value:
    if left.dtype is DType.BOOL:
        left, right = cast(left, DType.INT8, scope), cast(right, DType.INT8, scope)
    return scope.define_mask(f"{left.text} {_COMPARISONS[name]} {right.text}", left.dtype.itemsize * 8)


def extremum(name: str, left: Value, right: Value, scope: Scope, expr: Binary | None = None) -> Value:
    """max or min; one instruction for integers and where one side is a literal that is no NaN."""
    dtype = left.dtype
    if dtype.is_integer:
        return _define(f"__builtin_elementwise_{name}({left.text}, {right.text})", dtype, scope)
    flip = _FLIPPED[name]
    if expr is not None and _is_number(expr.right):
        return _define(f"{left.text} {flip} {right.text} ? {right.text} : {left.text}", dtype, scope)
    if expr is not None and _is_number(expr.left):
        return _define(f"{right.text} {flip} {left.text} ? {left.text} : {right.text}", dtype, scope)
    if dtype is DType.FLOAT16:
        wide = extremum(name, cast(left, DType.FLOAT32, scope), cast(right, DType.FLOAT32, scope), scope)
        return cast(wide, dtype, scope)
    return (
        _library(f"cuvil_{name}", (left, right), dtype, scope)
        if dtype is DType.FLOAT32
        else _define(f"cuvil_{name}_{vector_type(dtype, scope.lanes)}({left.text}, {right.text})", dtype, scope)
    )


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == expr.value


def _select(expr: Select, scope: Scope) -> Value:
    condition, then, other = (emit(operand, scope) for operand in expr.operands)
    if then.dtype is DType.BOOL:
        mask = as_mask(condition, then.mask, scope)
        text = f"({mask} & {then.text}) | (~{mask} & {as_mask(other, then.mask, scope)})"
        return scope.define_mask(text, then.mask)
    return choose(condition, then, other, scope)


def choose(condition: Value, then: Value, other: Value, scope: Scope) -> Value:
    """`then` where the mask is set, else `other`; not for bools."""
    mask = as_mask(condition, then.dtype.itemsize * 8, scope)
    return _define(f"{mask} ? {then.text} : {other.text}", then.dtype, scope)


def as_mask(value: Value, bits: int, scope: Scope) -> str:
    """The mask with `bits` a lane: -1 stays -1 in every width."""
    if value.mask == bits:
        return value.text
    return f"__builtin_convertvector({value.text}, i{bits}x{scope.lanes})"


def cast(value: Value, dtype: DType, scope: Scope) -> Value:
    """The value in another dtype, by the rules of `kernel_ir.Cast`."""
    source, x, kind = value.dtype, value.text, vector_type(dtype, scope.lanes)
    if source is dtype:
        return value
    if source is DType.BOOL:
        middle = DType.FLOAT32 if dtype is DType.BFLOAT16 else dtype
        plain = _define(f"__builtin_convertvector(-{x}, {vector_type(middle, scope.lanes)})", middle, scope)
        return cast(plain, dtype, scope)
    if source is DType.BFLOAT16:
        return cast(_define(f"cuvil_widen_bf16x{scope.lanes}({x})", DType.FLOAT32, scope), dtype, scope)
    if dtype is DType.BOOL:
        return scope.define_mask(f"{x} != ({vector_type(source, scope.lanes)})0", source.itemsize * 8)
    if dtype is DType.BFLOAT16:
        wide = cast(value, DType.FLOAT32, scope)
        return _define(f"cuvil_round_bf16x{scope.lanes}({wide.text})", dtype, scope)
    if source.is_float and dtype.is_integer:
        wide = cast(value, DType.FLOAT32, scope) if source is DType.FLOAT16 else value
        return _define(f"cuvil_{SHORT[wide.dtype]}_to_{kind}({wide.text})", dtype, scope)
    return _define(f"__builtin_convertvector({x}, {kind})", dtype, scope)


def _bitcast(value: Value, dtype: DType, scope: Scope) -> Value:
    """The same bits: vectors of one size are cast as they lie."""
    return _define(f"({vector_type(dtype, scope.lanes)}){value.text}", dtype, scope)


def to_memory(value: Value, scope: Scope) -> str:
    """C text of the value as it lies in memory."""
    if value.dtype is DType.BOOL:
        return f"__builtin_convertvector(-{value.text}, u8x{scope.lanes})"
    return value.text
