"""Values as expressions over a kernel's axes: movement rewrites indices, arithmetic nests, leaves are loads.

`Composer.value(value, indices)` gives the expression of one element. Values that have bytes are loaded; all others are
followed to the op that makes them, whose entry in EXPRESSIONS says how. Equal requests give the same object, so shared
values are computed once a point.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from cuvil_core.errors import InternalError
from cuvil_core.ir import Dim, Equalities, Op, Payload, Value
from cuvil_core.kernel_ir import Access, Accumulator, Expr, Index, Literal, Load, Use, Within
from cuvil_core.kernel_ir.analysis import index_range, is_never_negative, simplify
from cuvil_core.kernel_ir.index import Atom
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Indices, Placement


class Unfused(Exception):
    """The expression cannot stand in the kernel that is being built; the caller makes the value first."""


class Values(Protocol):
    """What a body asks of the lowering of the whole graph."""

    equalities: Equalities
    """What the guards say of extents."""

    def placement(self, value: Value) -> Placement | None:
        """Where the value lies, None for a view or a constant."""
        ...

    def producer(self, value: Value) -> Op:
        """The op of the outer level that makes the value."""
        ...

    def constant(self, payload: Payload) -> Placement:
        """Where a constant lies, row-major."""
        ...


class Body:
    """The primitives of one op of the outer level, and where its values come from."""

    def __init__(self, values: Values, op: Op | None) -> None:
        self.values = values
        self.cuts: dict[Value, Placement] = {}
        """Values of the body that have been made by a kernel of their own."""
        self._outer: dict[Value, Value] = {}
        self._inner: dict[Value, Op] = {}
        if op is not None and op.region is None:
            self._inner = dict.fromkeys(op.results, op)
        elif op is not None and op.region is not None:
            self._outer = dict(zip(op.region.inputs, op.operands, strict=True))
            self._inner = {result: one for one in op.region.ops for result in one.results}

    def outer(self, value: Value) -> Value:
        """The outer value behind a block argument, else the value itself."""
        return self._outer.get(value, value)

    def is_inner(self, value: Value) -> bool:
        """True where the body makes the value."""
        return value in self._inner

    def maker(self, value: Value) -> Op:
        """The op that makes a value, inside the body or outside."""
        inner = self._inner.get(value)
        return inner if inner is not None else self.values.producer(value)

    def placement(self, value: Value) -> Placement | None:
        """Where a value lies, None where it must be computed."""
        return self.cuts.get(value) if value in self._inner else self.values.placement(value)


class Composer:
    """Builds the expressions of one kernel."""

    def __init__(self, body: Body, parameters: Parameters, extents: Mapping[str, Dim]) -> None:
        self.body, self.parameters, self.extents = body, parameters, dict(extents)
        self.ragged: Within | None = None
        """Lanes run past the channels: this condition tells which are real."""
        self.accumulators: dict[Value, tuple[Indices, Accumulator]] = {}
        """Reduced value → the indices at which the kernel has it."""
        self.probing: dict[Value, Indices | None] = {}
        """Reduced values whose indices are yet to be found out."""
        self._memo: dict[tuple[Value, Indices, tuple[Within, ...]], Expr] = {}

    def value(self, value: Value, indices: Indices, within: tuple[Within, ...] = ()) -> Expr:
        """One element; where a condition of `within` fails any value will do, but nothing may be read."""
        value = self.body.outer(value)
        simple = tuple(simplify(index, self.extents) for index in indices)
        key = (value, simple, within)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._make(value, simple, within)
        return found

    def load(self, place: Placement, indices: Indices, within: tuple[Within, ...] = ()) -> Load:
        """Read an element of a value that has bytes."""
        index = place.index(indices, self.extents)
        if self.ragged is not None and not self._safe(place, indices, index):
            within = (*within, self.ragged)
        return Load(Access(self.parameters.name(place, Use.READ), index), place.dtype, within)

    def plain_load(self, place: Placement, index: Index) -> Load:
        """Read a packed operand at an element offset."""
        return Load(Access(self.parameters.name(place, Use.READ), index), place.dtype)

    def _make(self, value: Value, indices: Indices, within: tuple[Within, ...]) -> Expr:
        if value in self.probing:
            return self._probe(value, indices)
        if value in self.accumulators:
            expected, accumulator = self.accumulators[value]
            if not same(expected, indices, self.extents):
                raise Unfused(f"{value.name} is used at another index than it is made at")
            return accumulator
        place = self.body.placement(value)
        if place is not None:
            return self.load(place, indices, within)
        op = self.body.maker(value)
        if op.name == "constant":
            return self._constant(op.payload(), indices, within)
        rule = EXPRESSIONS.get(op.name)
        if rule is None:
            raise Unfused(f"{op.name} needs a kernel of its own")
        return rule(self, op, indices, within)

    def _probe(self, value: Value, indices: Indices) -> Expr:
        known = self.probing[value]
        if known is not None and not same(known, indices, self.extents):
            raise Unfused(f"{value.name} is used at several indices")
        self.probing[value] = indices
        return Accumulator(value.dtype)

    def _constant(self, payload: Payload, indices: Indices, within: tuple[Within, ...]) -> Expr:
        item = payload.item()
        if item is not None:
            return Literal(item, payload.dtype)
        return self.load(self.body.values.constant(payload), indices, within)

    def _safe(self, place: Placement, indices: Indices, index: Index) -> bool:
        """True where lanes past the channels may be read: zeros lie there, or the lane does not move the address."""
        assert self.ragged is not None
        lanes = self.ragged.index.axes
        if not index.axes & lanes:
            return True
        channel = simplify(self.ragged.index, self.extents)
        if place.layout.blocked and len(indices) > 1 and same(indices[1:2], (channel,), self.extents):
            others = (*indices[:1], *indices[2:])
            return place.shape[1] == self.ragged.extent and not any(one.axes & lanes for one in others)
        zeros_follow = place.padded and place.shape[-1] == self.ragged.extent
        return zeros_follow and same((index,), (channel,), self.extents) and self._fits(place, index)

    def _fits(self, place: Placement, index: Index) -> bool:
        """True where the offset is inside the buffer at every point of the axes, ragged lanes included."""
        _, greatest = index_range(index, self.extents)
        return greatest is not None and is_never_negative(self.parameters.size(place) - 1 - greatest)


def same(left: Indices, right: Indices, extents: Mapping[str, Dim]) -> bool:
    """Equal indices, whatever the order of their terms."""
    return all(_key(simplify(a, extents)) == _key(simplify(b, extents)) for a, b in zip(left, right, strict=True))


def _key(index: Index) -> tuple[frozenset[tuple[Atom, Dim]], Dim]:
    return frozenset(index.terms), index.offset


Rule = Callable[[Composer, Op, Indices, tuple[Within, ...]], Expr]
EXPRESSIONS: dict[str, Rule] = {}
"""Primitive → how one element of its result is computed; filled by `expressions`."""


def operand(op: Op, position: int = 0) -> Value:
    """An operand by position; raises InternalError when the op has too few."""
    if position >= len(op.operands):
        raise InternalError(f"{op.name} lacks operand {position}; report this as a fault of Cuvil")
    return op.operands[position]
