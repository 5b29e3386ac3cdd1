"""Extents that guards fix are spelled as what they are, so that no later room meets a symbol whose value is known."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from cuvil_core.ir import Attribute, Dim, Equalities, Graph, Op, Provenance, TensorType, Value, freeze
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult, next_name


@dataclass(frozen=True, slots=True)
class SettleExtents:
    """x[M, K], guard K == 16: dot(x, w)  →  dot(reshape x to [M, 16], w)

    Inputs keep the shapes that bind the symbols; a reshape, which copies nothing, gives the settled one.
    """

    name: ClassVar[str] = "settle-extents"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Every shape and every attribute that is an extent, in the simplest spelling that the guards allow."""
        settler = _Settler(Equalities(graph.guards), next_name(graph))
        uses = graph.uses()
        entrance = [
            op
            for value in graph.inputs
            if (op := settler.enter(value, {user.name for user in uses.get(value, ())})) is not None
        ]
        ops = [*entrance, *map(settler.settled, graph.ops)]
        if not settler.changed:
            return PassResult(graph, False)
        outputs = tuple(settler.values[value] for value in graph.outputs)
        return PassResult(replace(graph, ops=tuple(ops), outputs=outputs), True)


class _Settler:
    """Old value → settled value, and whether any differs."""

    def __init__(self, equalities: Equalities, first_name: int) -> None:
        self._equalities, self._name = equalities, first_name
        self.values: dict[Value, Value] = {}
        self.changed = False

    def enter(self, value: Value, users: set[str]) -> Op | None:
        """The reshape of an input to its settled shape; None where it has it, or is only reshaped anyway."""
        settled = self._settle(value.type)
        if settled == value.type or users <= {"reshape"}:
            self.values[value] = value
            return None
        self.changed = True
        self.values[value] = Value(str(self._name), settled)
        self._name += 1
        shape = freeze({"shape": settled.shape})
        return Op("reshape", (value,), (self.values[value],), shape, None, Provenance(path="settle-extents"))

    def settled(self, op: Op) -> Op:
        """The op over settled values."""
        operands = tuple(self.values[operand] for operand in op.operands)
        attributes = op.attributes
        if op.name != "bind":  # the symbol stays, to be compared with what the guard says it is
            attributes = freeze({name: self._attribute(one) for name, one in op.attributes.items()})
        for result in op.results:
            settled = self._settle(result.type)
            self.values[result] = result if settled == result.type else Value(result.name, settled)
        results = tuple(self.values[result] for result in op.results)
        self.changed |= results != op.results or _differ(attributes, op.attributes)
        return replace(op, operands=operands, results=results, attributes=attributes)

    def _attribute(self, value: Attribute) -> Attribute:
        if isinstance(value, tuple) and any(isinstance(item, Dim) for item in value):
            return tuple(self._equalities.canonical(Dim.of(item)) for item in value)
        return value

    def _settle(self, type: TensorType) -> TensorType:
        return TensorType(type.dtype, tuple(map(self._equalities.canonical, type.shape)))


def _differ(left: Mapping[str, Attribute], right: Mapping[str, Attribute]) -> bool:
    return any(isinstance(one, tuple) and one != right[name] for name, one in left.items())
