"""`cuvil_run`: a program's statements as C; pointers of buffers that change places are variables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.codegen.c.loops import Writer
from cuvil_core.codegen.c.types import element_type
from cuvil_core.program import Assert, Branch, Buffer, Carried, Carry, Launch, Loop, Program, Role, Statement, lifetimes


def run_text(program: Program, symbols: Mapping[str, str]) -> str:
    """The function's definition; `symbols` gives C expressions of the program's symbols."""
    writer = Writer()
    writer.line("int32_t cuvil_run(const int64_t *symbols, const void *const *inputs, void *const *outputs,")
    writer.line("                  const void *weights, void *arena, cuvil_pool *pool)")
    with writer.block():
        writer.line("(void)symbols, (void)inputs, (void)outputs, (void)weights, (void)arena;")
        writer.line("int64_t offsets[PLACES];")
        writer.line("recall_offsets(symbols, offsets);")
        pointers = _pointers(program)
        for name in (name for pair in program.swaps for name in (pair.current, pair.following)):
            if pointers[name] != _moving(name):
                writer.line(f"void *{_moving(name)} = {pointers[name]};")
                pointers[name] = _moving(name)
        writer.line("if (pool) pool->enter(pool);")
        _Statements(program, symbols, pointers, writer).emit(program.statements)
        writer.line("if (pool) pool->leave(pool);")
        writer.line("return 0;")
    return writer.text


def _moving(name: str) -> str:
    return f"at_{name}"


def _pointers(program: Program) -> dict[str, str]:
    """Buffer name → C expression of its address."""
    places = {life.buffer.name: at for at, life in enumerate(lifetimes(program))}
    return {one.name: _address(one, places) for one in program.buffers}


def _address(buffer: Buffer, places: Mapping[str, int]) -> str:
    match buffer.role:
        case Role.INPUT:
            return f"(void *)inputs[{buffer.position}]"
        case Role.OUTPUT:
            return f"outputs[{buffer.position}]"
        case Role.WEIGHT:
            return f"(char *)weights + INT64_C({buffer.position})"
        case Role.TEMPORARY:
            return f"(char *)arena + offsets[{places[buffer.name]}]" if buffer.name in places else "arena"


@dataclass(slots=True)
class _Statements:
    """What the lines of a function's statements share: addresses and running numbers."""

    program: Program
    symbols: Mapping[str, str]
    pointers: Mapping[str, str]
    writer: Writer
    buffers: dict[str, Buffer] = field(init=False)
    takes: dict[str, tuple[str, ...]] = field(init=False)
    """Kernel → the symbols that it takes."""
    launches: Iterator[int] = field(default_factory=count)
    asserts: Iterator[int] = field(default_factory=lambda: count(1))
    loops: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.buffers = self.program.by_name()
        self.takes = {one.kernel.name: one.kernel.symbols for one in self.program.kernels}

    def emit(self, statements: tuple[Statement, ...]) -> None:
        """Write statements in a row."""
        for one in statements:
            match one:
                case Launch():
                    self._launch(one)
                case Assert():
                    with self.writer.block(f"if (!{self._element(one.condition)})"):
                        self.writer.line("if (pool) pool->leave(pool);")
                        self.writer.line(f"return {next(self.asserts)};")
                case Branch():
                    self._branch(one)
                case Loop():
                    self._loop(one)

    def _launch(self, launch: Launch) -> None:
        kernel, position = launch.kernel, next(self.launches)
        addresses = ", ".join(self.pointers[name] for name in launch.arguments)
        values = ", ".join(self.symbols[name] for name in self.takes[kernel]) or "0"
        self._comment(launch.origin)
        with self.writer.block():
            self.writer.line(f"void *const buffers[] = {{{addresses}}};")
            self.writer.line(f"const int64_t values[] = {{{values}}};")
            self.writer.line(f"PROFILE_BEGIN({position})")
            self.writer.line(f"const int64_t units = {kernel}_units(values), work = {kernel}_work(values);")
            self.writer.line(f"cuvil_launch_kernel(pool, {kernel}, buffers, values, units, work);")
            self.writer.line(f"PROFILE_END({position})")

    def _branch(self, branch: Branch) -> None:
        self._comment(branch.origin)
        with self.writer.block(f"if ({self._element(branch.condition)})"):
            self.emit(branch.then)
        if branch.otherwise:
            with self.writer.block("else"):
                self.emit(branch.otherwise)

    def _loop(self, loop: Loop) -> None:
        number = next(self.loops)
        turn, turns = f"turn{number}", f"turns{number}"
        self._comment(loop.origin)
        limit = self._element(loop.turns) if isinstance(loop.turns, str) else dim_text(loop.turns, self.symbols)
        self.writer.line(f"const int64_t {turns} = {limit};")
        goes_on = "" if loop.condition is None else f" && {self._element(loop.condition)}"
        with self.writer.block(f"for (int64_t {turn} = 0; {turn} < {turns}{goes_on}; ++{turn})"):
            if loop.counter is not None:
                self.writer.line(f"{self._element(loop.counter)} = {turn};")
            self.emit(loop.body)
            for pair in loop.carried:
                self._carry(pair)

    def _carry(self, pair: Carried) -> None:
        current, following = self.pointers[pair.current], self.pointers[pair.following]
        if pair.how is Carry.COPY:
            size = dim_text(self.buffers[pair.current].bytes, self.symbols)
            self.writer.line(f"__builtin_memcpy({current}, {following}, {size});")
        else:
            with self.writer.block():
                self.writer.line(f"void *const held = {current};")
                self.writer.line(f"{current} = {following};")
                self.writer.line(f"{following} = held;")

    def _element(self, name: str) -> str:
        """C text of element 0 of a buffer."""
        return f"*({element_type(self.buffers[name].dtype)} *)({self.pointers[name]})"

    def _comment(self, origin: str) -> None:
        """Node names come from the model file: keep what cannot end a comment or a line."""
        plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._:+-") else "_" for c in origin)
        self.writer.line(f"/* {plain[:120]} */")
