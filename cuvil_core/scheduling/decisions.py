"""What scheduling says of a graph, as data and as text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from cuvil_core.ir import Graph, Op, Value
from cuvil_core.kernel_ir import Schedule
from cuvil_core.scheduling.layout import PLAIN, Layout


class Strategy(Enum):
    """How an op becomes code."""

    CONSTANT = "constant"
    """Bytes in the weight segment, laid out as each reader wants."""
    VIEW = "view"
    """No code: readers rewrite their indices."""
    ALIAS = "alias"
    """No code: the same bytes under another shape."""
    CHECKED = "checked"
    """A view whose elements a kernel checks first; the call ends where one is out of bounds."""
    BIND = "bind"
    """A view whose one element fixes an extent, or must not be false."""
    CALL = "call"
    """A function of the support library."""
    MAP = "map"
    FOLD = "fold"
    PREFIX = "prefix"
    """Running totals: one turn after the other along the axis."""
    SCATTER = "scatter"
    """A copy, then one row after the other at its index."""
    CONCAT = "concat"
    """Operands are written in place, or copied where that cannot be."""
    DIRECT = "conv-direct"
    """Blocked input and output, register tile of panels × pixels of a row."""
    POINTWISE = "conv-pointwise"
    """DIRECT for windows of one element, over all pixels of an image as one axis."""
    STEM = "conv-stem"
    """Few input channels: row-major input, blocked output."""
    DEPTHWISE = "conv-depthwise"
    """One input channel an output channel: lanes are channels on both sides."""
    GROUPED = "conv-grouped"
    """Groups of whole blocks."""
    GENERAL = "conv-general"
    """Any other convolution: row-major, lanes are pixels."""
    DOT = "dot"
    BRANCH = "branch"
    LOOP = "loop"


@dataclass(frozen=True, slots=True)
class Choice:
    """The strategy of one op, and what its kernel needs to know."""

    strategy: Strategy
    reason: str = ""
    input_layout: Layout = PLAIN
    """Contractions: how operand 0 must lie."""
    panels: int = 1
    """Contractions: blocks of LANES output channels computed together, the width of a packed weight panel."""
    schedule: Schedule | None = None
    """Contractions: the loops, by the axis names of `scheduling.contractions`."""
    blocks: "tuple[Decisions, ...]" = ()
    """Control flow: what was decided inside each block."""


@dataclass(frozen=True)
class Decisions:
    """Layouts of values and choices for ops, by identity."""

    choices: Mapping[Op, Choice]
    layouts: Mapping[Value, Layout]
    homes: Mapping[Value, Value] = field(default_factory=dict)
    """Operand of a concat → the concat's result in which it is written."""

    def layout(self, value: Value) -> Layout:
        """The layout in which the value is made."""
        return self.layouts.get(value, PLAIN)

    def text(self, graph: Graph) -> str:
        """One line an op, in the graph's order."""
        return "\n".join(self._lines(graph)) + "\n"

    def _lines(self, graph: Graph) -> Iterator[str]:
        for op in graph.ops:
            choice = self.choices[op]
            if choice.strategy is Strategy.CONSTANT:
                continue
            results = ", ".join(f"%{one.name}: {self.layout(one)}" for one in op.results)
            inner = op.name if op.region is None else "+".join(one.name for one in op.region.ops)
            yield f"{results} = {choice.strategy.value} [{inner}]{_details(choice)}"
            for block, decisions in zip(op.blocks, choice.blocks, strict=True):
                yield "block"
                yield from (f"  {line}" for line in decisions._lines(graph.inner(block)))


def _details(choice: Choice) -> str:
    parts = []
    if choice.schedule is not None:
        schedule = choice.schedule
        registers = " ".join(f"{axis}:{count}" for axis, count in schedule.registers)
        tiles = "".join(f" {axis}/{size}" for axis, size in schedule.tiles)
        parts.append(f"input {choice.input_layout}, panels {choice.panels}")
        parts.append(f"order {' '.join(schedule.order)}{tiles}, parallel {schedule.parallel}, registers {registers}")
    if choice.reason:
        parts.append(choice.reason)
    return f" ({'; '.join(parts)})" if parts else ""
