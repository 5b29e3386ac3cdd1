"""How a value lies in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuvil_core.ir import Dim

LANES = 16
"""Channels a block: one AVX-512 register, two of AVX2, four of NEON, so that all share packed weights."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Row-major, or blocked: axis 1 split by LANES, physical `[N][ceil(C/16)][spatial…][16]`, lanes beyond C zero.

    Spatial axes (2 and up) may carry a halo: borders of zeros that a padded convolution reads.
    """

    blocked: bool = False
    halo: tuple[tuple[int, int], ...] = ()
    """(before, after) a spatial axis; empty when there is none."""

    def physical(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """Extents in memory, outermost first."""
        halo = self.halo or ((0, 0),) * max(0, len(shape) - 2)
        spatial = tuple(extent + low + high for extent, (low, high) in zip(shape[2:], halo, strict=True))
        if not self.blocked:
            return (*shape[:2], *spatial)
        return (shape[0], shape[1].ceil_div(LANES), *spatial, Dim.of(LANES))

    def with_halo(self, halo: tuple[tuple[int, int], ...]) -> "Layout":
        """The same order in memory with another halo; all zeros is none."""
        return Layout(self.blocked, halo if any(side for pair in halo for side in pair) else ())

    def __str__(self) -> str:
        name = "blocked" if self.blocked else "plain"
        return name + "".join(f"+{low}:{high}" for low, high in self.halo)


HALF = LANES // 2
"""Channels that still copy as vectors from block to block."""
PLAIN = Layout()
BLOCKED = Layout(blocked=True)


def is_aligned(channels: Dim) -> bool:
    """True where every block of channels is full."""
    return channels.exact_div(LANES) is not None


def starts_of(shapes: Sequence[tuple[Dim, ...]], axis: int) -> Iterator[Dim]:
    """Where each operand of a concatenation begins along its axis."""
    start = Dim.of(0)
    for shape in shapes:
        yield start
        start = start + shape[axis]


def covering(*halos: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The least halo that holds all of these."""
    given = [halo for halo in halos if halo]
    if not given:
        return ()
    return tuple(
        (max(halo[axis][0] for halo in given), max(halo[axis][1] for halo in given)) for axis in range(len(given[0]))
    )
