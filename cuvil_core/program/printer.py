"""A program as text: ports, buffers, launches; kernels by name, their bodies are printed by kernel_ir."""

from collections.abc import Iterator

from cuvil_core.program.types import Buffer, Launch, Program, Role

_WORD = {Role.INPUT: "input", Role.OUTPUT: "output", Role.WEIGHT: "weight", Role.TEMPORARY: "arena"}


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
        yield f"  assert {position}: {guard}"
    for buffer in program.buffers:
        yield f"  {print_buffer(buffer)}"
    for launch in program.statements:
        yield f"  {print_launch(launch)}"
    yield "}"


def print_buffer(buffer: Buffer) -> str:
    """`buffer t3: arena float32[N*64]`, with `@offset` for weights and `#place` for the caller's."""
    where = {Role.WEIGHT: f" @{buffer.position}", Role.TEMPORARY: ""}.get(buffer.role, f" #{buffer.position}")
    return f"buffer {buffer.name}: {_WORD[buffer.role]} {buffer.dtype}[{buffer.size}]{where}"


def print_launch(launch: Launch) -> str:
    """`launch k1_conv(t0, w1, t2)  # origin`."""
    origin = f"  # {launch.origin}" if launch.origin else ""
    return f"launch {launch.kernel}({', '.join(launch.arguments)}){origin}"
