"""Common subexpressions."""

from dataclasses import dataclass, replace
from typing import ClassVar

from cuvil_core.ir import Attribute, Graph, Op, Payload, Value
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult


@dataclass(frozen=True, slots=True)
class MergeCommon:
    """%1 = exp %0; %2 = exp %0; add %1, %2  →  %1 = exp %0; add %1, %1"""

    name: ClassVar[str] = "merge-common"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Keep the first of ops with equal name, operands and attributes."""
        first: dict[object, Op] = {}
        replaced: dict[Value, Value] = {}
        kept: list[Op] = []
        for op in graph.ops:
            operands = tuple(replaced.get(operand, operand) for operand in op.operands)
            known = first.setdefault(_key(op, operands), op)
            if known is not op:
                replaced.update(zip(op.results, known.results, strict=True))
                continue
            kept.append(op if operands == op.operands else replace(op, operands=operands))
        if not replaced:
            return PassResult(graph, False)
        outputs = tuple(replaced.get(value, value) for value in graph.outputs)
        return PassResult(replace(graph, ops=tuple(kept), outputs=outputs), True)


def _key(op: Op, operands: tuple[Value, ...]) -> object:
    if op.blocks:
        return op  # two of them are equal only where their blocks are
    return op.name, operands, tuple(sorted((key, _comparable(value)) for key, value in op.attributes.items()))


def _comparable(value: Attribute) -> str:
    """A text that is equal only for equal attributes; payloads by digest."""
    return value.digest if isinstance(value, Payload) else f"{type(value).__name__}:{value!r}"
