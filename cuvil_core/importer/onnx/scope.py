"""The names of one graph, function body or subgraph, and what ops mean in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx

from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Provenance

Key: TypeAlias = tuple[str, str, str]
"""Domain (the default one is empty), op type and overload of a function."""
Functions: TypeAlias = Mapping[Key, onnx.FunctionProto]


Known: TypeAlias = dict[str, Tensor | None]


class Names(Known):
    """The names of a subgraph: its own hide those around it, and what it lacks it finds outside."""

    def __init__(self, own: Known, outer: Known, capture: Callable[[Tensor], Tensor] | None = None) -> None:
        """`capture` gives what stands inside for a tensor of the outside."""
        super().__init__(own)
        self._outer, self._capture = outer, capture
        self._seen: Known = {}

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._outer

    def __missing__(self, name: str) -> Tensor | None:
        if name not in self._seen:
            found = self._outer[name]
            self._seen[name] = found if found is None or self._capture is None else self._capture(found)
        return self._seen[name]

    def find(self, name: str) -> Tensor | None:
        """The tensor of that name; None where there is none."""
        try:
            return self[name]
        except KeyError:
            return None


def owns(known: Known, name: str) -> bool:
    """True where the name is defined here, whatever is defined around."""
    return dict.__contains__(known, name)


@dataclass(frozen=True, slots=True)
class Scope:
    """What the translation of a node may refer to."""

    file: str
    versions: Mapping[str, int]
    """Domain → opset; a body has its own."""
    functions: Functions
    """The model's own functions, which every scope sees."""
    known: Known
    """Name → tensor; None for an optional input of a function that the caller leaves out. Grows node by node."""
    calls: tuple[Node, ...] = ()
    """The nodes whose bodies lead here, the model's own first."""

    def provenance(self, node: Node) -> Provenance:
        """The user's node, with the way into its bodies."""
        outer, *inner = (*self.calls, node)
        return Provenance(self.file, outer.name, outer.op_type, "/".join(f"{n.name} {n.op_type}" for n in inner))
