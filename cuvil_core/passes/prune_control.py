"""Results of control flow that nobody needs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cuvil_core.ir import Block, Graph, Op, Value, freeze
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult


@dataclass(frozen=True, slots=True)
class PruneControl:
    """%1, %2 = loop { carries a, stacks b }; output %1  →  %1 = loop { carries a }

    A carried value goes where its result is not needed, nor what the turn makes of it for anything that is.
    """

    name: ClassVar[str] = "prune-control"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Drop results that no op reads and no output gives, and what their blocks yield for them."""
        used = set(graph.uses()) | set(graph.outputs)
        ops = tuple(_pruned(op, used) if op.blocks else op for op in graph.ops)
        changed = any(new is not old for new, old in zip(ops, graph.ops, strict=True))
        return PassResult(replace(graph, ops=ops) if changed else graph, changed)


def _pruned(op: Op, used: set[Value]) -> Op:
    wanted = {at for at, result in enumerate(op.results) if result in used}
    if op.name == "loop":
        wanted = _with_sources(op, wanted)
    if not wanted or len(wanted) == len(op.results):
        return op
    results = tuple(result for at, result in enumerate(op.results) if at in wanted)
    return (
        _loop(op, wanted, results)
        if op.name == "loop"
        else replace(op, results=results, blocks=tuple(_yielding(block, wanted, 0) for block in op.blocks))
    )


def _yielding(block: Block, wanted: set[int], first: int) -> Block:
    """The block without what it yields, and makes, for results that go; `first` outputs are none of the results."""
    kept = tuple(value for at, value in enumerate(block.outputs) if at < first or at - first in wanted)
    needed = _read(block, kept)
    ops = (op for op in block.ops if _stays(op) or not needed.isdisjoint(op.results))
    return Block(block.inputs, tuple(ops), kept)


def _loop(op: Op, wanted: set[int], results: tuple[Value, ...]) -> Op:
    """The loop without carried values and rows that go, nor their operands and arguments."""
    (block,), carried = op.blocks, op.integer("carried")
    gone = [at for at in range(carried) if at not in wanted]
    steering = len(op.operands) - len(block.inputs)
    body = _yielding(block, wanted, int(op.attributes["conditional"] is True))
    inputs = _without(block.inputs, [1 + at for at in gone])
    operands = _without(op.operands, [1 + steering + at for at in gone])
    attributes = freeze({**op.attributes, "carried": carried - len(gone)})
    return replace(
        op, operands=operands, results=results, attributes=attributes, blocks=(replace(body, inputs=inputs),)
    )


def _without(values: Sequence[Value], gone: Sequence[int]) -> tuple[Value, ...]:
    return tuple(value for at, value in enumerate(values) if at not in gone)


def _with_sources(op: Op, wanted: set[int]) -> set[int]:
    """The results, and the carried values that any turn needs to make them or to know whether it goes on."""
    (block,), carried = op.blocks, op.integer("carried")
    first = int(op.attributes["conditional"] is True)
    while True:
        read = _read(block, [value for at, value in enumerate(block.outputs) if at < first or at - first in wanted])
        found = wanted | {at for at in range(carried) if block.inputs[1 + at] in read}
        if found == wanted:
            return wanted
        wanted = found


def _read(block: Block, outputs: Sequence[Value]) -> set[Value]:
    """All values that the outputs depend on, and those of ops that may end the call."""
    needed = set(outputs)
    for op in reversed(block.ops):
        if _stays(op) or not needed.isdisjoint(op.results):
            needed.update(op.operands)
    return needed


def _stays(op: Op) -> bool:
    """True for what may end the call, and for what may hold such an op."""
    return op.name == "check" or bool(op.blocks)
