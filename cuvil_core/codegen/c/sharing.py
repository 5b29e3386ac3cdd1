"""The leading loops of a kernel, flattened into units that threads share."""

from __future__ import annotations

from dataclasses import replace

from cuvil_core.codegen.c.dims import Symbols, dim_text, number_text
from cuvil_core.codegen.c.loops import Level, Nest, Range, Turn, full_range, tile_lengths
from cuvil_core.codegen.c.types import variable
from cuvil_core.ir import Dim


def shared_turns(levels: tuple[Level, ...], extents: dict[str, Dim], symbols: Symbols) -> list[str]:
    """C expressions of how many turns each shared level takes; none is negative."""
    return [_turns(levels, position, extents, symbols) for position in range(len(levels))]


def enter_shared(nest: Nest, shared: int, turn: Turn) -> None:
    """Inside the loop over `unit`: decodes the shared levels and writes the loops within them."""
    levels = nest.levels[:shared]
    turns = shared_turns(levels, nest.extents, nest.symbols)
    _decode(nest, turns)
    ranges = dict(nest.ranges)
    for position in range(shared):
        ranges[levels[position].axis] = _narrow(nest, levels, position, turns[position], ranges)
    inner = tuple(level for position, level in enumerate(nest.levels) if position >= shared or level.tile is None)
    replace(nest, ranges=ranges, levels=inner).emit(turn)


def _turns(levels: tuple[Level, ...], position: int, extents: dict[str, Dim], symbols: Symbols) -> str:
    level = levels[position]
    if _is_repeated(levels, position):
        # The inner loop of a tile that is itself shared: as many turns as a full tile has, some of them empty.
        outer = next(other.step for other in levels if other.axis == level.axis)
        return number_text(-(-outer // level.step))
    known = extents[level.axis].constant
    if known is not None:
        return number_text(-(-known // level.step))
    text = dim_text(extents[level.axis], symbols)
    return f"cuvil_max({text if level.step == 1 else f'cuvil_ceil({text}, {level.step})'}, 0)"


def _is_repeated(levels: tuple[Level, ...], position: int) -> bool:
    """True where an outer shared level has cut the same axis already."""
    return levels[position].axis in {other.axis for other in levels[:position]}


def _decode(nest: Nest, turns: list[str]) -> None:
    """`turn0` … `turnN` from `unit`, the last level fastest; levels of one turn need no division."""
    several = [position for position, count in enumerate(turns) if count != number_text(1)]
    if not several:
        nest.writer.line("(void)unit;")
        return
    nest.writer.line("int64_t rest = unit;")
    for position in reversed(several[1:]):
        nest.writer.line(f"const int64_t turn{position} = rest % {turns[position]};")
        nest.writer.line(f"rest /= {turns[position]};")
    nest.writer.line(f"const int64_t turn{several[0]} = rest;")


def _narrow(nest: Nest, levels: tuple[Level, ...], position: int, turns: str, ranges: dict[str, Range]) -> Range:
    """What a turn covers of its axis."""
    level = levels[position]
    whole = ranges.get(level.axis) or full_range(nest.extents[level.axis], nest.symbols)
    if turns == number_text(1):
        return whole
    begin, end = f"{variable(level.axis)}_begin{position}", f"{variable(level.axis)}_end{position}"
    start = f"turn{position} * {level.step}" if level.step > 1 else f"turn{position}"
    nest.writer.line(f"const int64_t {begin} = {whole.begin} + {start};")
    if _is_repeated(levels, position):
        nest.writer.line(f"if ({begin} >= {whole.end}) continue;")
    if level.step == 1:
        return Range(begin, f"({begin} + 1)", (1,))
    nest.writer.line(f"const int64_t {end} = cuvil_min({begin} + {level.step}, {whole.end});")
    return Range(begin, end, tile_lengths(whole.lengths, level.step))
