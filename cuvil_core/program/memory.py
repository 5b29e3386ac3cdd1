"""Where temporaries lie in the arena: order and interference are fixed at compile time, offsets follow the symbols.

Buffers whose sizes wait for a bind lie in a block of their own, which is had when the bind has run.
A buffer lives from the first statement that touches it to the last; one that a loop and something outside of it touch
lives as long as the loop, since the next turn may need it. Buffers whose lives overlap never share a byte.
`offsets` is the greedy best fit of Pisarchyk & Lee (arXiv 2001.03288); the difference: the order is chosen once, at
nominal sizes, so that the emitted program needs no sort and equal symbols give equal offsets on every machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuvil_core.program.types import Assert, Bind, Branch, Buffer, Call, Launch, Loop, Program, Role, Statement, due

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

LARGEST = 1 << 46
"""Bytes beyond which a size is nonsense: 64 TiB."""

NOMINAL = 64
"""Extent that an unbounded symbol is given when buffers are put in order."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A temporary and the inclusive range of statements in which its bytes are its own."""

    buffer: Buffer
    first: int
    last: int

    def meets(self, other: "Lifetime") -> bool:
        """True where both hold bytes at the same time."""
        return self.first <= other.last and other.first <= self.last


def rounded(size: int) -> int:
    """Round bytes up to ALIGNMENT; an empty buffer takes as much, since gathers clamp their index to its element 0."""
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


def lifetimes(program: Program, bounds: Mapping[str, tuple[int, int]] | None = None) -> tuple[Lifetime, ...]:
    """Give the temporaries of the arena in the order in which they are placed: largest nominal size first."""
    return blocks(program, bounds)[0]


def blocks(program: Program, bounds: Mapping[str, tuple[int, int]] | None = None) -> tuple[tuple[Lifetime, ...], ...]:
    """Give the temporaries of the arena, then those of the block of each bind, each in the order of placing."""
    spans, arrivals = _Spans.of(program), program.arrivals
    limits = bounds or {}
    nominal = {name: min(limits.get(name, (1, NOMINAL))[1], 4 * NOMINAL) for name in program.symbols}
    found: list[list[Lifetime]] = [[] for _ in range(len(arrivals) + 1)]
    for one in program.buffers:
        if one.role is Role.TEMPORARY and one.name in spans.of_buffer:
            found[due(arrivals, (one.size,))].append(Lifetime(one, *spans.of_buffer[one.name]))

    def order(life: Lifetime) -> tuple[int, int, str]:
        return -life.buffer.bytes.evaluate(nominal), life.first, life.buffer.name

    return tuple(tuple(sorted(lives, key=order)) for lives in found)


@dataclass(slots=True)
class _Spans:
    """First and last place at which each buffer's bytes are its own; a loop takes a place before and one after it."""

    of_buffer: dict[str, tuple[int, int]]
    loops: list[tuple[int, int]]
    """Inner ones first."""
    end: int = 0

    @staticmethod
    def of(program: Program) -> "_Spans":
        spans = _Spans({}, [])
        spans._walk(program.statements)
        before: dict[str, tuple[int, int]] = {}
        while before != spans.of_buffer:
            before = dict(spans.of_buffer)
            spans._cover_loops()
            for pair in program.swaps:  # either may hold what the other's name stands for
                both = spans._joined(pair.current, pair.following)
                spans.of_buffer |= dict.fromkeys((pair.current, pair.following), both)
        return spans

    def _walk(self, statements: Sequence[Statement]) -> None:
        for one in statements:
            begin = self.end
            self.end += 1
            match one:
                case Launch() | Call():
                    self._touch(begin, *one.arguments)
                case Assert():
                    self._touch(begin, one.condition)
                case Bind():
                    self._touch(begin, one.source)
                case Branch():
                    self._touch(begin, one.condition)
                    self._walk((*one.then, *one.otherwise))
                case Loop():
                    self._loop(one, begin)

    def _loop(self, loop: Loop, begin: int) -> None:
        self._walk(loop.body)
        held = [name for pair in loop.carried for name in (pair.current, pair.following)]
        held += [name for name in (loop.condition, loop.counter) if name is not None]
        self._touch(begin, *held, *([loop.turns] if isinstance(loop.turns, str) else []))
        self._touch(self.end, *held)
        self.loops.append((begin, self.end))
        self.end += 1

    def _touch(self, place: int, *names: str) -> None:
        for name in names:
            first, last = self.of_buffer.get(name, (place, place))
            self.of_buffer[name] = min(first, place), max(last, place)

    def _cover_loops(self) -> None:
        for begin, end in self.loops:
            for name, (first, last) in self.of_buffer.items():
                inside = begin <= first and last <= end
                if not inside and first <= end and begin <= last:
                    self.of_buffer[name] = min(first, begin), max(last, end)

    def _joined(self, one: str, other: str) -> tuple[int, int]:
        (a, b), (c, d) = self.of_buffer[one], self.of_buffer[other]
        return min(a, c), max(b, d)


def offsets(lives: Sequence[Lifetime], sizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Give the byte offset of each buffer and the bytes of the arena; `sizes` are rounded bytes, one a buffer.

    Best fit: the smallest gap between placed neighbours of overlapping life that holds the buffer, lowest first on a
    tie; after all of them when no gap does. Cost O(n²) for n buffers.
    """
    placed: list[int] = []
    by_offset: list[int] = []
    arena = 0
    for index, size in enumerate(sizes):
        best, best_gap, end = -1, -1, 0
        for other in by_offset:
            if not lives[index].meets(lives[other]):
                continue
            gap = placed[other] - end
            if gap >= size and (best < 0 or gap < best_gap):
                best, best_gap = end, gap
            end = max(end, placed[other] + sizes[other])
        offset = best if best >= 0 else end
        placed.append(offset)
        at = next((k for k, other in enumerate(by_offset) if placed[other] > offset), len(by_offset))
        by_offset.insert(at, index)
        arena = max(arena, offset + size)
    return tuple(placed), arena
