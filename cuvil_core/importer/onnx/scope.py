"""The names of one graph or function body, and what ops mean in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx

from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Provenance

Key: TypeAlias = tuple[str, str, str]
"""Domain (the default one is empty), op type and overload of a function."""
Functions: TypeAlias = Mapping[Key, onnx.FunctionProto]


@dataclass(frozen=True, slots=True)
class Scope:
    """What the translation of a node may refer to."""

    file: str
    versions: Mapping[str, int]
    """Domain → opset; a body has its own."""
    functions: Functions
    """The model's own functions, which every scope sees."""
    known: dict[str, Tensor | None]
    """Name → tensor; None for an optional input of a function that the caller leaves out. Grows node by node."""
    calls: tuple[Node, ...] = ()
    """The nodes whose bodies lead here, the model's own first."""

    def provenance(self, node: Node) -> Provenance:
        """The user's node, with the way into its bodies."""
        outer, *inner = (*self.calls, node)
        return Provenance(self.file, outer.name, outer.op_type, "/".join(f"{n.name} {n.op_type}" for n in inner))
