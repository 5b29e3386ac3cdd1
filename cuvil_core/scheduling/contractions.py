"""Kernels and loops of convolutions and dots.

Axis names, shared with lowering: n image, g group, op panel of output channels, oj block in the panel, oc lane,
o0 o1 … output position, p position in the flattened image, ib block of input channels, ic lane, i input channel,
k0 k1 … window; for dots b0 … batch, m0 … rows, np panel of columns, nj block, nc lane, r0 … reduced.
"""

import math
from dataclasses import dataclass

from cuvil_core.ir import Dim, Op, product
from cuvil_core.kernel_ir import Schedule, Tail
from cuvil_core.scheduling.decisions import Choice, Strategy
from cuvil_core.scheduling.layout import BLOCKED, LANES, PLAIN, Layout
from cuvil_core.scheduling.loops import nominal
from cuvil_core.scheduling.machine import Machine
from cuvil_core.scheduling.tiles import SYMBOLIC_POINTS, RegisterTile, best_tile, shared_panels

WIDE = 8
"""Blocks of columns from which one block more does not matter."""
PREFETCH = 4096
"""Weights fetched ahead, 16 KiB: measured, a tenth of ResNet-18's time, whose weights exceed the second-level cache."""
STRIP_BYTES = 128 << 10
"""Rows of the left operand that are worked off before the next panel: they stay in the second-level cache."""


@dataclass(frozen=True, slots=True)
class ConvShape:
    """A convolution's extents, read off the op."""

    op: Op
    channels: Dim
    outputs: Dim
    groups: int
    window: tuple[int, ...]
    image: tuple[Dim, ...]
    """Output extents."""

    @staticmethod
    def of(op: Op) -> "ConvShape":
        """Read the conv primitive."""
        x, w = op.operands
        window = tuple(extent.constant or 1 for extent in w.shape[2:])
        return ConvShape(op, x.shape[1], w.shape[0], op.integer("groups"), window, op.result.shape[2:])

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Zeros wanted around the (stretched) input."""
        pads, rank = self.op.integers("pads"), len(self.window)
        return tuple((pads[axis], pads[rank + axis]) for axis in range(rank))

    @property
    def stretched(self) -> bool:
        """True where zeros lie between the input's elements."""
        return any(step != 1 for step in self.op.integers("base_dilations"))

    @property
    def pointwise(self) -> bool:
        """True where the output is a matrix product of the input as it lies."""
        plain = all(step == 1 for step in (*self.window, *self.op.integers("strides")))
        return plain and not any(self.op.integers("pads")) and not self.stretched and self.groups == 1


def conv_strategy(conv: ConvShape, input_blocked: bool) -> Choice:
    """The kernel, and how it wants its input; loops come once all layouts stand."""
    wanted = BLOCKED.with_halo(conv.halo)
    fits = conv.outputs.constant is not None and conv.channels.constant is not None
    if not fits:
        return Choice(Strategy.GENERAL, "channels are not fixed", PLAIN.with_halo(conv.halo))
    channels, outputs = conv.channels.constant or 0, conv.outputs.constant or 0
    if conv.groups == channels == outputs:
        return Choice(Strategy.DEPTHWISE, input_layout=wanted)
    if conv.groups > 1:
        whole = channels % (LANES * conv.groups) == 0 and outputs % (LANES * conv.groups) == 0
        if whole:
            return Choice(Strategy.GROUPED, input_layout=wanted)
        return Choice(Strategy.GENERAL, "groups are not whole blocks", PLAIN.with_halo(conv.halo))
    if channels < LANES and not input_blocked:
        return Choice(Strategy.STEM, input_layout=PLAIN.with_halo(conv.halo))
    if conv.pointwise:
        return Choice(Strategy.POINTWISE, input_layout=BLOCKED)
    return Choice(Strategy.DIRECT, input_layout=wanted)


def conv_schedule(conv: ConvShape, choice: Choice, input_layout: Layout, output: Layout, machine: Machine) -> Choice:
    """Fill in panels and loops; a pointwise kernel between halos runs row by row as DIRECT."""
    if choice.strategy is Strategy.POINTWISE and (input_layout.halo or output.halo):
        choice = Choice(Strategy.DIRECT, "rows keep their halo", choice.input_layout)
    parts = {
        Strategy.POINTWISE: _pointwise,
        Strategy.DEPTHWISE: _depthwise,
        Strategy.GENERAL: _general,
    }.get(choice.strategy, _direct)
    panels, schedule = parts(conv, choice.strategy, machine)
    return Choice(choice.strategy, choice.reason, choice.input_layout, panels, schedule)


def row_axis(conv: ConvShape) -> int:
    """The spatial axis along which register tiles lie: the innermost that is not 1."""
    rank = len(conv.window)
    return next((axis for axis in reversed(range(rank)) if conv.image[axis] != 1), rank - 1)


def _direct(conv: ConvShape, strategy: Strategy, machine: Machine) -> tuple[int, Schedule]:
    rank = len(conv.window)
    at = row_axis(conv)
    row = f"o{at}"
    blocks = _blocks(conv) // (conv.groups if strategy is Strategy.GROUPED else 1)
    panels = shared_panels(conv.image[at], blocks)
    tile = best_tile(conv.image[at], panels, machine)
    outer = ("n", "g", "op") if strategy is Strategy.GROUPED else ("n", "op")
    rows = tuple(f"o{axis}" for axis in range(rank) if axis != at)
    window = tuple(f"k{axis}" for axis in range(rank))
    reduced = ("i", *window) if strategy is Strategy.STEM else ("ib", *window, "ic")
    if any(conv.image[axis] != 1 for axis in range(rank) if axis != at):
        return panels, _tiled((*outer, *rows, "oj", row, "oc", *reduced), len(outer) + len(rows), row, tile)
    length = max(tile.points, 8 * tile.points)
    order = (*outer, *rows, row, "oj", row, "oc", *reduced)
    return panels, _tiled(order, len(outer) + len(rows) + 1, row, tile, ((row, length),))


def _pointwise(conv: ConvShape, strategy: Strategy, machine: Machine) -> tuple[int, Schedule]:
    pixels = product(conv.image)
    panels = shared_panels(pixels, _blocks(conv))
    tile = best_tile(pixels, panels, machine)
    if nominal(conv.outputs) > nominal(pixels):  # more weights than pixels: each panel is read once, for all pixels
        return panels, _tiled(("n", "op", "oj", "p", "oc", "ib", "ic"), 2, "p", tile)
    length = strip(nominal(pixels), nominal(conv.channels), tile, machine)
    order = ("n", "p", "op", "oj", "p", "oc", "ib", "ic")
    return panels, _tiled(order, 3, "p", tile, (("p", length),))


def strip(points: int, depth: int, tile: RegisterTile, machine: Machine) -> int:
    """Points of a strip: a multiple of the register tile, within the cache, and at least two strips a thread."""
    within = STRIP_BYTES // (4 * max(1, depth))
    shared = -(-points // (2 * machine.threads))
    return max(1, min(within, shared) // tile.points) * tile.points


def _depthwise(conv: ConvShape, strategy: Strategy, machine: Machine) -> tuple[int, Schedule]:
    rank, at = len(conv.window), row_axis(conv)
    rows = tuple(f"o{axis}" for axis in range(rank) if axis != at)
    width, most = conv.image[at].constant, 14 // machine.halves
    points = min(SYMBOLIC_POINTS, most)
    if width is not None:
        points = min(range(min(most, max(1, width)), 0, -1), key=lambda count: (-(-width // count), count))
    order = ("n", "op", *rows, f"o{at}", "oc", *(f"k{axis}" for axis in range(rank)))
    # Unrolled taps share their inputs, and up to nine weights stay in registers.
    unrolled = range(rank) if math.prod(conv.window) <= 9 else range(at, at + 1)
    return 1, Schedule(
        order,
        2 + len(rows),
        vector="oc",
        registers=((f"o{at}", points),),
        unroll=tuple((f"k{axis}", conv.window[axis]) for axis in unrolled),
        tail=Tail.OVERLAP,
        flush_denormals=True,
    )


def _general(conv: ConvShape, strategy: Strategy, machine: Machine) -> tuple[int, Schedule]:
    rank = len(conv.window)
    image = tuple(f"o{axis}" for axis in range(rank))
    order = ("n", "g", "o", *image, "i", *(f"k{axis}" for axis in range(rank)))
    return 1, Schedule(order, 3, vector=image[-1], flush_denormals=True)


def _blocks(conv: ConvShape) -> int:
    return -(-(conv.outputs.constant or 1) // LANES)


def _tiled(
    order: tuple[str, ...],
    parallel: int,
    row: str,
    tile: RegisterTile,
    tiles: tuple[tuple[str, int], ...] = (),
) -> Schedule:
    return Schedule(
        order,
        parallel,
        tiles,
        vector="oc",
        registers=(("oj", tile.panels), (row, tile.points)),
        tail=Tail.OVERLAP,
        flush_denormals=True,
        prefetch_right=PREFETCH,
    )


@dataclass(frozen=True, slots=True)
class DotShape:
    """A dot's extents, read off the op."""

    batch: tuple[Dim, ...]
    rows: tuple[Dim, ...]
    columns: tuple[Dim, ...]
    depth: tuple[Dim, ...]
    flat: bool
    """All rows are one axis: operand 0 is `[rows…, depth…]` in this order, without batch."""

    @staticmethod
    def of(op: Op) -> "DotShape":
        """Read the dot primitive."""
        a, b = op.operands
        batch, contract = op.integers("batch_a"), op.integers("contract_a")
        free = tuple(axis for axis in range(len(a.shape)) if axis not in (*batch, *contract))
        taken = (*op.integers("batch_b"), *op.integers("contract_b"))
        columns = tuple(extent for axis, extent in enumerate(b.shape) if axis not in taken)
        in_order = (*free, *contract) == tuple(range(len(a.shape)))
        return DotShape(
            tuple(a.shape[axis] for axis in batch),
            tuple(a.shape[axis] for axis in free),
            columns,
            tuple(a.shape[axis] for axis in contract),
            not batch and in_order and len(free) > 1,
        )


def dot_choice(op: Op, machine: Machine) -> Choice:
    """Packed right operand, register tile of rows × panels of columns."""
    dot = DotShape.of(op)
    rows = dot.rows if not dot.flat else (product(dot.rows),)
    columns, depth = product(dot.columns), product(dot.depth)
    count = rows[-1] if rows else Dim.of(1)
    blocks = -(-columns.constant // LANES) if columns.constant else max(1, -(-nominal(columns) // LANES))
    if not columns.constant or blocks > WIDE:
        blocks += blocks % 2  # a block of padding is cheaper than panels of one block
    panels = shared_panels(count, blocks)
    tile = best_tile(count, panels, machine)
    batch = tuple(f"b{axis}" for axis in range(len(dot.batch)))
    outer = tuple(f"m{axis}" for axis in range(len(rows) - 1))
    last = f"m{len(rows) - 1}"
    reduced = tuple(f"r{axis}" for axis in range(len(dot.depth)))
    length = strip(nominal(count), nominal(depth), tile, machine)
    order = (*batch, *outer, last, "np", "nj", last, "nc", *reduced)
    registers: tuple[tuple[str, int], ...] = (("nj", tile.panels), (last, tile.points))
    tiles: tuple[tuple[str, int], ...] = ((last, length),)
    if rows and nominal(columns) > nominal(count):  # more weights than rows: each panel is read once, for all rows
        order, tiles = (*batch, *outer, "np", "nj", last, "nc", *reduced), ()
    if not rows:
        order, registers, tiles = (*batch, "np", "nj", "nc", *reduced), (("nj", tile.panels),), ()
    schedule = Schedule(
        order,
        order.index("nj"),
        tiles,
        vector="nc",
        registers=registers,
        tail=Tail.OVERLAP,
        flush_denormals=True,
        prefetch_right=PREFETCH,
    )
    return Choice(Strategy.DOT, "one axis of rows" if dot.flat else "", PLAIN, panels, schedule)


def output_layout(choice: Choice) -> Layout:
    """In which layout a contraction makes its result."""
    return PLAIN if choice.strategy in (Strategy.GENERAL, Strategy.DOT) else BLOCKED
