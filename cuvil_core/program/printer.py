"""A program as text: ports, buffers, statements; kernels by name, their bodies are printed by kernel_ir."""

from collections.abc import Iterable, Iterator

from cuvil_core.program.types import Assert, Bind, Branch, Buffer, Call, Launch, Loop, Program, Role, Statement

_WORD = {Role.INPUT: "input", Role.OUTPUT: "output", Role.WEIGHT: "weight", Role.TEMPORARY: "arena"}
Line = tuple[Statement, str]
"""A statement and a line of its text; the first line of a statement names all that it touches itself."""


def print_program(program: Program) -> str:
    """One line a buffer and a launch, in order; equal programs print equally."""
    return "\n".join(_lines(program)) + "\n"


def _lines(program: Program) -> Iterator[str]:
    yield f"program {program.name}({', '.join(program.symbols)}) {{"
    for port in program.inputs:
        yield f"  input {port.name}: {port.type}"
    for port in program.outputs:
        yield f"  output {port.name}: {port.type}"
    for position, guard in enumerate(program.guards):
        yield f"  guard {position}: {guard}"
    for buffer in program.buffers:
        yield f"  {print_buffer(buffer)}"
    for _, line in statement_lines(program.statements):
        yield f"  {line}"
    yield "}"


def print_buffer(buffer: Buffer) -> str:
    """`buffer t3: arena float32[N*64]`, with `@offset` for weights and `#place` for the caller's."""
    where = {Role.WEIGHT: f" @{buffer.position}", Role.TEMPORARY: ""}.get(buffer.role, f" #{buffer.position}")
    return f"buffer {buffer.name}: {_WORD[buffer.role]} {buffer.dtype}[{buffer.size}]{where}"


def statement_lines(statements: Iterable[Statement]) -> Iterator[Line]:
    """Give each statement's lines: `launch k1_conv(t0, w1, t2)  # origin`, blocks of branches and loops indented."""
    for one in statements:
        match one:
            case Launch():
                yield one, f"launch {one.kernel}({', '.join(one.arguments)}){_origin(one.origin)}"
            case Call():
                extents = ", ".join(map(str, one.extents))
                yield one, f"call {one.function}({', '.join(one.arguments)}; {extents}){_origin(one.origin)}"
            case Assert():
                yield one, f"assert {one.condition}: {one.text}"
            case Bind():
                yield one, f"bind {one.symbol} = {one.source}{_origin(one.origin)}"
            case Branch():
                yield one, f"if {one.condition} {{{_origin(one.origin)}"
                yield from _indented(one.then)
                if one.otherwise:
                    yield one, "} else {"
                    yield from _indented(one.otherwise)
                yield one, "}"
            case Loop():
                yield one, f"{_head(one)} {{{_origin(one.origin)}"
                yield from _indented(one.body)
                yield one, "}"


def _head(loop: Loop) -> str:
    parts = [f"repeat {loop.turns}"]
    parts += [f"while {loop.condition}"] if loop.condition is not None else []
    parts += [f"count {loop.counter}"] if loop.counter is not None else []
    parts += [f"{one.how.value} {one.current} <- {one.following}" for one in loop.carried]
    return " ".join(parts)


def _indented(statements: Iterable[Statement]) -> Iterator[Line]:
    return ((one, f"  {line}") for one, line in statement_lines(statements))


def _origin(text: str) -> str:
    return f"  # {text}" if text else ""
