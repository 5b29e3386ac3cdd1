"""Dead code."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Graph
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult, remove_unused


@dataclass(frozen=True, slots=True)
class RemoveDead:
    """%1 = exp %0; output %0  →  output %0"""

    name: ClassVar[str] = "remove-dead"
    requires: ClassVar[frozenset[Property]] = frozenset()
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_DEAD_CODE})

    def run(self, graph: Graph) -> PassResult:
        """Drop every op that no output needs, but for checks and for binds of extents that are used."""
        kept = remove_unused(graph)
        return PassResult(kept, kept is not graph)
