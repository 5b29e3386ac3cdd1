"""Accumulators of reductions: their start, their step, and how partial ones are joined."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cuvil_core.codegen.c.expressions import as_mask, extremum
from cuvil_core.codegen.c.scope import Scope, Value
from cuvil_core.codegen.c.types import element_type, literal_text, vector_type
from cuvil_core.errors import InternalError
from cuvil_core.ir import DType
from cuvil_core.kernel_ir import Combine, Reducer


@dataclass(frozen=True, slots=True)
class Partial:
    """One accumulator of `lanes` lanes in the C variable `name`."""

    name: str
    combine: Combine
    dtype: DType
    """Of the result."""
    lanes: int
    best: Value | None = None
    """For positions: the extreme element found so far."""

    @property
    def value(self) -> Value:
        """What the epilogue sees."""
        return Value(self.name, self.dtype, 8 if self.dtype is DType.BOOL else 0)

    @property
    def bits(self) -> int:
        """Bits a lane."""
        return self.dtype.itemsize * 8

    @property
    def ctype(self) -> str:
        """The C type of the variable."""
        return f"i8x{self.lanes}" if self.dtype is DType.BOOL else vector_type(self.dtype, self.lanes)

    def lane_mask(self, count: str) -> str:
        """C text of the mask of the first `count` lanes, as wide as the accumulator's lanes."""
        lanes = self.lanes
        return f"__builtin_convertvector(cuvil_lane_i64x{lanes}() < (i64x{lanes}){count}, i{self.bits}x{lanes})"


def start(reducer: Reducer, name: str, lanes: int) -> tuple[Partial, tuple[str, ...]]:
    """An accumulator at the identity of its combination, and the C lines that declare it."""
    combine = reducer.combine
    element = reducer.element.dtype
    if combine.is_arg:
        kind = vector_type(element, lanes)
        best = Value(f"{name}_best", element)
        lines = (
            f"i64x{lanes} {name} = (i64x{lanes})0;",
            f"{kind} {best.text} = ({kind})({_identity(combine, element)});",
        )
        return Partial(name, combine, DType.INT64, lanes, best), lines
    partial = Partial(name, combine, element, lanes)
    return partial, (f"{partial.ctype} {name} = ({partial.ctype})({_identity(combine, element)});",)


def step(partial: Partial, element: Value, position: str | None, scope: Scope) -> None:
    """Writes `accumulator = accumulator combined with element`."""
    if partial.best is not None:
        _step_position(partial, partial.best, element, position or "0", scope)
        return
    scope.lines.append(f"{partial.name} = {_combined(partial, partial.value, element, scope)};")


def join_partials(partials: list[Partial], scope: Scope) -> None:
    """Writes the combination of all into the first."""
    for other in partials[1:]:
        step(partials[0], other.value, None, scope)


def join_lanes(partial: Partial, scope: Scope) -> None:
    """Writes the combination of all lanes into every lane: neighbours at half the width, a quarter, …"""
    if partial.best is not None:
        raise InternalError("A position cannot be folded across lanes; schedule its Fold with vector=None.")
    distance = partial.lanes // 2
    while distance:
        turned = ", ".join(str((lane + distance) % partial.lanes) for lane in range(partial.lanes))
        moved = scope.define(partial.ctype, f"__builtin_shufflevector({partial.name}, {partial.name}, {turned})")
        step(partial, Value(moved, partial.dtype, partial.value.mask), None, scope)
        distance //= 2


def first_lane(partial: Partial, scope: Scope) -> Value:
    """Writes lane 0 as a vector of one lane."""
    kind = "i8x1" if partial.dtype is DType.BOOL else vector_type(partial.dtype, 1)
    return Value(scope.define(kind, f"({kind})({partial.name}[0])"), partial.dtype, partial.value.mask)


def _step_position(partial: Partial, best: Value, element: Value, position: str, scope: Scope) -> None:
    """A NaN wins over numbers; `first` keeps the earliest of equals, `last` the latest."""
    name = partial.combine.value
    sign = (">" if "max" in name else "<") + ("=" if name.endswith("last") else "")
    bits = element.dtype.itemsize * 8
    text = f"({element.text} {sign} {best.text})"
    if element.dtype.is_float:
        either = "" if name.endswith("last") else f" & ({best.text} == {best.text})"
        text = f"{text} | (({element.text} != {element.text}){either})"
    kind = f"i{bits}x{scope.lanes}"
    wins = Value(scope.define(kind, f"({kind})({text})"), DType.BOOL, bits)
    scope.lines.append(f"{best.text} = {wins.text} ? {element.text} : {best.text};")
    scope.lines.append(f"{partial.name} = {as_mask(wins, 64, scope)} ? (i64x{scope.lanes}){position} : {partial.name};")


def _combined(partial: Partial, left: Value, right: Value, scope: Scope) -> str:
    combine, dtype = partial.combine, partial.dtype
    if dtype is DType.BOOL:
        operator = "&" if combine in (Combine.ALL, Combine.MIN, Combine.PROD) else "|"
        return f"{left.text} {operator} {as_mask(right, 8, scope)}"
    if combine is Combine.SUM:
        return f"{left.text} + {right.text}"
    if combine is Combine.PROD:
        return f"{left.text} * {right.text}"
    if combine in (Combine.MAX, Combine.MIN):
        return extremum(combine.value, left, right, scope).text
    raise InternalError(f"A Fold by {combine.value} takes bool elements, not {dtype}; cast them first.")


def _identity(combine: Combine, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "(int8_t)-1" if combine in (Combine.ALL, Combine.MIN, Combine.PROD) else "(int8_t)0"
    if combine in (Combine.SUM, Combine.PROD):
        return literal_text(0 if combine is Combine.SUM else 1, dtype)
    greatest = "max" in combine.value
    if dtype.is_float:
        return literal_text(-math.inf if greatest else math.inf, dtype)
    bits = dtype.itemsize * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)
    text = literal_text(low if greatest else high, dtype)
    return f"({element_type(dtype)}){text}"
