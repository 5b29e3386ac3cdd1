"""The program in the making: buffers, kernels, launches, and where each value lies."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import count

import numpy as np

from cuvil_core.ir import Block, Dim, DType, Equalities, Graph, Op, Payload, Value, product
from cuvil_core.kernel_ir import Axis, Kernel, Schedule, Statement
from cuvil_core.lowering.fingerprint import fingerprint
from cuvil_core.lowering.halo import zero_borders
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Placement
from cuvil_core.program import ALIGNMENT, Buffer, Launch, Role, ScheduledKernel
from cuvil_core.program import Statement as ProgramStatement
from cuvil_core.scheduling import LANES, PLAIN, Decisions, Layout
from cuvil_core.scheduling.layout import starts_of


class World:
    """Collects the program while ops are lowered in order."""

    def __init__(self, graph: Graph, decisions: Decisions) -> None:
        self.graph, self.decisions = graph, decisions
        self.equalities = Equalities(graph.guards)
        self.buffers: dict[str, Buffer] = {}
        self.kernels: dict[object, ScheduledKernel] = {}
        self.statements: list[ProgramStatement] = []
        self.weights = bytearray()
        self.origin = ""
        self._producers = graph.producers()
        self._placements: dict[Value, Placement] = {}
        self.copies: dict[tuple[Value, Layout], Placement] = {}
        """Copies of values in other layouts than they were made in."""
        self._segments: dict[bytes, str] = {}
        self._numbers = count()
        self._targets: tuple[Placement, ...] | None = None
        """Inside a block: where its outputs lie."""
        self._claimed: set[int] = set()
        self._unchanging: dict[Value, Value] = {}
        self._outside = self
        for position, value in enumerate(graph.inputs):
            size = self.equalities.canonical(value.type.elements)
            buffer = self._add(Role.INPUT, value.dtype, size, position)
            self._placements[value] = Placement.whole(buffer.name, value.dtype, value.shape, PLAIN)

    def inside(
        self,
        block: Block,
        decisions: Decisions,
        arguments: Sequence[Placement],
        targets: Sequence[Placement],
        unchanging: Mapping[Value, Value] | None = None,
    ) -> "World":
        """The world of a block: statements and values of its own, in the same program.

        Its arguments lie where they lie outside; its first outputs go to the targets, the others stay where they are.
        `unchanging`: argument → value of the outside that it is in every run.
        """
        graph = self.graph.inner(block)
        world = copy(self)
        world.graph, world.decisions = replace(graph, outputs=graph.outputs[: len(targets)]), decisions
        world.statements, world.copies = [], {}
        world._producers = graph.producers()
        world._placements = dict(zip(block.inputs, arguments, strict=True))
        world._targets, world._claimed = tuple(targets), set()
        world._unchanging, world._outside = dict(unchanging or {}), self
        return world

    def before(self, value: Value) -> "tuple[World, Value] | None":
        """Where to prepare a value once, before the turns of a loop, and which value it is there; None within them."""
        outer = self._unchanging.get(value)
        return None if outer is None else self._outside.before(outer) or (self._outside, outer)

    def put(self, value: Value, place: Placement) -> None:
        """Say where a value lies that no kernel of its own makes."""
        self._placements[value] = place

    def producer(self, value: Value) -> Op:
        """The op of the outer level that makes the value."""
        return self._producers[value]

    def placement(self, value: Value) -> Placement | None:
        """Where the value lies, None for a view or a constant."""
        return self._placements.get(value)

    def constant(self, payload: Payload) -> Placement:
        """Where a constant lies, row-major, with zeros up to whole blocks after it."""
        shape = tuple(map(Dim.of, payload.shape))
        name = self.segment(payload.data, payload.dtype, payload.elements)
        return Placement.whole(name, payload.dtype, shape, PLAIN, padded=True)

    def segment(self, data: bytes, dtype: DType, elements: int) -> str:
        """Bytes in the weight segment, equal bytes once; readable up to a whole number of blocks."""
        known = self._segments.get(data)
        if known is not None and self.buffers[known].dtype is dtype:
            return known
        offset = len(self.weights)
        padded = -(-max(elements, 1) // LANES) * LANES
        self.weights += data
        self.weights += bytes(padded * dtype.itemsize - len(data))
        self.weights += bytes(-len(self.weights) % ALIGNMENT)
        buffer = self._add(Role.WEIGHT, dtype, Dim.of(padded), offset)
        self._segments[data] = buffer.name
        return buffer.name

    def array(self, data: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", dtype: DType) -> str:
        """An array in the weight segment."""
        return self.segment(np.ascontiguousarray(data).tobytes(), dtype, data.size)

    def place(self, value: Value) -> Placement:
        """Find or make room for a value in the layout that was decided."""
        found = self._placements.get(value)
        if found is None:
            home = self.decisions.homes.get(value)
            found = self._own_room(value) if home is None else self._room_in(value, home)
            self._placements[value] = found
        return found

    def alias(self, value: Value, source: Value) -> bool:
        """Give a reshaped value the bytes of its source; False where those have gaps."""
        place = self._placements.get(source)
        if place is None or not place.contiguous:
            return False
        self._placements[value] = place.reshaped(value.shape)
        return True

    def temporary(self, dtype: DType, shape: tuple[Dim, ...], layout: Layout = PLAIN) -> Placement:
        """Room in the arena; a halo is zeroed at once."""
        buffer = self._add(Role.TEMPORARY, dtype, product(layout.physical(shape)))
        place = Placement.whole(buffer.name, dtype, shape, layout)
        zero_borders(self, place)
        return place

    def _own_room(self, value: Value) -> Placement:
        layout = self.decisions.layout(value)
        if value in self.graph.outputs and layout == PLAIN:
            return self.claim(self.graph.outputs.index(value))
        return self.temporary(value.dtype, value.shape, layout)

    def is_claimed(self, position: int) -> bool:
        """True where a kernel writes this output of the graph already."""
        return position in self._claimed

    def claim(self, position: int) -> Placement:
        """Where an output lies: in the caller's buffer, inside a block in the target."""
        self._claimed.add(position)
        value = self.graph.outputs[position]
        if self._targets is not None:
            return replace(self._targets[position], shape=value.shape)
        buffer = self._add(Role.OUTPUT, value.dtype, self.equalities.canonical(value.type.elements), position)
        return Placement.whole(buffer.name, value.dtype, value.shape, PLAIN)

    def _room_in(self, value: Value, home: Value) -> Placement:
        concat = self._producers[home]
        axis = concat.integer("axis")
        starts = dict(zip(concat.operands, starts_of([one.shape for one in concat.operands], axis), strict=True))
        return self.place(home).part(value.shape, axis, starts[value])

    def launch(self, kind: str, statement: Statement, schedule: Schedule, parameters: Parameters) -> None:
        """Add a kernel, or find an equal one, and launch it."""
        self.launch_kernel(kind, (statement,), (), schedule, parameters)

    def launch_kernel(
        self,
        kind: str,
        body: tuple[Statement, ...],
        outer: tuple[Axis, ...],
        schedule: Schedule,
        parameters: Parameters,
    ) -> None:
        """The same for a kernel with outer axes."""
        kernel = Kernel("kernel", parameters.declared(), body, outer)
        key = fingerprint(kernel, schedule)
        known = self.kernels.get(key)
        if known is None:
            named = Kernel(f"k{len(self.kernels)}_{kind}", kernel.buffers, body, outer)
            known = self.kernels[key] = ScheduledKernel(named, schedule)
        self.statements.append(Launch(known.kernel.name, parameters.arguments, self.origin))

    def _add(self, role: Role, dtype: DType, size: Dim, position: int = 0) -> Buffer:
        number = position if role in (Role.INPUT, Role.OUTPUT) else next(self._numbers)
        name = f"{role.value[0]}{number}"
        buffer = Buffer(name, role, dtype, size, position)
        self.buffers[name] = buffer
        return buffer
