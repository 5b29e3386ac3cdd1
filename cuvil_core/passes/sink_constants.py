"""Constants that blocks take as operands stand inside the blocks, where they can be folded and packed."""

from dataclasses import dataclass, replace
from typing import ClassVar

from cuvil_core.ir import Block, Graph, Op, Value
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult


@dataclass(frozen=True, slots=True)
class SinkConstants:
    """%2 = constant; loop %1, %2 { uses its argument for %2 }  →  loop %1 { %k = constant; uses %k }

    Operands that no block reads go too. Values that a loop carries stay: the next turn has others.
    """

    name: ClassVar[str] = "sink-constants"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Rewrite each op of control flow of the outer level."""
        producers = graph.producers()
        ops = tuple(_sunk(op, producers) if op.blocks else op for op in graph.ops)
        changed = any(new is not old for new, old in zip(ops, graph.ops, strict=True))
        return PassResult(replace(graph, ops=ops) if changed else graph, changed)


def _sunk(op: Op, producers: dict[Value, Op]) -> Op:
    steering = len(op.operands) - len(op.blocks[0].inputs)
    """Operand i is argument i - steering; a loop's argument 0 is its counter."""
    first = 0 if op.name == "if" else 1 + op.integer("carried")
    gone = {
        argument: op.operands[steering + argument]
        for argument in range(first, len(op.blocks[0].inputs))
        if _is_constant(op.operands[steering + argument], producers) or _unread(op, argument)
    }
    if not gone:
        return op
    blocks = tuple(_block(block, gone, producers) for block in op.blocks)
    kept = (value for position, value in enumerate(op.operands) if position - steering not in gone)
    return replace(op, operands=tuple(kept), blocks=blocks)


def _is_constant(value: Value, producers: dict[Value, Op]) -> bool:
    maker = producers.get(value)
    return maker is not None and maker.name == "constant"


def _unread(op: Op, argument: int) -> bool:
    """True where no block reads its argument, nor gives it back."""
    return not any(_reads(block, block.inputs[argument]) for block in op.blocks)


def _reads(block: Block, value: Value) -> bool:
    return value in block.outputs or any(value in op.operands for op in block.ops)


def _block(block: Block, gone: dict[int, Value], producers: dict[Value, Op]) -> Block:
    """The block with constants in place of arguments that it reads; the argument becomes the constant's result."""
    inside = [
        replace(producers[outer], results=(block.inputs[argument],))
        for argument, outer in gone.items()
        if _is_constant(outer, producers) and _reads(block, block.inputs[argument])
    ]
    inputs = tuple(value for argument, value in enumerate(block.inputs) if argument not in gone)
    return Block(inputs, (*inside, *block.ops), block.outputs)
