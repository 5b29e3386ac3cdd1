"""All other elementwise ops form regions, as large as one result each allows."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Graph
from cuvil_core.passes.grouping import MAX_OPERANDS, Grouper
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult


@dataclass(frozen=True, slots=True)
class FuseElementwise:
    """exp(x - m) / s  →  region elementwise { exp(x - m) / s }"""

    name: ClassVar[str] = "fuse-elementwise"
    requires: ClassVar[frozenset[Property]] = frozenset()
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.ELEMENTWISE_FUSED})

    def run(self, graph: Graph) -> PassResult:
        """From the last op backwards: each takes producers of its shape that only the group needs."""
        grouper = Grouper(graph)
        for op in reversed(graph.ops):
            if not grouper.free(op):
                continue
            group = grouper.grow_back([op], op.result.shape)
            if grouper.operand_count(group) > MAX_OPERANDS:
                group = [op]
            grouper.claim("elementwise", group, op.provenance)
        return PassResult(grouper.finish(), bool(grouper.regions))
