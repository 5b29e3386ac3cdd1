"""Control flow whose way is known is no control flow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cuvil_core.ir import Block, Dim, DType, Graph, Op, Payload, Value
from cuvil_core.ops import RULES
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Editor, Facts, PassResult, apply_rules


@dataclass(frozen=True, slots=True)
class _TakeSide:
    name: ClassVar[str] = "take-known-side"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """What the side gives that a constant condition takes."""
        condition = facts.payload(op.operands[0]) if op.name == "if" else None
        if condition is None:
            return None
        return _inlined(op.blocks[0 if condition.item() else 1], op.operands[1:], editor)


@dataclass(frozen=True, slots=True)
class _SingleTurn:
    name: ClassVar[str] = "inline-single-turn"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """What the only turn of a loop gives, its rows with an axis of extent 1."""
        if op.name != "loop" or op.attributes["conditional"] is True or op.dims("turns") != (Dim.of(1),):
            return None
        counter = editor.constant(Payload.scalar(DType.INT64, 0))
        found = _inlined(op.blocks[0], (counter, *op.operands), editor)
        carried = op.integer("carried")
        rows = (editor.emit("reshape", row, shape=(op.dims("turns")[0], *row.shape)) for row in found[carried:])
        return (*found[:carried], *rows)


def _inlined(block: Block, arguments: Sequence[Value], editor: Editor) -> tuple[Value, ...]:
    """The block's ops over values of the outside; what its outputs are there."""
    inside = dict(zip(block.inputs, arguments, strict=True))
    for op in block.ops:
        operands = tuple(inside[operand] for operand in op.operands)
        copy = replace(op, operands=operands, results=tuple(editor.value(result.type) for result in op.results))
        inside |= zip(op.results, copy.results, strict=True)
        editor.keep(copy)
        editor.facts.count_uses(operands)
    return tuple(inside[output] for output in block.outputs)


@dataclass(frozen=True, slots=True)
class InlineControl:
    """if %constant, x { … } { … }  →  the side that is taken;  loop of one turn  →  the turn"""

    name: ClassVar[str] = "inline-control"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Apply the rules of this file until none matches."""
        return apply_rules(graph, (_TakeSide(), _SingleTurn()), RULES)
