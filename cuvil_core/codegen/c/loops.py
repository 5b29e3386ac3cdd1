"""Loops of a statement's parallel axes: tiles, register tiles, tails, and the flattened loops that threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from cuvil_core.codegen.c.dims import ZERO, Symbols, dim_text
from cuvil_core.codegen.c.types import variable
from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Schedule, Tail


class Writer:
    """Lines of C with indentation."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def below(self) -> Writer:
        """A writer of lines that will stand one level deeper."""
        return Writer(self._depth + 1)

    def line(self, text: str) -> None:
        """Adds one line."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """A braced block with a head such as `for (…)`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True, slots=True)
class Range:
    """Values begin … end-1 of an axis, as C expressions, and the lengths it can have when they are known."""

    begin: str
    end: str
    lengths: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Level:
    """One name of a schedule's order."""

    axis: str
    tile: int | None
    """Elements a turn for the outer loop of a tiled axis, else None."""
    step: int
    """Elements a turn: those of the tile, or of the register tile."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the loops stand when they reach the body."""

    axes: dict[str, str]
    """Axis → C expression."""
    counts: dict[str, int]
    """Points of each register-tiled axis; vectors for the vector axis."""
    partial: str | None = None
    """Valid lanes of the only vector, None for all."""


Body = Callable[[Turn], None]


@dataclass(frozen=True, slots=True)
class Nest:
    """The parallel loops of one statement, or of a kernel's outer axes."""

    writer: Writer
    schedule: Schedule
    extents: dict[str, Dim]
    symbols: Symbols
    levels: tuple[Level, ...]
    body: Body
    ranges: dict[str, Range] = field(default_factory=dict)

    def emit(self, turn: Turn, position: int = 0) -> None:
        """Writes the loops from a level inwards."""
        if position == len(self.levels):
            self.body(turn)
            return
        level = self.levels[position]
        if level.tile is not None:
            self._emit_tiles(level, turn, position)
        else:
            self._emit_axis(level, turn, position)

    def _range(self, axis: str) -> Range:
        return self.ranges.get(axis) or full_range(self.extents[axis], self.symbols)

    def _within(self, axis: str, narrowed: Range) -> Nest:
        return replace(self, ranges={**self.ranges, axis: narrowed})

    def _emit_tiles(self, level: Level, turn: Turn, position: int) -> None:
        whole, tile = self._range(level.axis), level.step
        start = f"{variable(level.axis)}_tile{position}"
        narrowed = Range(start, f"{start}_end", tile_lengths(whole.lengths, tile))
        with self.writer.block(f"for (int64_t {start} = {whole.begin}; {start} < {whole.end}; {start} += {tile})"):
            self.writer.line(f"const int64_t {start}_end = cuvil_min({start} + {tile}, {whole.end});")
            self._within(level.axis, narrowed).emit(turn, position + 1)

    def _emit_axis(self, level: Level, turn: Turn, position: int) -> None:
        span = self._range(level.axis)
        if span.lengths is None:
            self._emit_unknown(level, span, turn, position)
            return
        last = len(span.lengths) - 1
        for number, length in enumerate(span.lengths):
            if last == 0:
                self._emit_known(level, span.begin, length, turn, position)
                continue
            head = "else" if number == last else f"if ({span.end} - {span.begin} == {length})"
            with self.writer.block(head):
                self._emit_known(level, span.begin, length, turn, position)

    def _emit_known(self, level: Level, begin: str, length: int, turn: Turn, position: int) -> None:
        """Full register tiles, then one smaller tile, then a partial vector; or tiles of which the last overlaps."""
        lanes = self._lanes(level.axis)
        whole, rest = divmod(length, level.step)
        if whole and 4 * rest >= 3 * level.step and self.schedule.tail is Tail.OVERLAP:
            self._emit_overlapping(level, begin, f"{begin} + {length}", f"{begin} + {length}", turn, position)
            return
        if whole == 1:
            self._inner(level, begin, level.step // lanes, None, turn, position)
        elif whole:
            name = variable(level.axis)
            end = f"{begin} + {whole * level.step}"
            with self.writer.block(f"for (int64_t {name} = {begin}; {name} < {end}; {name} += {level.step})"):
                self._inner(level, name, level.step // lanes, None, turn, position)
        done = whole * level.step
        if rest // lanes:
            self._inner(level, _plus(begin, done), rest // lanes, None, turn, position)
            done += rest // lanes * lanes
        if rest % lanes:
            self._inner(level, _plus(begin, done), 1, str(rest % lanes), turn, position)

    def _emit_overlapping(self, level: Level, begin: str, stop: str, end: str, turn: Turn, position: int) -> None:
        """Full tiles that start below `stop`; what would pass `end` begins earlier."""
        name = variable(level.axis)
        head = f"for (int64_t {name}_next = {begin}; {name}_next < {stop}; {name}_next += {level.step})"
        with self.writer.block(head):
            self.writer.line(f"const int64_t {name} = cuvil_min({name}_next, {end} - {level.step});")
            self._inner(level, name, level.step // self._lanes(level.axis), None, turn, position)

    def _emit_unknown(self, level: Level, span: Range, turn: Turn, position: int) -> None:
        name, lanes = variable(level.axis), self._lanes(level.axis)
        if level.step == 1:
            with self.writer.block(f"for (int64_t {name} = {span.begin}; {name} < {span.end}; ++{name})"):
                self._inner(level, name, 1, None, turn, position)
            return
        with self.writer.block():
            self.writer.line(f"int64_t {name} = {span.begin};")
            most = level.step // lanes
            if self.schedule.tail is Tail.OVERLAP and most > 1:
                most //= 2
                self._emit_full_tiles(level, span, most * lanes, turn, position)
            self._emit_shrinking(level, span, most, turn, position)

    def _emit_full_tiles(self, level: Level, span: Range, half: int, turn: Turn, position: int) -> None:
        """Full tiles where one fits, a rest above half a tile among them; leaves the axis at the last half tile."""
        name = variable(level.axis)
        with self.writer.block(f"if ({span.end} - {span.begin} >= {level.step})"):
            self.writer.line(f"const int64_t {name}_rest = ({span.end} - {span.begin}) % {level.step};")
            self.writer.line(f"const int64_t {name}_stop = {span.end} - ({name}_rest <= {half} ? {name}_rest : 0);")
            self._emit_overlapping(level, span.begin, f"{name}_stop", span.end, turn, position)
            self.writer.line(f"{name} = {name}_stop == {span.end} ? {span.end} : {span.end} - {half};")

    def _emit_shrinking(self, level: Level, span: Range, most: int, turn: Turn, position: int) -> None:
        """Tiles of `most` points while they fit, then half as many, down to one, then a partial vector."""
        name, lanes = variable(level.axis), self._lanes(level.axis)
        count = most
        while count:
            step = count * lanes
            with self.writer.block(f"for (; {name} + {step} <= {span.end}; {name} += {step})"):
                self._inner(level, name, count, None, turn, position)
            count //= 2
        if lanes > 1:
            with self.writer.block(f"if ({name} < {span.end})"):
                self._inner(level, name, 1, f"({span.end} - {name})", turn, position)

    def _inner(self, level: Level, value: str, count: int, partial: str | None, turn: Turn, position: int) -> None:
        axes = {**turn.axes, level.axis: value if value.isidentifier() or value == ZERO else f"({value})"}
        is_vector = level.axis == self.schedule.vector
        inner = Turn(axes, {**turn.counts, level.axis: count}, partial if is_vector else turn.partial)
        self.emit(inner, position + 1)

    def _lanes(self, axis: str) -> int:
        return self.schedule.width if axis == self.schedule.vector else 1


def levels_of(schedule: Schedule, parallel_axes: frozenset[str]) -> tuple[Level, ...]:
    """The levels of the parallel axes, in order."""
    seen: set[str] = set()
    levels = []
    for axis in schedule.order:
        if axis not in parallel_axes:
            continue
        tile = schedule.tile(axis) if axis not in seen else None
        seen.add(axis)
        lanes = schedule.width if axis == schedule.vector else 1
        levels.append(Level(axis, tile, tile or schedule.registers_of(axis) * lanes))
    return tuple(levels)


def full_range(extent: Dim, symbols: Symbols) -> Range:
    """All values of an axis."""
    known = extent.constant
    return Range(ZERO, dim_text(extent, symbols), None if known is None else (known,))


def tile_lengths(lengths: tuple[int, ...] | None, tile: int) -> tuple[int, ...] | None:
    """The lengths that tiles of ranges of the given lengths have."""
    if lengths is None:
        return None
    found = {min(tile, length) for length in lengths if length} | {length % tile for length in lengths}
    return tuple(sorted((length for length in found if length), reverse=True)) or (0,)


def _plus(begin: str, distance: int) -> str:
    return begin if distance == 0 else f"{begin} + {distance}"
