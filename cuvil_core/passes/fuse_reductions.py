"""Reductions take elementwise producers and users into their kernel."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Graph, Op
from cuvil_core.passes.grouping import MAX_OPERANDS, Grouper
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Note, PassResult


@dataclass(frozen=True, slots=True)
class FuseReductions:
    """reduce(x * x) * c  →  region reduction { reduce(x * x) * c }"""

    name: ClassVar[str] = "fuse-reductions"
    requires: ClassVar[frozenset[Property]] = frozenset()
    ensures: ClassVar[frozenset[Property]] = frozenset()

    def run(self, graph: Graph) -> PassResult:
        """Producers of the operand's shape that nobody else needs, and users of the result's shape."""
        grouper, notes = Grouper(graph), []
        for op in reversed(graph.ops):
            if op.name != "reduce":
                continue
            group = grouper.grow_back([op], op.operands[0].shape)
            if grouper.operand_count(group) > MAX_OPERANDS:
                notes.append(Note(self.name, op.provenance, "its producers stay outside, since they read too much"))
                group = [op]
            group = grouper.grow_forward(group, op.result)
            if len(group) > 1:
                grouper.claim("reduction", group, op.provenance)
            elif (reason := _reason(op, grouper)) is not None:
                notes.append(Note(self.name, op.provenance, reason))
        return PassResult(grouper.finish(), bool(grouper.regions), tuple(notes))


def _reason(op: Op, grouper: Grouper) -> str | None:
    producer = grouper.producers.get(op.operands[0])
    if producer is None or not grouper.free(producer):
        return None
    return "its elementwise producer stays outside, since others need its result"
