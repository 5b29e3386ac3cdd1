"""Loads as C: whole vectors, broadcasts, or lane by lane, and the conditions that guard them."""

from __future__ import annotations

from collections.abc import Iterable

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.codegen.c.scope import Scope, Value
from cuvil_core.codegen.c.types import literal_text, pointer, vector_type
from cuvil_core.ir import DType
from cuvil_core.kernel_ir import Index, Load, Within


def load(expr: Load, scope: Scope) -> Value:
    index = scope.place(expr.access.index)
    within = place_conditions(expr.within, scope)
    key = ("load", expr.access.buffer, expr.dtype, expr.otherwise, index, within)
    if key not in scope.known:
        scope.known[key] = _from_memory(_raw_load(expr, index, within, scope), expr.dtype, scope)
    return scope.known[key]


def _from_memory(raw: str, dtype: DType, scope: Scope) -> Value:
    if dtype is not DType.BOOL:
        return Value(raw, dtype)
    return scope.define_mask(f"{raw} != (uint8_t)0", 8)


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
