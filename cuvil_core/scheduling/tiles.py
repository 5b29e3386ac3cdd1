"""Register tiles of contractions, by a small cost model.

One step of the reduction for a tile of t points by b blocks of 16 channels takes

    max(t·b·h / 2,  (t + b·h) / 2,  4)  cycles        h = registers a block (1 on AVX-512, 2 on AVX2)

two FMAs a cycle, two loads a cycle (t broadcasts, b·h vectors; the broadcasts of a single block fold into the FMAs),
and the latency of a chain of FMAs. A row of w points is w // t tiles and one smaller tile for the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cuvil_core.ir import Dim
from cuvil_core.scheduling.machine import Isa, Machine

LATENCY = 4
"""Cycles of an FMA that waits for the one before."""
TILE_START = 0.25
"""Cycles a step that a tile costs beyond the model (loop, address, epilogue), so that equal costs favour few tiles."""
PANELS = (1, 2, 3, 4, 6)
SYMBOLIC_POINTS = 14
"""Row for which tiles are chosen along an extent that is not known: image widths are 7·2^k as often as 5·2^k, and rests
of up to half a tile take a tile of that size."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Points × blocks of 16 channels held in accumulators."""

    points: int
    panels: int


def accumulators(machine: Machine) -> int:
    """Registers for sums, the rest being weights and broadcasts."""
    return 28 if machine.isa is Isa.AVX512 else 12


def step_cost(points: int, panels: int, machine: Machine) -> float:
    """Cycles of one step of the reduction."""
    vectors = panels * machine.halves
    loads = points + vectors if vectors > 1 else points + 1
    return max(points * vectors / 2, loads / 2, LATENCY) + TILE_START


def shared_panels(points: Dim, blocks: int) -> int:
    """Blocks of a packed panel: the same for every instruction set, so that variants share their weights."""
    return _best(points, blocks, Machine.of(Isa.AVX512)).panels


def best_tile(points: Dim, panels: int, machine: Machine) -> RegisterTile:
    """The cheapest tile for rows of `points` and a packed panel of `panels` blocks, some or all of them at once."""
    return _best(points, panels, machine)


def _best(points: Dim, blocks: int, machine: Machine) -> RegisterTile:
    panels = tuple(count for count in PANELS if blocks % count == 0)
    row = points.constant if points.constant is not None else SYMBOLIC_POINTS
    return min(_candidates(max(1, row), panels, machine), key=lambda tile: _cost(tile, max(1, row), machine))


def _candidates(points: int, panels: tuple[int, ...], machine: Machine) -> Iterator[RegisterTile]:
    for count in panels:
        vectors = count * machine.halves
        # All sums, a step's weights and one broadcast at once: one register too few and every step spills.
        room = min(accumulators(machine), machine.registers - vectors - 1)
        if vectors > room:
            continue
        most = room // vectors
        for tile in range(min(most, max(1, points)), 0, -1):
            yield RegisterTile(tile, count)


def _cost(tile: RegisterTile, points: int, machine: Machine) -> float:
    """Cycles of one step of the reduction for a row, a block of channels."""
    full, rest = divmod(points, tile.points)
    cost = full * step_cost(tile.points, tile.panels, machine)
    cost += step_cost(rest, tile.panels, machine) if rest else 0
    return cost / tile.panels
