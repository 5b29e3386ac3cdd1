"""Where temporaries lie in the arena: order and interference are fixed at compile time, offsets follow the symbols.

A buffer lives from the first statement that touches it to the last. Buffers whose lives overlap never share a byte.
`offsets` is the greedy best fit of Pisarchyk & Lee (arXiv 2001.03288); the difference: the order is chosen once, at
nominal sizes, so that the emitted program needs no sort and equal symbols give equal offsets on every machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuvil_core.program.types import Buffer, Program, Role

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
    """Round bytes up to ALIGNMENT; an empty buffer takes none."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def lifetimes(program: Program, bounds: Mapping[str, tuple[int, int]] | None = None) -> tuple[Lifetime, ...]:
    """Give the temporaries in the order in which the arena places them: largest nominal size first."""
    touched: dict[str, list[int]] = {}
    for position, statement in enumerate(program.statements):
        for name in statement.arguments:
            touched.setdefault(name, []).append(position)
    limits = bounds or {}
    nominal = {name: min(limits.get(name, (1, NOMINAL))[1], 4 * NOMINAL) for name in program.symbols}
    lives = [
        Lifetime(one, min(touched[one.name]), max(touched[one.name]))
        for one in program.buffers
        if one.role is Role.TEMPORARY and one.name in touched
    ]
    return tuple(sorted(lives, key=lambda life: (-life.buffer.bytes.evaluate(nominal), life.first, life.buffer.name)))


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
