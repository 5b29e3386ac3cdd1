"""Bodies of Map, Fold and Contraction at one register tile."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from cuvil_core.codegen.c.dims import ZERO, Symbols
from cuvil_core.codegen.c.expressions import emit, know, to_memory
from cuvil_core.codegen.c.folding import Partial, first_lane, join_lanes, join_partials, start, step
from cuvil_core.codegen.c.loops import Turn, Writer, full_range
from cuvil_core.codegen.c.memory import holds, place_conditions, step_of
from cuvil_core.codegen.c.scope import Scope, Value
from cuvil_core.codegen.c.types import pointer, variable, vector_type
from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Combine, Contraction, Fold, Load, Map, Schedule, Statement, Store

Shift = dict[str, int]


@dataclass(frozen=True, slots=True)
class Emitter:
    """What the bodies of one statement share."""

    writer: Writer
    statement: Statement
    schedule: Schedule
    symbols: Symbols
    extents: dict[str, Dim]

    def body(self, turn: Turn) -> None:
        """Writes the statement for the register tile at which the loops stand."""
        with self.writer.block():
            if isinstance(self.statement, Map):
                self._map(turn)
            elif self._folds_lanes():
                self._fold_lanes(turn)
            else:
                self._reduction(turn)

    # --- the pieces ---------------------------------------------------------------------------------------------------

    def _folds_lanes(self) -> bool:
        """True where the lanes run along a reduce axis."""
        return self.schedule.vector in {axis.name for axis in self.statement.reduce_axes}

    def _scope(self, turn: Turn, accumulators: tuple[Value, ...] = (), scalar: bool = False) -> Scope:
        vector = None if scalar else self.schedule.vector
        lanes = 1 if vector is None else self.schedule.width
        return Scope(lanes, vector, dict(turn.axes), self.symbols, self.extents, {}, turn.partial, accumulators)

    def _flush(self, scope: Scope) -> None:
        for line in scope.lines:
            self.writer.line(line)
        scope.lines.clear()

    def _points(self, turn: Turn, first: frozenset[str] = frozenset()) -> list[Shift]:
        """Distances of the tile's points; axes in `first` vary slowest."""
        axes = [(axis, count) for axis, count in turn.counts.items() if count > 1]
        axes.sort(key=lambda item: item[0] not in first)
        unit = {axis: self.schedule.width if axis == self.schedule.vector else 1 for axis, _ in axes}
        ranges = [range(0, count * unit[axis], unit[axis]) for axis, count in axes]
        return [dict(zip((axis for axis, _ in axes), point, strict=True)) for point in product(*ranges)]

    def _stores(self, scope: Scope) -> None:
        """All values first, then the stores."""
        values = [emit(store.value, scope) for store in self.statement.stores]
        for store, value in zip(self.statement.stores, values, strict=True):
            self._store(store, value, scope)

    def _store(self, store: Store, value: Value, scope: Scope) -> None:
        know([value for i in (store.access.index, *(w.index for w in store.within)) for value in i.computed], scope)
        index = scope.place(store.access.index)
        text, kind = to_memory(value, scope), vector_type(value.dtype, scope.lanes)
        place = scope.element(store.access.buffer, index)
        within = place_conditions(store.within, scope)
        varying = [w for w in within if scope.vector is not None and scope.vector in w.index.axes]
        guard = holds([w for w in within if w not in varying], scope)
        prefix = f"if ({guard}) " if guard else ""
        if scope.lanes == 1:
            scope.lines.append(f"{prefix}{place} = ({text})[0];")
        elif step_of(index, scope.vector) == 1 and not varying:
            part = "" if scope.partial is None else f", {scope.partial}"
            name = "store" if scope.partial is None else "store_part"
            scope.lines.append(f"{prefix}cuvil_{name}_{kind}(&{place}, {text}{part});")
        else:
            condition = f"if ({holds(varying, scope, 'lane')}) " if varying else ""
            held = scope.define(kind, text)
            lanes = scope.lanes if scope.partial is None else scope.partial
            place = f"{pointer(store.access.buffer)}[{scope.offset(index, 'lane')}]"
            scope.lines.append(f"{prefix}for (int lane = 0; lane < {lanes}; ++lane) {condition}{place} = {held}[lane];")

    # --- Map ----------------------------------------------------------------------------------------------------------

    def _map(self, turn: Turn) -> None:
        scope = self._scope(turn)
        for point in self._points(turn):
            self._stores(scope.at(point))
        self._flush(scope)

    # --- reductions whose lanes run along a parallel axis, or that are scalar -----------------------------------------

    def _reduction(self, turn: Turn) -> None:
        points = self._points(turn, self._broadcast_axes())
        lanes = self._scope(turn).lanes
        partials = [self._declare(f"a{number}_", lanes) for number in range(len(points))]
        with self.writer.block():
            self._reduce_loops(turn, points, partials, self._reduce_order(), {}, None)
        scope = self._scope(turn)
        for point, reducers in zip(points, partials, strict=True):
            here = scope.at(point, tuple(partial.value for partial in reducers))
            self._stores(here)
        self._flush(scope)

    def _declare(self, stem: str, lanes: int) -> tuple[Partial, ...]:
        """Declares one accumulator a reducer, at its identity."""
        if isinstance(self.statement, Contraction):
            dtype = self.statement.left.dtype
            kind = vector_type(dtype, lanes)
            self.writer.line(f"{kind} {stem} = ({kind})0;")
            return (Partial(stem, Combine.SUM, dtype, lanes),)
        if not isinstance(self.statement, Fold):
            return ()
        made = []
        for number, reducer in enumerate(self.statement.reducers):
            partial, lines = start(reducer, f"{stem}{number}", lanes)
            made.append(partial)
            for line in lines:
                self.writer.line(line)
        return tuple(made)

    def _reduce_order(self) -> tuple[str, ...]:
        names = {axis.name for axis in self.statement.reduce_axes}
        return tuple(axis for axis in self.schedule.order if axis in names)

    def _broadcast_axes(self) -> frozenset[str]:
        """Axes that only the operand without lanes depends on: varying slowest, they keep one broadcast alive."""
        if not isinstance(self.statement, Contraction) or self.schedule.vector is None:
            return frozenset()
        left, right = self.statement.left.axes, self.statement.right.axes
        vector = self.schedule.vector
        if (vector in left) == (vector in right):
            return frozenset()
        return left - right if vector in right else right - left

    def _reduce_loops(
        self,
        turn: Turn,
        points: list[Shift],
        partials: list[tuple[Partial, ...]],
        order: tuple[str, ...],
        shift: Shift,
        scope: Scope | None,
    ) -> None:
        """Loops over the reduce axes; unrolled ones share the block they stand in."""
        own = scope or self._scope(turn)
        if not order:
            for point, reducers in zip(points, partials, strict=True):
                self._update(own.at({**shift, **point}), reducers)
        else:
            axis, rest = order[0], order[1:]
            extent, times = self.extents[axis], self.schedule.unroll_of(order[0])
            if extent.constant is not None and extent.constant <= times:
                own.axes[axis] = ZERO
                for distance in range(extent.constant):
                    self._reduce_loops(turn, points, partials, rest, {**shift, axis: distance}, own)
            else:
                self._flush(own)
                own.known.clear()  # the blocks within have their own; nothing below stands beside what is above
                self._reduce_loop(turn, points, partials, order, shift, own)
        if scope is None:
            self._flush(own)

    def _reduce_loop(
        self,
        turn: Turn,
        points: list[Shift],
        partials: list[tuple[Partial, ...]],
        order: tuple[str, ...],
        shift: Shift,
        scope: Scope,
    ) -> None:
        axis, rest = order[0], order[1:]
        name, times = variable(axis), self.schedule.unroll_of(axis)
        whole = full_range(self.extents[axis], self.symbols)
        inner = Turn({**scope.axes, axis: name}, turn.counts, turn.partial)
        with self.writer.block():
            self.writer.line(f"int64_t {name} = 0;")
            for stride in (times, 1) if times > 1 else (1,):
                if stride == 1 and times > 1 and _divides(times, self.extents[axis]):
                    continue
                self.writer.line("#pragma clang loop unroll(disable) vectorize(disable)")
                with self.writer.block(f"for (; {name} + {stride} <= {whole.end}; {name} += {stride})"):
                    block = self._scope(inner)
                    for distance in range(stride):
                        moved = {**shift, axis: distance}
                        self._reduce_loops(inner, points, partials, rest, moved, block)
                    self._flush(block)

    def _update(self, scope: Scope, reducers: tuple[Partial, ...]) -> None:
        statement = self.statement
        if isinstance(statement, Contraction):
            left, right = emit(statement.left, scope), emit(statement.right, scope)
            self._prefetch(scope)
            name = reducers[0].value.text
            if left.dtype.is_float:
                scope.lines.append(f"{name} = __builtin_elementwise_fma({left.text}, {right.text}, {name});")
            else:
                scope.lines.append(f"{name} = {left.text} * {right.text} + {name};")
        elif isinstance(statement, Fold):
            for reducer, partial in zip(statement.reducers, reducers, strict=True):
                position = self._position(scope) if reducer.combine.is_arg else None
                step(partial, emit(reducer.element, scope), position, scope)

    def _prefetch(self, scope: Scope) -> None:
        """Asks for what the right operand's vector will be a distance further on, once a vector."""
        right, distance = self.statement.roots[1], self.schedule.prefetch_right
        if not distance or not isinstance(right, Load):
            return
        index = scope.place(right.access.index)
        key = ("prefetch", index)
        if key not in scope.known and scope.vector is not None and step_of(index, scope.vector) == 1:
            ahead = scope.element(right.access.buffer, index + distance)
            scope.known[key] = Value(ahead, right.dtype)
            scope.lines.append(f"__builtin_prefetch(&{ahead}, 0, 2);")

    def _position(self, scope: Scope) -> str:
        axis = self.statement.reduce_axes[0].name
        return f"({scope.axes[axis]} + {scope.shift.get(axis, 0)})"

    # --- Folds whose lanes run along a reduce axis --------------------------------------------------------------------

    def _fold_lanes(self, turn: Turn) -> None:
        points = self._points(Turn(turn.axes, {a: c for a, c in turn.counts.items() if a != self.schedule.vector}))
        scalar = self._scope(turn, scalar=True)
        for number, point in enumerate(points):
            finished = self._fold_row(turn, point, f"r{number}_", scalar)
            here = scalar.at(point, finished)
            self._stores(here)
            self._flush(scalar)

    def _fold_row(self, turn: Turn, point: Shift, stem: str, row: Scope) -> tuple[Value, ...]:
        """Partial accumulators along the lanes, joined in a fixed order; gives the results as one-lane values."""
        axis = self.schedule.vector or ""
        lanes, times = self.schedule.width, self.schedule.unroll_of(axis)
        partials = [self._declare(f"{stem}{number}_", lanes) for number in range(times)]
        outer = tuple(name for name in self._reduce_order() if name != axis)
        self._lane_loops(turn, point, partials, outer)
        first = partials[0]
        scope = Scope(lanes, None, dict(turn.axes), self.symbols, self.extents, names=row.names)
        for number, partial in enumerate(first):
            join_partials([other[number] for other in partials], scope)
            join_lanes(partial, scope)
        finished = tuple(first_lane(partial, scope) for partial in first)
        self._flush(scope)
        return finished

    def _lane_loops(
        self, turn: Turn, point: Shift, partials: list[tuple[Partial, ...]], outer: tuple[str, ...]
    ) -> None:
        if outer:
            name = variable(outer[0])
            whole = full_range(self.extents[outer[0]], self.symbols)
            with self.writer.block(f"for (int64_t {name} = 0; {name} < {whole.end}; ++{name})"):
                self._lane_loops(Turn({**turn.axes, outer[0]: name}, turn.counts), point, partials, outer[1:])
            return
        axis = self.schedule.vector or ""
        name, lanes = variable(axis), self.schedule.width
        end = full_range(self.extents[axis], self.symbols).end
        inner = Turn({**turn.axes, axis: name}, turn.counts)
        with self.writer.block():
            self.writer.line(f"int64_t {name} = 0;")
            for times in (len(partials), 1) if len(partials) > 1 else (1,):
                stride = times * lanes
                with self.writer.block(f"for (; {name} + {stride} <= {end}; {name} += {stride})"):
                    block = self._scope(inner)
                    for number in range(times):
                        self._update(block.at({**point, axis: number * lanes}), partials[number])
                    self._flush(block)
            with self.writer.block(f"if ({name} < {end})"):
                block = self._scope(Turn(inner.axes, inner.counts, f"({end} - {name})"))
                self._update_partial(block.at(point), partials[0], f"({end} - {name})")
                self._flush(block)

    def _update_partial(self, scope: Scope, reducers: tuple[Partial, ...], count: str) -> None:
        """Lanes beyond `count` keep their accumulators."""
        before = [scope.define(partial.ctype, partial.value.text) for partial in reducers]
        self._update(scope, reducers)
        for partial, old in zip(reducers, before, strict=True):
            bits = partial.bits
            lane = scope.define(f"i{bits}x{scope.lanes}", partial.lane_mask(count))
            name = partial.value.text
            scope.lines.append(f"{name} = {lane} ? {name} : {old};")


def _divides(times: int, extent: Dim) -> bool:
    return extent.constant is not None and extent.constant % times == 0
