"""How a kernel runs, as data: loop order, tiles, vectors, registers, threads. A schedule never changes the meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Tail(Enum):
    """What a register tile does where its count does not divide the extent."""

    SMALLER = "smaller"
    """Smaller compile-time tiles for the rest."""
    OVERLAP = "overlap"
    """The last tile begins earlier and computes some points twice; legal only when no store feeds a load of the kernel
    and no buffer is shared with another. An extent below the count takes smaller tiles."""


class Microkernel(Enum):
    """The instruction family of a Contraction's inner product."""

    FMA = "fma"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The loops of one statement (or, for a kernel with outer axes, of the outer axes, with one `inner` a statement).

    Example, 3×3 convolution, blocked, two panels of 16 channels by 14 pixels in registers:
    `Schedule(order=("n", "op", "oh", "oj", "ow", "oc", "ib", "kh", "kw", "ic"), parallel=3, vector="oc",
    registers=(("oj", 2), ("ow", 14)))`.
    """

    order: tuple[str, ...]
    """Axes, outermost loop first; parallel axes come before reduce axes. A name listed twice is a tiled axis: its first
    place is the loop over tiles, its second the loop within one."""
    parallel: int = 0
    """How many leading loops are flattened and split into even contiguous shares, one a thread."""
    tiles: tuple[tuple[str, int], ...] = ()
    """(axis, elements a tile) for each axis listed twice."""
    vector: str | None = None
    """The axis whose neighbours lie in the lanes of a vector, wherever it stands in the order. None: scalar code.
    Loads whose step along it is 1 are vector loads, 0 broadcasts, others go lane by lane. A reduce axis is legal too:
    lanes are joined at the end in a fixed order."""
    width: int = 16
    """Lanes: 8 or 16. On AVX2 a float32 vector of 16 takes two registers."""
    registers: tuple[tuple[str, int], ...] = ()
    """(axis, count): points of parallel axes computed at once, in vectors for the vector axis; the product is the
    number of accumulators (AVX-512 has 32 registers: at most 28 or so; AVX2 16, in halves: 12 of width 8)."""
    unroll: tuple[tuple[str, int], ...] = ()
    """(reduce axis, times) for the innermost loops; with a vector reduce axis the number of partial accumulators."""
    tail: Tail = Tail.SMALLER
    flush_denormals: bool = False
    """Treat denormals as zero while the kernel runs: Contractions, where they cost 100 cycles each and say nothing."""
    prefetch_right: int = 0
    """For Contractions: elements ahead at which vectors of the right operand are fetched into the second-level cache; 0
    for none. Weights that come from beyond it are read in order, but too fast for the hardware to see page ends."""
    microkernel: Microkernel = Microkernel.FMA
    inner: tuple[Schedule, ...] = ()
    """For a kernel with outer axes: the schedule of each statement, `parallel` 0."""

    def tile(self, axis: str) -> int | None:
        """Elements a tile of a tiled axis."""
        return dict(self.tiles).get(axis)

    def registers_of(self, axis: str) -> int:
        """Register count of an axis, 1 by default."""
        return dict(self.registers).get(axis, 1)

    def unroll_of(self, axis: str) -> int:
        """Unroll count of an axis, 1 by default."""
        return dict(self.unroll).get(axis, 1)
