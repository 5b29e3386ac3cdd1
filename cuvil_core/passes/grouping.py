"""How ops become a region: which ones may join, which value leaves, and the region op itself.

A group is convex (no path leaves it and comes back), and exactly one value of it is used outside.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cuvil_core.ir import Block, Dim, Graph, Op, Provenance, Value, freeze
from cuvil_core.ops import is_elementwise

MAX_OPS = 96
MAX_OPERANDS = 24
"""Beyond these a kernel spills registers and compiles slowly, and no real model comes near."""


@dataclass(slots=True)
class Grouper:
    """The graph with what is already taken; passes claim groups and `finish` builds the regions."""

    graph: Graph
    places: dict[Op, int] = field(init=False)
    producers: dict[Value, Op] = field(init=False)
    uses: dict[Value, list[Op]] = field(init=False)
    outputs: frozenset[Value] = field(init=False)
    claimed: set[Op] = field(default_factory=set)
    regions: dict[Op, Op] = field(default_factory=dict)
    """The last op of a group → the region that takes its place."""

    def __post_init__(self) -> None:
        self.places = {op: place for place, op in enumerate(self.graph.ops)}
        self.producers = self.graph.producers()
        self.uses = self.graph.uses()
        self.outputs = frozenset(self.graph.outputs)

    def free(self, op: Op) -> bool:
        """True for an elementwise op that no region holds yet."""
        return is_elementwise(op.name) and op not in self.claimed

    def escapes(self, group: Iterable[Op]) -> list[Value]:
        """The results that are used outside of the group."""
        members = set(group)
        return [
            result
            for op in group
            for result in op.results
            if result in self.outputs or any(user not in members for user in self.uses.get(result, ()))
        ]

    def grow_back(self, group: list[Op], shape: tuple[Dim, ...]) -> list[Op]:
        """The group with all free elementwise producers of that shape whose results nobody else uses, in order."""
        members = set(group)
        pending = [operand for op in group for operand in op.operands]
        while pending and len(members) < MAX_OPS:
            op = self.producers.get(pending.pop())
            if op is None or op in members or not self.free(op) or op.result.shape != shape:
                continue
            if op.result in self.outputs or any(user not in members for user in self.uses[op.result]):
                continue
            members.add(op)
            pending = [operand for member in members for operand in member.operands]
        return self.ordered(members)

    def grow_forward(self, group: list[Op], result: Value) -> list[Op]:
        """The longest group with one escape: elementwise users of that shape, as long as the group stays convex."""
        members, best = list(group), list(group)
        queue = self._users(group)
        while queue and len(members) < MAX_OPS:
            op = min(queue, key=self.places.__getitem__)
            queue.discard(op)
            if not self._may_join(op, members, result):
                continue
            members.append(op)
            queue |= self._users([op]) - set(members)
            if len(self.escapes(members)) == 1 and self.operand_count(members) <= MAX_OPERANDS:
                best = list(members)
        return best

    def _users(self, group: Iterable[Op]) -> set[Op]:
        return {user for op in group for value in op.results for user in self.uses.get(value, ()) if user not in group}

    def _may_join(self, op: Op, members: list[Op], result: Value) -> bool:
        if not self.free(op) or op.result.shape != result.shape:
            return False
        held = {value for member in members for value in member.results}
        outside = [operand for operand in op.operands if operand not in held]
        return not any(self._depends(operand, members) for operand in outside)

    def _depends(self, value: Value, members: list[Op]) -> bool:
        """True when the value, made outside, needs a value of the group."""
        first = min(self.places[member] for member in members)
        seen: set[Op] = set()
        pending = [value]
        while pending:
            op = self.producers.get(pending.pop())
            if op is None or op in seen or self.places[op] < first:
                continue
            if op in members:
                return True
            seen.add(op)
            pending.extend(op.operands)
        return False

    def ordered(self, group: Iterable[Op]) -> list[Op]:
        """The ops in the order of the graph."""
        return sorted(group, key=self.places.__getitem__)

    def operand_count(self, group: list[Op]) -> int:
        """How many values a region of the group would read."""
        return len(_Body(self, group).operands)

    def claim(self, kind: str, group: list[Op], provenance: Provenance) -> None:
        """Make a region of the group in place of its last op."""
        ordered = self.ordered(group)
        (escape,) = self.escapes(ordered)
        body = _Body(self, ordered)
        block = body.block(escape)
        region = Op("region", tuple(body.operands), (escape,), freeze({"kind": kind}), block, provenance)
        self.claimed.update(ordered)
        self.regions[ordered[-1]] = region

    def finish(self) -> Graph:
        """The graph with regions in place of groups; what only they needed is left for `remove-dead`."""
        kept = [self.regions.get(op, op) for op in self.graph.ops if op not in self.claimed or op in self.regions]
        return replace(self.graph, ops=tuple(kept))


class _Body:
    """Copies a group into a block: outer values become arguments, stretched values are stretched inside."""

    def __init__(self, grouper: Grouper, group: list[Op]) -> None:
        self._grouper = grouper
        self._inside = {result for op in group for result in op.results}
        self._group = group
        self.operands: list[Value] = []
        for op in group:
            for operand in op.operands:
                self._collect(operand)

    def _collect(self, value: Value) -> None:
        if value in self._inside or value in self.operands:
            return
        op = self._cloned(value)
        if op is None:
            self.operands.append(value)
            return
        for operand in op.operands:
            self._collect(operand)

    def _cloned(self, value: Value) -> Op | None:
        """The outer op that the body repeats: broadcast_to, and constants of one element."""
        op = self._grouper.producers.get(value)
        if op is None or op in self._grouper.claimed:
            return None
        scalar = op.name == "constant" and op.payload().elements == 1
        return op if scalar or op.name == "broadcast_to" else None

    def block(self, escape: Value) -> Block:
        """The block that yields the one value."""
        names: dict[Value, Value] = {}
        inputs = tuple(_fresh(operand, names) for operand in self.operands)
        ops: list[Op] = []
        for op in self._group:
            self._copy(op, names, ops)
        return Block(inputs, tuple(ops), (names[escape],))

    def _copy(self, op: Op, names: dict[Value, Value], ops: list[Op]) -> None:
        for operand in op.operands:
            if operand not in names:
                outer = self._grouper.producers[operand]
                self._copy(outer, names, ops)
        operands = tuple(names[operand] for operand in op.operands)
        results = tuple(_fresh(result, names) for result in op.results)
        ops.append(replace(op, operands=operands, results=results))


def _fresh(value: Value, names: dict[Value, Value]) -> Value:
    names[value] = Value(str(len(names)), value.type)
    return names[value]
