"""Scalar expressions as straight-line C over vectors of lanes.

Bool values are masks (0 or -1) of the width of what was compared; in memory they are bytes of 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from cuvil_core.codegen.c.dims import Symbols, constant_part, dim_text, index_text
from cuvil_core.codegen.c.types import SHORT, element_type, literal_text, pointer, vector_type
from cuvil_core.errors import InternalError, UnsupportedOpError
from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import (
    Accumulator,
    AxisIndex,
    Binary,
    Cast,
    Expr,
    Fma,
    Index,
    Literal,
    Load,
    Select,
    Unary,
    Within,
)
from cuvil_core.kernel_ir.analysis import simplify

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_BUILTINS = {"abs": "abs", "floor": "floor", "ceil": "ceil", "round": "roundeven", "sqrt": "sqrt"}
_LIBRARY = frozenset(("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos"))
_FLIPPED = {"max": "<", "min": ">"}


@dataclass(slots=True)
class Value:
    """A C variable or simple expression that holds a vector."""

    text: str
    dtype: DType
    mask: int = 0
    """For bools: bits a lane of the mask."""


@dataclass(slots=True)
class Scope:
    """What surrounds an expression: variables, lanes, and the lines written so far.

    One Scope is one C block: values computed in it are remembered and used again.
    """

    lanes: int
    vector: str | None
    """The axis along the lanes."""
    axes: dict[str, str]
    """Axis → C expression of its value at lane 0 of point 0."""
    symbols: Symbols
    extents: dict[str, Dim]
    shift: dict[str, int] = field(default_factory=dict)
    """Axis → constant distance of the point from the axis's variable."""
    partial: str | None = None
    """C expression of how many lanes are valid, None for all."""
    accumulators: tuple[Value, ...] = ()
    lines: list[str] = field(default_factory=list)
    known: dict[object, Value] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)
    on_accumulator: dict[Expr, bool] = field(default_factory=dict)

    def at(self, shift: dict[str, int], accumulators: tuple[Value, ...] = ()) -> Scope:
        """The same block at another point of the register tile."""
        return replace(self, shift=shift, accumulators=accumulators or self.accumulators)

    def name(self) -> str:
        """A fresh C identifier of this block."""
        return f"v{next(self.names)}"

    def define(self, ctype: str, text: str) -> str:
        """Writes a constant definition; gives its name."""
        name = self.name()
        self.lines.append(f"{ctype} const {name} = {text};")
        return name

    def place(self, index: Index) -> Index:
        """The index at the present point, simplified."""
        for axis, distance in self.shift.items():
            if distance:
                index = index.replace(axis, Index.axis(axis) + distance)
        return simplify(index, self.extents) if not index.is_affine else index

    def element(self, buffer: str, index: Index) -> str:
        """C text of an element at a placed index; elements at constant distances share one pointer of the block."""
        distance = constant_part(index.offset)
        base = Index(index.terms, index.offset - distance)
        if not base.terms and base.offset == 0:
            return f"{pointer(buffer)}[{distance}]"
        key = ("pointer", buffer, base)
        if key not in self.known:
            text = f"{pointer(buffer)} + {self.offset(base)}"
            self.known[key] = Value(self.define("__auto_type", text), DType.INT64)
        return f"{self.known[key].text}[{distance}]"

    def offset(self, index: Index, lane: str | None = None) -> str:
        """C text of a placed index; `lane` is added to the vector axis."""
        axes = self.axes
        if lane is not None and self.vector is not None:
            axes = {**axes, self.vector: f"({axes[self.vector]} + {lane})"}

        def looked_up(expr: Expr) -> str:
            value = emit(expr, self)
            across = lane is not None and self.vector is not None and self.vector in expr.axes
            return f"(int64_t){value.text}[{lane if across else 0}]"

        return index_text(index, axes, self.symbols, looked_up)


def emit(expr: Expr, scope: Scope) -> Value:
    """The expression's value at the scope's point; writes what is not yet known."""
    if isinstance(expr, Accumulator):
        return scope.accumulators[expr.position]
    point = tuple((a, d) for a, d in sorted(scope.shift.items()) if d and a in expr.axes)
    key = (expr, point, scope.accumulators[0].text if _uses_accumulator(expr, scope) else "")
    if key not in scope.known:
        scope.known[key] = _emit(expr, scope)
    return scope.known[key]


def _uses_accumulator(expr: Expr, scope: Scope) -> bool:
    """True where the value is each register's own, so that points of a tile must not share it."""
    if expr not in scope.on_accumulator:
        scope.on_accumulator[expr] = any(
            isinstance(operand, Accumulator) or _uses_accumulator(operand, scope) for operand in expr.operands
        )
    return scope.on_accumulator[expr]


def _emit(expr: Expr, scope: Scope) -> Value:
    if isinstance(expr, Load):
        return _load(expr, scope)
    if isinstance(expr, Literal):
        return _splat(literal_text(expr.value, expr.dtype), expr.dtype, scope)
    if isinstance(expr, AxisIndex):
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
    raise InternalError(f"The C back end met an accumulator or an unknown expression {type(expr).__name__}; report it.")


def _define(text: str, dtype: DType, scope: Scope) -> Value:
    return Value(scope.define(vector_type(dtype, scope.lanes), text), dtype)


def _define_mask(text: str, bits: int, scope: Scope) -> Value:
    kind = f"i{bits}x{scope.lanes}"  # the cast: comparing bytes gives plain char, another type than int8_t
    return Value(scope.define(kind, f"({kind})({text})"), DType.BOOL, bits)


def _splat(text: str, dtype: DType, scope: Scope) -> Value:
    if dtype is DType.BOOL:
        return _define_mask(f"(i8x{scope.lanes})(int8_t)-({text})", 8, scope)
    return _define(f"({vector_type(dtype, scope.lanes)})({text})", dtype, scope)


# --- loads -----------------------------------------------------------------------------------------------------------


def _load(expr: Load, scope: Scope) -> Value:
    index = scope.place(expr.access.index)
    within = place_conditions(expr.within, scope)
    key = ("load", expr.access.buffer, expr.dtype, expr.otherwise, index, within)
    if key not in scope.known:
        scope.known[key] = _from_memory(_raw_load(expr, index, within, scope), expr.dtype, scope)
    return scope.known[key]


def _from_memory(raw: str, dtype: DType, scope: Scope) -> Value:
    if dtype is not DType.BOOL:
        return Value(raw, dtype)
    return _define_mask(f"{raw} != (uint8_t)0", 8, scope)


def _raw_load(expr: Load, index: Index, within: tuple[Within, ...], scope: Scope) -> str:
    vector = scope.vector
    kind = vector_type(expr.dtype, scope.lanes)
    otherwise = literal_text(expr.otherwise, expr.dtype)
    step = step_of(index, vector)
    if all(step_of(condition.index, vector) == 0 for condition in within) and step in (0, 1):
        text = _plain_load(expr, index, step or 0, scope)
        if within:
            text = f"{holds(within, scope)} ? {text} : ({kind})({otherwise})"
        return scope.define(kind, text)
    return _gather(expr, index, within, scope, fast=step == 1)


def _plain_load(expr: Load, index: Index, step: int, scope: Scope) -> str:
    kind = vector_type(expr.dtype, scope.lanes)
    place = scope.element(expr.access.buffer, index)
    if step == 0:
        return f"({kind})({place})"
    if scope.partial is not None:
        return f"cuvil_load_part_{kind}(&{place}, {scope.partial})"
    return f"cuvil_load_{kind}(&{place})"


def _gather(expr: Load, index: Index, within: tuple[Within, ...], scope: Scope, fast: bool) -> str:
    """Lane by lane; with `fast` a vector load where every lane meets every condition, which one test decides."""
    kind = vector_type(expr.dtype, scope.lanes)
    otherwise = literal_text(expr.otherwise, expr.dtype)
    name = scope.name()
    scope.lines.append(f"{kind} {name} = ({kind})({otherwise});")
    lanes = str(scope.lanes) if scope.partial is None else scope.partial
    place = f"{pointer(expr.access.buffer)}[{scope.offset(index, 'lane')}]"
    inside = f"if ({holds(within, scope, 'lane')}) " if within else ""
    loop = f"for (int lane = 0; lane < {lanes}; ++lane) {inside}{name}[lane] = {place};"
    monotone = all(step_of(condition.index, scope.vector) is not None for condition in within)
    if fast and monotone and scope.partial is None:
        ends = f"{holds(within, scope, '0')} && {holds(within, scope, str(scope.lanes - 1))}"
        whole = f"cuvil_load_{kind}(&{scope.element(expr.access.buffer, index)})"
        loop = f"if ({ends}) {name} = {whole};\nelse {loop}"
    scope.lines.extend(loop.split("\n"))
    return name


def holds(within: Iterable[Within], scope: Scope, lane: str | None = None) -> str:
    """C text of placed conditions; one unsigned comparison each, since a negative index is a huge unsigned one."""
    return " && ".join(
        f"(uint64_t){scope.offset(c.index, lane)} < (uint64_t){dim_text(c.extent, scope.symbols)}" for c in within
    )


def place_conditions(within: tuple[Within, ...], scope: Scope) -> tuple[Within, ...]:
    """The conditions at the present point."""
    return tuple(Within(scope.place(condition.index), condition.extent) for condition in within)


def step_of(index: Index, vector: str | None) -> int | None:
    """Constant step along the lanes; None when it varies or is symbolic."""
    if vector is None:
        return 0
    coefficient = index.coefficient(vector)
    return None if coefficient is None else coefficient.constant


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
        return _define_mask(f"~{x}", operand.mask, scope) if dtype is DType.BOOL else _define(f"~{x}", dtype, scope)
    if dtype is DType.BFLOAT16 or dtype is DType.BOOL:
        raise InternalError(f"Kernel operation {name} on {dtype} must be computed in float32 or uint8; cast it first.")
    bits = dtype.itemsize * 8
    if name == "isnan":
        return _define_mask(f"{x} != {x}", bits, scope)
    if name == "isinf":
        infinity = f"({vector_type(dtype, scope.lanes)})({literal_text(float('inf'), dtype)})"
        return _define_mask(f"__builtin_elementwise_abs({x}) == {infinity}", bits, scope)
    if name in _LIBRARY:
        return _library(f"cuvil_{name}", (operand,), dtype, scope)
    return _define(_unary_text(name, x, dtype, scope), dtype, scope)


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
    if dtype is DType.FLOAT64:
        raise UnsupportedOpError(
            f"{function.removeprefix('cuvil_')} on float64 has no C kernel; cast the tensor to float32 in the model."
        )
    inner = [cast(v, DType.FLOAT32, scope) if dtype is DType.FLOAT16 else v for v in operands]
    kind = SHORT[DType.FLOAT32 if dtype.is_float else dtype]
    call = f"{function}_{kind}x{scope.lanes}({', '.join(v.text for v in inner)})"
    if dtype is DType.FLOAT16:
        return cast(_define(call, DType.FLOAT32, scope), dtype, scope)
    return _define(call, dtype, scope)


def _binary(expr: Binary, scope: Scope) -> Value:
    name = expr.name
    left, right = emit(expr.left, scope), emit(expr.right, scope)
    if name in _LOGIC and left.dtype is DType.BOOL:
        return _define_mask(f"{left.text} {_LOGIC[name]} {as_mask(right, left.mask, scope)}", left.mask, scope)
    if name in _COMPARISONS:
        return _comparison(name, left, right, scope)
    dtype = left.dtype
    if name in _LOGIC:
        return _define(f"{left.text} {_LOGIC[name]} {right.text}", dtype, scope)
    if dtype is DType.BFLOAT16 or dtype is DType.BOOL:
        raise InternalError(f"Kernel operation {name} on {dtype} must be computed in float32 or uint8; cast it first.")
    if name in ("max", "min"):
        return extremum(name, left, right, scope, expr)
    if name in _OPERATORS and (dtype.is_float or name != "div"):
        return _define(f"{left.text} {_OPERATORS[name]} {right.text}", dtype, scope)
    if name == "pow" and isinstance(expr.right, Literal) and dtype.is_float and expr.right.value == 2:
        return _define(f"{left.text} * {left.text}", dtype, scope)
    return _library(f"cuvil_{name}", (left, right), dtype, scope)


def _comparison(name: str, left: Value, right: Value, scope: Scope) -> Value:
    if left.dtype is DType.BOOL:
        left, right = cast(left, DType.INT8, scope), cast(right, DType.INT8, scope)
    return _define_mask(f"{left.text} {_COMPARISONS[name]} {right.text}", left.dtype.itemsize * 8, scope)


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
        return _define_mask(
            f"({mask} & {then.text}) | (~{mask} & {as_mask(other, then.mask, scope)})", then.mask, scope
        )
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
        return _define_mask(f"{x} != ({vector_type(source, scope.lanes)})0", source.itemsize * 8, scope)
    if dtype is DType.BFLOAT16:
        wide = cast(value, DType.FLOAT32, scope)
        return _define(f"cuvil_round_bf16x{scope.lanes}({wide.text})", dtype, scope)
    if source.is_float and dtype.is_integer:
        wide = cast(value, DType.FLOAT32, scope) if source is DType.FLOAT16 else value
        return _define(f"cuvil_{SHORT[wide.dtype]}_to_{kind}({wide.text})", dtype, scope)
    return _define(f"__builtin_convertvector({x}, {kind})", dtype, scope)


def to_memory(value: Value, scope: Scope) -> str:
    """C text of the value as it lies in memory."""
    if value.dtype is DType.BOOL:
        return f"__builtin_convertvector(-{value.text}, u8x{scope.lanes})"
    return value.text
