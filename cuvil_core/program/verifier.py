"""What must hold of a program before C is made of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from cuvil_core.errors import InternalError
from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import Kernel, Use, verify_schedule
from cuvil_core.kernel_ir import verify as verify_kernel
from cuvil_core.program.calls import CALLS
from cuvil_core.program.memory import ALIGNMENT
from cuvil_core.program.printer import statement_lines
from cuvil_core.program.types import (
    Assert,
    Bind,
    Branch,
    Buffer,
    Call,
    Carried,
    Carry,
    Launch,
    Loop,
    Program,
    Role,
    Statement,
)

WINDOW = 2
"""Lines shown before and after the faulty one."""
Fault = tuple[Statement, str]
_READ_ONLY = (Role.INPUT, Role.WEIGHT)


def verify(program: Program) -> None:
    """Raise InternalError with a window of statements (or lines of a kernel) round the fault.

    Kernels and schedules are sound by themselves.
    Names are unique; statements name kernels and buffers that exist, as many and of the dtypes that they take; inputs
    and weights are never written; nothing is read before it is written on every way there, a loop that may have no turn
    included; every output is written; carried pairs are alike, and only temporaries change places; weights lie aligned
    inside the segment; sizes use declared symbols only, and what waits for a bind is touched after it; each bind has a
    symbol of its own, the last ones in order.
    """
    for one in program.kernels:
        verify_kernel(one.kernel)
        verify_schedule(one.kernel, one.schedule)
    for fault in _faults_of_buffers(program):
        raise InternalError(f"{fault}; report this as a fault of Cuvil.")
    kernels = {one.kernel.name: one.kernel for one in program.kernels}
    walk = _Walk(program, kernels, program.by_name(), set(), set(program.given))
    for statement, text in walk.faults(program.statements):
        raise InternalError(f"{text}; report this as a fault of Cuvil:\n{_window(program, statement)}")
    outputs = list(program.of_role(Role.OUTPUT))
    missing = [one.name for one in outputs if one.name not in walk.written and one.size.constant != 0]
    if missing or len(outputs) != len(program.outputs):
        raise InternalError(f"Output buffers {missing} are never written; report this as a fault of Cuvil.")


def _faults_of_buffers(program: Program) -> Iterator[str]:
    names = [one.name for one in program.buffers]
    if len(set(names)) != len(names):
        yield "Two buffers have one name"
    kernels = [one.kernel.name for one in program.kernels]
    if len(set(kernels)) != len(kernels):
        yield "Two kernels have one name"
    bound = [one.symbol for one in program.binds]
    if tuple(bound) != program.symbols[len(program.symbols) - len(bound) :] or len(set(bound)) != len(bound):
        yield "The binds do not give the last symbols, each once and in order"
    for buffer in program.buffers:
        if buffer.size.symbols - set(program.symbols):
            yield f"The size {buffer.size} of buffer {buffer.name} uses undeclared symbols"
        if buffer.role is Role.WEIGHT:
            end = buffer.position + (buffer.bytes.constant or 0)
            if buffer.position % ALIGNMENT or end > len(program.weights):
                yield f"Weight {buffer.name} lies outside of the segment or unaligned"


@dataclass(slots=True)
class _Walk:
    """The statements in the order in which they run, with what has been written on every way to the present one."""

    program: Program
    kernels: dict[str, Kernel]
    buffers: dict[str, Buffer]
    written: set[str]
    known: set[str]
    """Symbols that have a value on the way to the present statement."""

    def faults(self, statements: tuple[Statement, ...]) -> Iterator[Fault]:
        """The faults of statements that stand in a row."""
        for one in statements:
            match one:
                case Launch():
                    yield from ((one, text) for text in self._launch(one))
                case Call():
                    yield from ((one, text) for text in self._call(one))
                case Assert():
                    yield from ((one, text) for text in self._scalar(one.condition))
                case Bind():
                    yield from ((one, text) for text in self._scalar(one.source, (DType.INT64,)))
                    self.known.add(one.symbol)
                case Branch():
                    yield from self._branch(one)
                case Loop():
                    yield from self._loop(one)

    def _launch(self, launch: Launch) -> Iterator[str]:
        kernel = self.kernels.get(launch.kernel)
        if kernel is None:
            yield f"There is no kernel {launch.kernel}"
            return
        if len(kernel.buffers) != len(launch.arguments) or any(name not in self.buffers for name in launch.arguments):
            yield f"Kernel {kernel.name} is launched with other buffers than it takes"
            return
        if early := sorted(set(kernel.symbols) - self.known):
            yield f"Kernel {kernel.name} needs the symbol {early[0]} before it is bound"
        pairs = list(zip(kernel.buffers, launch.arguments, strict=True))
        for parameter, name in pairs:
            buffer = self.buffers[name]
            if parameter.dtype is not buffer.dtype or parameter.extent != buffer.size:
                yield f"Parameter {parameter.name} of {kernel.name} is not what {name} is"
            if parameter.use is not Use.READ:
                yield from self._writable(name)
            if parameter.use is not Use.WRITE:
                yield from self._readable(name)
        self.written.update(name for parameter, name in pairs if parameter.use is not Use.READ)

    def _call(self, call: Call) -> Iterator[str]:
        known = CALLS.get(call.function)
        if known is None or any(name not in self.buffers for name in call.arguments):
            yield f"There is no function {call.function}, or not all of its buffers"
            return
        if tuple(self.buffers[name].dtype for name in call.arguments) != known.dtypes:
            yield f"{call.function} takes other dtypes"
        if frozenset[str]().union(*(extent.symbols for extent in call.extents)) - self.known:
            yield f"{call.function} needs a symbol before it is bound"
        for name in call.arguments[: known.reads]:
            yield from self._readable(name)
        for name in call.arguments[known.reads :]:
            yield from self._writable(name)
            self.written.add(name)

    def _branch(self, branch: Branch) -> Iterator[Fault]:
        yield from ((branch, text) for text in self._scalar(branch.condition))
        before, known = set(self.written), set(self.known)
        yield from self.faults(branch.then)
        then, self.written, self.known = self.written, before, set(known)
        yield from self.faults(branch.otherwise)
        self.written &= then
        self.known = known

    def _loop(self, loop: Loop) -> Iterator[Fault]:
        yield from ((loop, text) for text in self._head(loop))
        before, known = set(self.written), set(self.known)
        exchanged = {pair.following for pair in loop.carried}
        self.written = (before - exchanged) | ({loop.counter} if loop.counter is not None else set())
        yield from self.faults(loop.body)
        missing = sorted(exchanged - self.written)
        if missing:
            yield loop, f"The body does not write {missing[0]}, which the next turn reads"
        surely = loop.condition is None and isinstance(loop.turns, Dim) and (loop.turns.least or 0) >= 1
        self.written = (self.written if surely else before) - exchanged
        self.known = known

    def _head(self, loop: Loop) -> Iterator[str]:
        if isinstance(loop.turns, str):
            yield from self._scalar(loop.turns, (DType.INT64,))
        elif loop.turns.symbols - self.known:
            yield f"The number of turns {loop.turns} uses symbols that are undeclared or not bound yet"
        if loop.condition is not None:
            yield from self._scalar(loop.condition)
        if loop.counter is not None:
            yield from self._element(loop.counter, (DType.INT64,))
            yield from self._writable(loop.counter)
        names = [name for pair in loop.carried for name in (pair.current, pair.following)]
        if len(set(names)) != len(names):
            yield "A loop carries a buffer twice"
        for pair in loop.carried:
            yield from self._pair(pair)

    def _pair(self, pair: Carried) -> Iterator[str]:
        if pair.current not in self.buffers or pair.following not in self.buffers:
            yield f"There is no buffer {pair.current} or {pair.following}"
            return
        current, following = self.buffers[pair.current], self.buffers[pair.following]
        if current.dtype is not following.dtype or current.size != following.size:
            yield f"Buffers {current.name} and {following.name} are not alike, so neither can follow the other"
        if pair.how is Carry.SWAP and {current.role, following.role} != {Role.TEMPORARY}:
            yield f"Buffers {current.name} and {following.name} change places, but not both lie in the arena"
        yield from self._writable(current.name)
        yield from self._readable(current.name)

    def _scalar(self, name: str, dtypes: tuple[DType, ...] = ()) -> Iterator[str]:
        yield from self._element(name, dtypes)
        yield from self._readable(name)

    def _element(self, name: str, dtypes: tuple[DType, ...]) -> Iterator[str]:
        """Faults of a buffer whose element 0 steers the program."""
        buffer = self.buffers.get(name)
        if buffer is None:
            yield f"There is no buffer {name}"
        elif (buffer.dtype not in dtypes) if dtypes else buffer.dtype.is_float:
            yield f"Buffer {name} is {buffer.dtype}, so it cannot steer a statement"
        elif (buffer.size.least or 0) < 1:
            yield f"Buffer {name} may have no element to steer by"

    def _readable(self, name: str) -> Iterator[str]:
        buffer = self.buffers.get(name)
        if buffer is None or buffer.role in _READ_ONLY or buffer.size.constant == 0:
            return  # what has no element needs no writing
        if name not in self.written:
            yield f"Buffer {name} is read before anything writes it"

    def _writable(self, name: str) -> Iterator[str]:
        buffer = self.buffers.get(name)
        if buffer is not None and buffer.role in _READ_ONLY:
            yield f"Buffer {name} is written, but belongs to the {buffer.role.value}s"


def _window(program: Program, faulty: Statement) -> str:
    lines = list(statement_lines(program.statements))
    position = next(at for at, (one, _) in enumerate(lines) if one is faulty)
    first = max(0, position - WINDOW)
    shown = lines[first : position + WINDOW + 1]
    return "\n".join(f"{'-->' if first + at == position else '   '} {text}" for at, (_, text) in enumerate(shown))
