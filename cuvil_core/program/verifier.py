"""What must hold of a program before C is made of it."""

from collections.abc import Iterator

from cuvil_core.errors import InternalError
from cuvil_core.kernel_ir import Use, verify_schedule
from cuvil_core.kernel_ir import verify as verify_kernel
from cuvil_core.program.memory import ALIGNMENT
from cuvil_core.program.printer import print_launch
from cuvil_core.program.types import Launch, Program, Role

WINDOW = 2
"""Launches shown before and after the faulty one."""


def verify(program: Program) -> None:
    """Raise InternalError with a window of launches (or lines of a kernel) round the fault.

    Kernels and schedules are sound by themselves.
    Names are unique; launches name kernels and buffers that exist, as many and of the dtypes that the kernel takes;
    inputs and weights are never written; nothing is read before it is written; every output is written; weights lie
    aligned inside the segment; sizes use declared symbols only.
    """
    for one in program.kernels:
        verify_kernel(one.kernel)
        verify_schedule(one.kernel, one.schedule)
    for fault in _faults_of_buffers(program):
        raise InternalError(f"{fault}; report this as a fault of Cuvil.")
    written: set[str] = set()
    for position, launch in enumerate(program.statements):
        wrong = next(_faults_of_launch(program, launch, written), None)
        if wrong is not None:
            raise InternalError(f"{wrong}; report this as a fault of Cuvil:\n{_window(program, position)}")
    missing = [one.name for one in program.of_role(Role.OUTPUT) if one.name not in written and one.size.constant != 0]
    if missing or len(list(program.of_role(Role.OUTPUT))) != len(program.outputs):
        raise InternalError(f"Output buffers {missing} are never written; report this as a fault of Cuvil.")


def _faults_of_buffers(program: Program) -> Iterator[str]:
    names = [one.name for one in program.buffers]
    if len(set(names)) != len(names):
        yield "Two buffers have one name"
    kernels = [one.kernel.name for one in program.kernels]
    if len(set(kernels)) != len(kernels):
        yield "Two kernels have one name"
    for buffer in program.buffers:
        if buffer.size.symbols - set(program.symbols):
            yield f"The size {buffer.size} of buffer {buffer.name} uses undeclared symbols"
        if buffer.role is Role.WEIGHT:
            end = buffer.position + (buffer.bytes.constant or 0)
            if buffer.position % ALIGNMENT or end > len(program.weights):
                yield f"Weight {buffer.name} lies outside of the segment or unaligned"


def _faults_of_launch(program: Program, launch: Launch, written: set[str]) -> Iterator[str]:
    kernels = {one.kernel.name: one.kernel for one in program.kernels}
    buffers = program.by_name()
    kernel = kernels.get(launch.kernel)
    if kernel is None:
        yield f"There is no kernel {launch.kernel}"
        return
    if len(kernel.buffers) != len(launch.arguments) or any(name not in buffers for name in launch.arguments):
        yield f"Kernel {kernel.name} is launched with other buffers than it takes"
        return
    for parameter, name in zip(kernel.buffers, launch.arguments, strict=True):
        buffer = buffers[name]
        if parameter.dtype is not buffer.dtype or parameter.extent != buffer.size:
            yield f"Parameter {parameter.name} of {kernel.name} is not what {name} is"
        if parameter.use is not Use.READ and buffer.role in (Role.INPUT, Role.WEIGHT):
            yield f"Kernel {kernel.name} writes {name}, which belongs to the {buffer.role.value}s"
        if parameter.use is not Use.WRITE and buffer.role in (Role.TEMPORARY, Role.OUTPUT) and name not in written:
            yield f"Kernel {kernel.name} reads {name} before anything writes it"
    written.update(
        name for parameter, name in zip(kernel.buffers, launch.arguments, strict=True) if parameter.use is not Use.READ
    )


def _window(program: Program, position: int) -> str:
    first = max(0, position - WINDOW)
    shown = program.statements[first : position + WINDOW + 1]
    return "\n".join(
        f"{'-->' if first + at == position else '   '} {print_launch(launch)}" for at, launch in enumerate(shown)
    )
