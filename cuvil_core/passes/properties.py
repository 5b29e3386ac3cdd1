"""What holds of a graph before and after a pass, and how that is checked."""

from collections.abc import Callable
from enum import Enum
from typing import ClassVar, Protocol

from cuvil_core.ir import Graph
from cuvil_core.ops import is_elementwise
from cuvil_core.rewriting import PassResult, remove_unused


class Property(Enum):
    """A fact about a whole graph."""

    NO_REGIONS = "no op is fused yet"
    NO_DEAD_CODE = "every op is needed for an output"
    ELEMENTWISE_FUSED = "every elementwise op stands in a region"


class Pass(Protocol):
    """One step of the pipeline; its fields are its options."""

    name: ClassVar[str]
    requires: ClassVar[frozenset[Property]]
    ensures: ClassVar[frozenset[Property]]

    def run(self, graph: Graph) -> PassResult:
        """The rewritten graph, whether it changed, and notes."""
        ...


def holds(property: Property, graph: Graph) -> bool:
    """True where the property holds."""
    return _CHECKS[property](graph)


_CHECKS: dict[Property, Callable[[Graph], bool]] = {
    Property.NO_REGIONS: lambda graph: all(op.region is None for op in graph.ops),
    Property.NO_DEAD_CODE: lambda graph: len(remove_unused(graph).ops) == len(graph.ops),
    Property.ELEMENTWISE_FUSED: lambda graph: not any(is_elementwise(op.name) for op in graph.ops),
}
