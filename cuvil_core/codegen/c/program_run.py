"""`cuvil_run`: a program's statements as C; pointers of buffers that change places are variables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.codegen.c.loops import Writer
from cuvil_core.codegen.c.program_sizes import dims_of, nonsense
from cuvil_core.codegen.c.types import element_type
from cuvil_core.program import (
    Assert,
    Bind,
    Branch,
    Buffer,
    Call,
    Carried,
    Carry,
    Launch,
    Lifetime,
    Loop,
    Port,
    Program,
    Role,
    Statement,
    blocks,
    due,
)

Tables = tuple[tuple[Lifetime, ...], ...]
"""The temporaries of the arena, then those of each bind's block."""
NO_MEMORY = -1
"""What a call answers where its host gives no memory."""


def run_text(program: Program, symbols: Mapping[str, str]) -> str:
    """The function's definition; `symbols` gives C expressions of the program's symbols."""
    writer = Writer()
    writer.line("int32_t cuvil_run(const int64_t *given, const void *const *inputs, void *const *targets,")
    writer.line("                  const void *weights, void *arena, cuvil_pool *pool, const struct cuvil_host *host)")
    with writer.block():
        writer.line("(void)given, (void)inputs, (void)targets, (void)weights, (void)arena, (void)host;")
        tables, arrivals = blocks(program), program.arrivals
        _tables(program, tables, writer)
        writer.line("int64_t offsets0[PLACES0];")
        writer.line("recall_offsets(symbols, offsets0);")
        pointers = _pointers(program, tables)
        for name in (name for pair in program.swaps for name in (pair.current, pair.following)):
            if pointers[name] != _moving(name):
                early = due(arrivals, (program.buffer(name).size,)) == 0
                writer.line(f"void *{_moving(name)} = {pointers[name] if early else '0'};")
                pointers[name] = _moving(name)
        writer.line("if (pool) pool->enter(pool);")
        _Statements(program, symbols, pointers, writer, tables).emit(program.statements)
        writer.line("if (pool) pool->leave(pool);")
        writer.line("return 0;")
    return writer.text


def _tables(program: Program, tables: Tables, writer: Writer) -> None:
    """What binds fill in the course of a call has room of its own; else the caller's arrays serve."""
    if not program.binds:
        writer.line("const int64_t *const symbols = given;")
        writer.line("void *const *const outputs = targets;")
        return
    writer.line(f"int64_t symbols[{len(program.symbols)}] = {{0}};")
    writer.line("for (int32_t at = 0; at < SYMBOLS; ++at) symbols[at] = given[at];")
    count = len(program.outputs)
    writer.line(f"void *outputs[{count}];")
    writer.line(f"for (int32_t at = 0; at < {count}; ++at) outputs[at] = targets[at];")
    for when, lives in enumerate(tables):
        if lives and when:
            writer.line(f"void *block{when} = 0;")
            writer.line(f"int64_t offsets{when}[PLACES{when}];")


def _moving(name: str) -> str:
    return f"at_{name}"


def _pointers(program: Program, tables: Tables) -> dict[str, str]:
    """Buffer name → C expression of its address."""
    places: dict[str, tuple[int, int]] = {}
    for when, lives in enumerate(tables):
        places |= {life.buffer.name: (when, at) for at, life in enumerate(lives)}
    return {one.name: _address(one, places) for one in program.buffers}


def _address(buffer: Buffer, places: Mapping[str, tuple[int, int]]) -> str:
    match buffer.role:
        case Role.INPUT:
            return f"(void *)inputs[{buffer.position}]"
        case Role.OUTPUT:
            return f"outputs[{buffer.position}]"
        case Role.WEIGHT:
            return f"(char *)weights + INT64_C({buffer.position})"
        case Role.TEMPORARY:
            if buffer.name not in places:
                return "arena"
            when, at = places[buffer.name]
            return f"(char *){'arena' if when == 0 else f'block{when}'} + offsets{when}[{at}]"


@dataclass(slots=True)
class _Statements:
    """What the lines of a function's statements share: addresses and running numbers."""

    program: Program
    symbols: Mapping[str, str]
    pointers: Mapping[str, str]
    writer: Writer
    tables: Tables
    buffers: dict[str, Buffer] = field(init=False)
    takes: dict[str, tuple[str, ...]] = field(init=False)
    """Kernel → the symbols that it takes."""
    launches: Iterator[int] = field(default_factory=count)
    asserts: Iterator[int] = field(default_factory=lambda: count(1))
    binds: Iterator[int] = field(default_factory=count)
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
                    self._leave(f"!{self._element(one.condition)}", next(self.asserts))
                case Call():
                    self._call(one)
                case Bind():
                    self._bind(one)
                case Branch():
                    self._branch(one)
                case Loop():
                    self._loop(one)

    def _call(self, call: Call) -> None:
        self._comment(call.origin)
        with self.writer.block():
            self.writer.line(
                f"void *const buffers[] = {{{', '.join(self.pointers[name] for name in call.arguments)}}};"
            )
            extents = ", ".join(dim_text(extent, self.symbols) for extent in call.extents) or "0"
            self.writer.line(f"const int64_t extents[] = {{{extents}}};")
            self.writer.line(f"{call.function}(buffers, extents);")

    def _leave(self, condition: str, code: int) -> None:
        """End the call where the condition holds."""
        with self.writer.block(f"if ({condition})"):
            self.writer.line("if (pool) pool->leave(pool);")
            self.writer.line(f"return {code};")

    def _bind(self, bind: Bind) -> None:
        """The symbol, then all that waited for it: checks, outputs, the block of temporaries."""
        program, position, arrivals = self.program, next(self.binds), self.program.arrivals
        guards = len(program.asserts) + 1
        sizes = guards + len(program.guards)
        self._comment(bind.origin)
        self.writer.line(f"{self.symbols[bind.symbol]} = {self._element(bind.source)};")
        self._leave(f"{self.symbols[bind.symbol]} < 0", sizes + 1 + position)
        for condition in nonsense(dims_of(program, position + 1), self.symbols):
            self._leave(condition, sizes)
        for at, guard in enumerate(program.guards):
            if due(arrivals, (guard.left, guard.right)) == position + 1:
                left, right = dim_text(guard.left, self.symbols), dim_text(guard.right, self.symbols)
                self._leave(f"!({left} {guard.relation.value} {right})", guards + at)
        for at, port in enumerate(program.outputs):
            if due(arrivals, port.type.shape) == position + 1:
                self._output(at, port)
        self._block(position, sizes)

    def _output(self, at: int, port: Port) -> None:
        with self.writer.block():
            extents = ", ".join(dim_text(extent, self.symbols) for extent in port.type.shape) or "0"
            self.writer.line(f"const int64_t extents[] = {{{extents}}};")
            self.writer.line(f"outputs[{at}] = host->output(host->context, {at}, extents);")
        self._leave(f"!outputs[{at}]", NO_MEMORY)

    def _block(self, position: int, code: int) -> None:
        when = position + 1
        lives = self.tables[when]
        if not lives:
            return
        with self.writer.block():
            self.writer.line(f"int64_t sizes[PLACES{when}];")
            self.writer.line(f"sizes{when}(symbols, sizes);")
            self.writer.line(f"const int64_t bytes = place_buffers(lives{when}, sizes, BUFFERS{when}, offsets{when});")
            self._leave("bytes > LARGEST", code)
            self.writer.line(f"block{when} = host->memory(host->context, {position}, bytes);")
        self._leave(f"!block{when}", NO_MEMORY)
        for at, life in enumerate(lives):
            if self.pointers[life.buffer.name] == _moving(life.buffer.name):
                self.writer.line(f"{_moving(life.buffer.name)} = (char *)block{when} + offsets{when}[{at}];")

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
