"""A kernel and its schedule as three C functions: NAME, NAME_units and NAME_work."""

from __future__ import annotations

from cuvil_core.codegen.c.dims import NamedDims, Symbols, dim_text
from cuvil_core.codegen.c.loops import Body, Level, Nest, Turn, Writer, levels_of
from cuvil_core.codegen.c.sharing import enter_shared, shared_turns
from cuvil_core.codegen.c.statements import Emitter
from cuvil_core.codegen.c.types import element_type, pointer, symbol_variable
from cuvil_core.ir import Dim, product
from cuvil_core.kernel_ir import Axis, Binary, Buffer, Contraction, Kernel, Schedule, Statement, Unary, Use
from cuvil_core.kernel_ir.analysis import extents_of, may_share
from cuvil_core.kernel_ir.kernel import statement_expressions

PRELUDE = '#include "cuvil_kernel.h"\n'
"""What a file of kernels begins with."""
ELEMENT_WORK, OPERATION_WORK, FUNCTION_WORK = 4, 2, 32
"""What an element of a Map or Fold, each of its expressions and each elementary function cost, in multiply-adds."""


def emit_kernel(kernel: Kernel, schedule: Schedule, isa: str = "avx512") -> str:
    """C definitions of the kernel; put PRELUDE before the first of a file.

    `isa` names the variant for the reader only: vectors are wider or narrower by the schedule, instructions by the
    compiler's target.
    """
    symbols = NamedDims({name: symbol_variable(name) for name in kernel.symbols})
    writer = Writer()
    writer.line(f"/* {kernel.name}, scheduled for {isa} */")
    _emit_body(kernel, schedule, symbols, writer)
    _emit_entry(kernel, schedule, symbols, writer)
    _emit_counts(kernel, schedule, symbols, writer)
    return writer.text


def prototypes(kernel: Kernel) -> str:
    """C declarations of the three functions, for the file of the program."""
    return (
        f"cuvil_kernel {kernel.name};\n"
        f"int64_t {kernel.name}_units(const int64_t *symbols);\n"
        f"int64_t {kernel.name}_work(const int64_t *symbols);\n"
    )


def _emit_body(kernel: Kernel, schedule: Schedule, symbols: NamedDims, writer: Writer) -> None:
    parameters = [_parameter(kernel, buffer) for buffer in kernel.buffers]
    parameters += [f"const int64_t {name}" for name in symbols.values()]
    parameters += ["const int64_t begin", "const int64_t end"]
    head = f"static __attribute__((noinline)) void {kernel.name}_body({', '.join(parameters)})"
    levels, extents = _levels(kernel, schedule), extents_of(kernel)
    loops = writer.below()
    with loops.block("for (int64_t unit = begin; unit < end; ++unit)"):
        nest = Nest(loops, schedule, extents, symbols, levels, _body(kernel, schedule, symbols, extents, loops))
        if schedule.parallel:
            enter_shared(nest, schedule.parallel, Turn({}, {}))
        else:
            nest.emit(Turn({}, {}))
    with writer.block(head):
        for line in symbols.definitions():
            writer.line(line)
        writer.lines += loops.lines


def _body(kernel: Kernel, schedule: Schedule, symbols: Symbols, extents: dict[str, Dim], writer: Writer) -> Body:
    """What stands inside the parallel loops: the one statement, or the sequence placed within the outer axes."""
    if not _is_sequence(kernel):
        return Emitter(writer, kernel.body[0], schedule, symbols, extents).body

    def sequence(turn: Turn) -> None:
        with writer.block():
            for scratch in kernel.scratch:
                kind = element_type(scratch.dtype)
                writer.line(f"_Alignas(64) {kind} {pointer(scratch.name)}[{scratch.extent}];")
            for statement, inner in zip(kernel.body, schedule.inner, strict=True):
                emitter = Emitter(writer, statement, inner, symbols, extents)
                levels = levels_of(inner, frozenset(axis.name for axis in statement.axes))
                Nest(writer, inner, extents, symbols, levels, emitter.body).emit(Turn(dict(turn.axes), {}))

    return sequence


def _is_sequence(kernel: Kernel) -> bool:
    return bool(kernel.outer) or len(kernel.body) > 1 or bool(kernel.scratch)


def _shared_axes(kernel: Kernel) -> tuple[Axis, ...]:
    return kernel.outer if _is_sequence(kernel) else kernel.body[0].axes


def _levels(kernel: Kernel, schedule: Schedule) -> tuple[Level, ...]:
    return levels_of(schedule, frozenset(axis.name for axis in _shared_axes(kernel)))


def _parameter(kernel: Kernel, buffer: Buffer) -> str:
    """`restrict` wherever no other buffer may lie in the same place."""
    constant = "const " if buffer.use is Use.READ else ""
    others = [other.name for other in kernel.buffers if other is not buffer]
    shared = any(may_share(kernel, buffer.name, other) or may_share(kernel, other, buffer.name) for other in others)
    qualifier = "" if shared else "restrict "
    return f"{constant}{element_type(buffer.dtype)} *{qualifier}{pointer(buffer.name)}"


def _emit_entry(kernel: Kernel, schedule: Schedule, symbols: Symbols, writer: Writer) -> None:
    arguments = [f"buffers[{position}]" for position in range(len(kernel.buffers))]
    arguments += [f"symbols[{position}]" for position in range(len(symbols))]
    call = f"{kernel.name}_body({', '.join([*arguments, 'begin', 'end'])});"
    head = f"void {kernel.name}(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end)"
    with writer.block(head):
        writer.line("(void)buffers, (void)symbols;")
        if schedule.flush_denormals:
            writer.line("const uint32_t state = cuvil_flush_denormals();")
        writer.line(call)
        if schedule.flush_denormals:
            writer.line("cuvil_restore_denormals(state);")


def _emit_counts(kernel: Kernel, schedule: Schedule, symbols: Symbols, writer: Writer) -> None:
    extents = extents_of(kernel)
    inside = {name: f"symbols[{position}]" for position, name in enumerate(symbols)}
    turns = shared_turns(_levels(kernel, schedule)[: schedule.parallel], extents, inside)
    for suffix, text in (("units", " * ".join(turns) or "1"), ("work", dim_text(_work(kernel), inside))):
        with writer.block(f"int64_t {kernel.name}_{suffix}(const int64_t *symbols)"):
            writer.line("(void)symbols;")
            writer.line(f"return {text};")


def _work(kernel: Kernel) -> Dim:
    """Work of a launch in multiply-adds, about."""
    outer = product(axis.extent for axis in kernel.outer)
    total = Dim.of(0)
    for statement in kernel.body:
        points = product(axis.extent for axis in (*statement.axes, *statement.reduce_axes))
        total = total + points * _weight(statement)
    return outer * total


def _weight(statement: Statement) -> int:
    """What a point costs: a Contraction's points run 32 a cycle, others wait for memory or for their operations."""
    if isinstance(statement, Contraction):
        return 1
    expressions = list(statement_expressions(statement))
    functions = sum(1 for e in expressions if isinstance(e, (Unary, Binary)) and e.name in _COSTLY)
    return ELEMENT_WORK + OPERATION_WORK * len(expressions) + FUNCTION_WORK * functions


_COSTLY = frozenset(("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "pow", "mod", "fmod")) | frozenset(
    ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
)
