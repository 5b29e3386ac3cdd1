"""What a line of the translation table says."""

from collections.abc import Callable
from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor

Operands = tuple[Tensor | None, ...]
"""The node's inputs; None where an optional one is left out."""
Translate = Callable[[Context, Node, Operands], Tensor | tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One op in a range of opsets."""

    op_type: str
    translate: Translate
    since: int = 7
    """The first opset of this meaning."""
    until: int | None = None
    """The last opset of this meaning; None while it lasts."""
    domain: str = ""
    """The domain of the op; empty for ONNX's default one."""

    reads_elements: bool = False
    """True where the translation itself looks after operands of narrow types; else `narrow` moves or refuses them."""

    final: bool = False
    """True where a refusal is meant, so that the body of ONNX's schema is not asked instead."""

    def covers(self, opset: int) -> bool:
        """True where the opset has this meaning."""
        return self.since <= opset and (self.until is None or opset <= self.until)


def need(node: Node, operands: Operands, index: int) -> Tensor:
    """The operand at the index, which must be there."""
    found = operands[index] if index < len(operands) else None
    if found is None:
        raise node.broken(f"its input {index} is missing")
    return found


def optional(operands: Operands, index: int) -> Tensor | None:
    """The operand at the index if it is given."""
    return operands[index] if index < len(operands) else None


def all_of(node: Node, operands: Operands) -> list[Tensor]:
    """All operands, each of which must be there."""
    return [need(node, operands, index) for index in range(len(operands))]
