"""Kernels and schedules as text, one statement a paragraph: for golden tests, error windows and people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuvil_core.ir import Dim
from cuvil_core.kernel_ir.expressions import (
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
from cuvil_core.kernel_ir.index import Access, AxisAtom, Index, Indirect, Quotient, Within
from cuvil_core.kernel_ir.kernel import Axis, Contraction, Fold, Kernel, Statement, walk
from cuvil_core.kernel_ir.schedule import Microkernel, Schedule, Tail


def print_kernel(kernel: Kernel) -> str:
    """The whole kernel; shared expressions are named once, `%0 = …`."""
    return "\n".join(kernel_lines(kernel)) + "\n"


def kernel_lines(kernel: Kernel) -> list[str]:
    """The lines of `print_kernel`."""
    buffers = ", ".join(f"{b.use.value} {b.name}: {b.dtype}[{b.extent}]" for b in kernel.buffers)
    lines = [f"kernel {kernel.name}({buffers}) {{"]
    lines += [f"  scratch {s.name}: {s.dtype}[{s.extent}]" for s in kernel.scratch]
    if kernel.outer:
        lines.append(f"  for {_axes(kernel.outer)}")
    for statement in kernel.body:
        lines += [f"  {line}" for line in _statement(statement)]
    return [*lines, "}"]


def print_schedule(schedule: Schedule, indent: str = "") -> str:
    """All that the back end will do, on one line (and one more for each inner schedule)."""
    parts = [f"order={' '.join(schedule.order) or '-'}"]
    if schedule.parallel:
        parts.append(f"parallel={schedule.parallel}")
    parts += [f"tile {axis}={count}" for axis, count in schedule.tiles]
    if schedule.vector is not None:
        parts.append(f"vector={schedule.vector}:{schedule.width}")
    parts += [f"register {axis}={count}" for axis, count in schedule.registers]
    parts += [f"unroll {axis}={count}" for axis, count in schedule.unroll if count > 1]
    if schedule.tail is not Tail.SMALLER:
        parts.append(f"tail={schedule.tail.value}")
    if schedule.flush_denormals:
        parts.append("flush_denormals")
    if schedule.prefetch_right:
        parts.append(f"prefetch_right={schedule.prefetch_right}")
    if schedule.microkernel is not Microkernel.FMA:
        parts.append(f"microkernel={schedule.microkernel.value}")
    inner = "".join(print_schedule(item, indent + "  ") for item in schedule.inner)
    return f"{indent}schedule {' '.join(parts)}\n{inner}"


def print_index(index: Index, expression: Callable[[Expr], str] = lambda _: "?") -> str:
    """An index such as `16*i + j + 3`."""
    parts = []
    for atom, coefficient in index.terms:
        if isinstance(atom, AxisAtom):
            text = atom.axis
        elif isinstance(atom, Indirect):
            text = f"[{expression(atom.value)}]"
        else:
            sign = "//" if isinstance(atom, Quotient) else "%"
            text = f"({_factor(print_index(atom.numerator, expression))} {sign} {_factor(atom.divisor)})"
        parts.append(text if coefficient.constant == 1 else f"{_factor(coefficient)}*{text}")
    if index.offset.constant != 0 or not parts:
        parts.append(str(index.offset))
    return " + ".join(parts)


def _factor(term: Dim | str) -> str:
    """Text that multiplies or divides."""
    text = str(term)
    return text if text.isidentifier() or text.isdecimal() else f"({text})"


def _axes(axes: tuple[Axis, ...]) -> str:
    return ", ".join(f"{axis.name} < {axis.extent}" for axis in axes)


def _statement(statement: Statement) -> Iterator[str]:
    kind = type(statement).__name__.lower()
    reduced = f" reduce {_axes(statement.reduce_axes)}" if statement.reduce_axes else ""
    yield f"{kind} {_axes(statement.axes) or '-'}{reduced} {{"
    names = _Names()
    if isinstance(statement, Contraction):
        yield from (f"  {line}" for line in names.define(statement.left, statement.right))
        yield f"  acc = sum({names.text(statement.left)} * {names.text(statement.right)})"
    elif isinstance(statement, Fold):
        for number, reducer in enumerate(statement.reducers):
            yield from (f"  {line}" for line in names.define(reducer.element))
            suffix = str(number) if number else ""
            yield f"  acc{suffix} = {reducer.combine.value}({names.text(reducer.element)})"
    for store in statement.stores:
        yield from (f"  {line}" for line in names.define(store.value, *store.access.index.computed))
        yield f"  {names.place(store.access)} = {names.text(store.value)}{names.conditions(store.within)}"
    yield "}"


class _Names:
    """Names for expressions that are used more than once, or that are not leaves."""

    def __init__(self) -> None:
        self._names: dict[Expr, str] = {}

    def define(self, *roots: Expr) -> Iterator[str]:
        """Lines that define what the roots need, in order; leaves stay in place."""
        for expr in walk(*roots):
            if expr in self._names or isinstance(expr, (Literal, Accumulator, AxisIndex)):
                continue
            text = self._shape(expr)
            self._names[expr] = f"%{len(self._names)}"
            yield f"{self._names[expr]} = {text}"

    def text(self, expr: Expr) -> str:
        """The name of an expression, or a leaf itself."""
        return self._names.get(expr) or self._shape(expr)

    def place(self, access: Access) -> str:
        """`buffer[index]`."""
        return f"{access.buffer}[{print_index(access.index, self.text)}]"

    def conditions(self, within: tuple[Within, ...]) -> str:
        """` where 0 <= index < extent, …`, or nothing."""
        if not within:
            return ""
        return " where " + ", ".join(f"0 <= {print_index(w.index, self.text)} < {w.extent}" for w in within)

    def _shape(self, expr: Expr) -> str:
        if isinstance(expr, Load):
            tail = f"{self.conditions(expr.within)} else {expr.otherwise}" if expr.within else ""
            return f"load {self.place(expr.access)}: {expr.dtype}{tail}"
        if isinstance(expr, Literal):
            return f"{expr.value}: {expr.dtype}"
        if isinstance(expr, AxisIndex):
            return f"index({print_index(expr.index, self.text)}): {expr.dtype}"
        if isinstance(expr, Accumulator):
            return f"acc{expr.position or ''}"
        operands = ", ".join(self.text(operand) for operand in expr.operands)
        if isinstance(expr, Cast | Bitcast):
            return f"{type(expr).__name__.lower()} {operands}: {expr.dtype}"
        if isinstance(expr, (Fma, Select)):
            return f"{type(expr).__name__.lower()} {operands}"
        assert isinstance(expr, (Unary, Binary))
        return f"{expr.name} {operands}"
