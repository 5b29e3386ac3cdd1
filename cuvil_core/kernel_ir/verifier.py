"""Refuses kernels and schedules that cannot be right, showing the faulty line in its window."""

from __future__ import annotations

from collections.abc import Iterator

from cuvil_core.errors import InternalError
from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir.analysis import index_range, is_never_negative, simplify
from cuvil_core.kernel_ir.expressions import (
    BINARY,
    BINARY_LOGIC,
    BINARY_SHIFT,
    UNARY,
    UNARY_FLOAT,
    UNARY_TEST,
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
from cuvil_core.kernel_ir.index import Access, Within
from cuvil_core.kernel_ir.kernel import (
    MAX_SCRATCH,
    Axis,
    Contraction,
    Fold,
    Kernel,
    Map,
    Statement,
    Use,
    statement_expressions,
)
from cuvil_core.kernel_ir.printer import kernel_lines, print_index, print_schedule
from cuvil_core.kernel_ir.schedule import Schedule, Tail


class KernelError(InternalError):
    """A kernel breaks the rules of the kernel IR: a fault of lowering.

    Example: a store at `16*i + j` with j < 17 into a buffer of 16·I elements. The cure is in whoever built the kernel.
    """


def verify(kernel: Kernel) -> None:
    """Raises KernelError for the first fault: names, types, uses, or an index provably outside its buffer."""
    for fault, line in _faults(kernel):
        raise KernelError(f"{fault}; report it.\n{_window(kernel_lines(kernel), line)}")


def verify_schedule(kernel: Kernel, schedule: Schedule) -> None:
    """Raises KernelError when a schedule does not fit its kernel."""
    is_sequence = bool(kernel.outer) or len(kernel.body) > 1 or bool(kernel.scratch)
    for fault in _schedule_faults(kernel, schedule, is_sequence):
        raise KernelError(f"The schedule of kernel {kernel.name} {fault}; report it.\n{print_schedule(schedule)}")


def _window(lines: list[str], needle: str) -> str:
    """Three lines of the kernel on either side of the first that holds the needle, marked."""
    at = next((number for number, line in enumerate(lines) if needle and needle in line), 0)
    first = max(0, at - 3)
    return "\n".join(f"{'>' if n == at else ' '} {line}" for n, line in enumerate(lines[first : at + 4], first))


Fault = tuple[str, str]
"""(what is wrong, text of the faulty line)"""


def _faults(kernel: Kernel) -> Iterator[Fault]:
    if not kernel.name.isidentifier():
        yield f"Kernel name {kernel.name!r} is no C identifier", "kernel"
    if len(kernel.body) > 1 and not kernel.outer:
        yield f"Kernel {kernel.name} has several statements but no outer axes", "kernel"
    names = [buffer.name for buffer in kernel.buffers] + [scratch.name for scratch in kernel.scratch]
    yield from ((f"Two buffers are named {name}", name) for name in names if names.count(name) > 1)
    if sum(scratch.extent * scratch.dtype.itemsize for scratch in kernel.scratch) > MAX_SCRATCH:
        yield f"Scratch exceeds {MAX_SCRATCH} bytes", "scratch"
    for statement in kernel.body:
        yield from _statement_faults(kernel, statement)


def _statement_faults(kernel: Kernel, statement: Statement) -> Iterator[Fault]:
    axes = (*kernel.outer, *statement.axes, *statement.reduce_axes)
    names = [axis.name for axis in axes]
    kind = type(statement).__name__.lower()
    yield from ((f"Two axes are named {name}", kind) for name in names if names.count(name) > 1)
    yield from ((f"Axis {a.name} has a negative extent", kind) for a in axes if (a.extent.constant or 0) < 0)
    if not isinstance(statement, Map) and not statement.reduce_axes:
        yield f"A {kind} has no reduce axis", kind
    check = _Check(kernel, statement, {axis.name: axis.extent for axis in axes})
    for expr in statement_expressions(statement):
        yield from check.expression(expr)
    kept = {axis.name for axis in (*kernel.outer, *statement.axes)}
    for store in statement.stores:
        yield from check.access(store.access, store.value.dtype, store.within, writes=True)
        if not (store.access.index.axes | store.value.axes) <= kept:
            yield f"A store to {store.access.buffer} depends on a reduce axis", f"{store.access.buffer}["


class _Check:
    """The rules for expressions and accesses of one statement."""

    def __init__(self, kernel: Kernel, statement: Statement, extents: dict[str, Dim]) -> None:
        self.statement, self.extents = statement, extents
        self.buffers = {b.name: (b.dtype, b.extent, b.use) for b in kernel.buffers}
        self.buffers |= {s.name: (s.dtype, Dim.of(s.extent), Use.UPDATE) for s in kernel.scratch}

    def expression(self, expr: Expr) -> Iterator[Fault]:
        """Faults of one expression, its operands aside."""
        unknown = sorted(expr.axes - self.extents.keys())
        if unknown:
            yield f"Axis {unknown[0]} is used but not defined", unknown[0]
        if isinstance(expr, Load):
            yield from self.access(expr.access, expr.dtype, expr.within, writes=False)
        elif isinstance(expr, (Unary, Binary)):
            yield from self._operation(expr)
        elif isinstance(expr, Select) and expr.condition.dtype is not DType.BOOL:
            yield f"A select asks a {expr.condition.dtype}, not a bool", "select"
        elif isinstance(expr, (Fma, Select)):
            kinds = {operand.dtype for operand in expr.operands[-2:]}
            if len(kinds) > 1:
                yield f"A {type(expr).__name__.lower()} mixes {_listed(kinds)}", type(expr).__name__.lower()
        elif isinstance(expr, Accumulator):
            yield from self._accumulator(expr)
        elif isinstance(expr, Bitcast):
            if DType.BOOL in (expr.dtype, expr.operand.dtype) or expr.dtype.itemsize != expr.operand.dtype.itemsize:
                yield f"A bitcast turns {expr.operand.dtype} into {expr.dtype}", "bitcast"
        elif not isinstance(expr, (Literal, AxisIndex, Cast)):
            yield f"Unknown expression {type(expr).__name__}", ""

    def _operation(self, expr: Unary | Binary) -> Iterator[Fault]:
        known = UNARY if isinstance(expr, Unary) else BINARY
        kinds = {operand.dtype for operand in expr.operands}
        first = expr.operands[0].dtype
        if expr.name not in known:
            yield f"Unknown operation {expr.name}", expr.name
        elif len(kinds) > 1:
            yield f"{expr.name} mixes {_listed(kinds)}", expr.name
        elif expr.name in UNARY_FLOAT | UNARY_TEST and not first.is_float:
            yield f"{expr.name} takes floats, not {first}", expr.name
        elif expr.name in BINARY_LOGIC | {"not"} and first.is_float:
            yield f"{expr.name} takes bools or integers, not {first}", expr.name
        elif expr.name in BINARY_SHIFT and (first.is_signed or not first.is_integer):
            yield f"{expr.name} takes unsigned integers, not {first}", expr.name

    def _accumulator(self, expr: Accumulator) -> Iterator[Fault]:
        if isinstance(self.statement, Map):
            yield "A map has no accumulator", "acc"
        elif isinstance(self.statement, Fold):
            reducers = self.statement.reducers
            if expr.position >= len(reducers) or reducers[expr.position].dtype is not expr.dtype:
                yield f"Accumulator {expr.position} of {expr.dtype} does not exist", "acc"
        elif isinstance(self.statement, Contraction) and expr.dtype is not self.statement.left.dtype:
            yield f"The accumulator is {self.statement.left.dtype}, not {expr.dtype}", "acc"

    def access(self, access: Access, dtype: DType, within: tuple[Within, ...], writes: bool) -> Iterator[Fault]:
        """Faults of a load or a store; conditions are taken to protect whatever they name."""
        line = f"{access.buffer}[{print_index(access.index)}"
        if access.buffer not in self.buffers:
            yield f"Buffer {access.buffer} does not exist", access.buffer
            return
        held, extent, use = self.buffers[access.buffer]
        if held is not dtype:
            yield f"Buffer {access.buffer} holds {held}, not {dtype}", line
        if use is (Use.READ if writes else Use.WRITE):
            yield f"Buffer {access.buffer} is declared {use.value} but {'written' if writes else 'read'}", line
        if within:
            return
        low, high = index_range(simplify(access.index, self.extents), self.extents)
        if low is not None and is_never_negative(-low - 1):
            yield f"Index {print_index(access.index)} of {access.buffer} falls below 0", line
        if high is not None and is_never_negative(high - extent) and all(map(_not_empty, self._axes())):
            yield f"Index {print_index(access.index)} of {access.buffer} reaches {high}, its extent is {extent}", line

    def _axes(self) -> tuple[Axis, ...]:
        return (*self.statement.axes, *self.statement.reduce_axes)


def _not_empty(axis: Axis) -> bool:
    return axis.extent.constant != 0


def _listed(kinds: set[DType]) -> str:
    return " and ".join(sorted(map(str, kinds)))


def _schedule_faults(kernel: Kernel, schedule: Schedule, is_sequence: bool) -> Iterator[str]:
    if is_sequence:
        yield from _order_faults(schedule, kernel.outer, ())
        if len(schedule.inner) != len(kernel.body):
            yield f"has {len(schedule.inner)} inner schedules for {len(kernel.body)} statements"
            return
        for statement, inner in zip(kernel.body, schedule.inner, strict=True):
            yield from _order_faults(inner, statement.axes, statement.reduce_axes)
            if inner.parallel:
                yield "shares inner loops between threads"
    else:
        yield from _order_faults(schedule, kernel.body[0].axes, kernel.body[0].reduce_axes)
    in_place = any(buffer.use is Use.UPDATE for buffer in kernel.buffers)
    if schedule.tail is Tail.OVERLAP and in_place:
        yield "overlaps tiles of a buffer that is updated in place"


def _order_faults(schedule: Schedule, kept: tuple[Axis, ...], reduced: tuple[Axis, ...]) -> Iterator[str]:
    parallel, reduce = [axis.name for axis in kept], [axis.name for axis in reduced]
    tiled = [axis for axis, _ in schedule.tiles]
    wanted = sorted([*parallel, *reduce, *tiled])
    if sorted(schedule.order) != wanted:
        yield f"orders {' '.join(sorted(schedule.order)) or 'nothing'}, the axes are {' '.join(wanted) or 'none'}"
        return
    kinds = [name in parallel for name in schedule.order]
    if kinds != sorted(kinds, reverse=True):
        yield "has a reduce axis outside a parallel one"
    if not 0 <= schedule.parallel <= len(kept) + len(tiled):
        yield f"shares {schedule.parallel} loops of {len(kept) + len(tiled)}"
    if schedule.width not in (8, 16):
        yield f"has vectors of {schedule.width} lanes, not 8 or 16"
    counts = [*schedule.registers, *schedule.unroll, *schedule.tiles]
    yield from (f"gives {axis} the count {count}" for axis, count in counts if count < 1 or axis not in wanted)
    yield from (f"unrolls the parallel axis {axis}" for axis, _ in schedule.unroll if axis in parallel)
    yield from (f"holds the reduce axis {axis} in registers" for axis, _ in schedule.registers if axis in reduce)
    if schedule.vector is not None and schedule.vector not in wanted:
        yield f"has the unknown vector axis {schedule.vector}"
