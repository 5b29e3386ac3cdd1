"""Convolutions and dots take the elementwise ops behind them into their kernel."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Graph, Op
from cuvil_core.ops import is_elementwise
from cuvil_core.passes.grouping import Grouper
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Note, PassResult


@dataclass(frozen=True, slots=True)
class FuseContractions:
    """relu(conv(x, w) + b + r)  →  region contraction { relu(conv(x, w) + b + r) }"""

    name: ClassVar[str] = "fuse-contractions"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset()

    def run(self, graph: Graph) -> PassResult:
        """From the last contraction backwards, so that a residual sum joins the later of its two convolutions.

        Noted is each contraction whose elementwise users stay outside, with the reason.
        """
        grouper, notes = Grouper(graph), []
        for op in reversed(graph.ops):
            if op.name not in ("conv", "dot"):
                continue
            group = grouper.grow_forward([op], op.result)
            if len(group) > 1:
                grouper.claim("contraction", group, op.provenance)
            elif (reason := _reason(op, grouper)) is not None:
                notes.append(Note(self.name, op.provenance, reason))
        return PassResult(grouper.finish(), bool(grouper.regions), tuple(notes))


def _reason(op: Op, grouper: Grouper) -> str | None:
    """Why elementwise users were left out; None when there are none."""
    users = grouper.uses.get(op.result, [])
    wanted = [user for user in users if is_elementwise(user.name)]
    if not wanted:
        return None
    if all(user in grouper.claimed for user in wanted):
        return "its elementwise users joined a later contraction"
    return f"its {len(wanted)} elementwise users stay outside, since its result is needed by other ops too"
