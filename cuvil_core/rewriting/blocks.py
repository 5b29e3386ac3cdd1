"""Passes inside the blocks of control flow: each block is a graph of its own, under the guards of the whole."""

from collections.abc import Callable
from dataclasses import replace

from cuvil_core.ir import Block, Graph, Op
from cuvil_core.rewriting.driver import PassResult
from cuvil_core.rewriting.rule import Note

Apply = Callable[[Graph], PassResult]


def in_blocks(graph: Graph, apply: Apply) -> PassResult:
    """Give every block of the outer level to `apply`, in order; guards that it adds become guards of the graph."""
    if not any(op.blocks for op in graph.ops):
        return PassResult(graph, False)
    walk = _Walk(graph, apply)
    ops = tuple(walk.op(op) if op.blocks else op for op in graph.ops)
    changed = walk.changed
    return PassResult(replace(walk.graph, ops=ops) if changed else graph, changed, tuple(walk.notes))


class _Walk:
    """The graph whose guards grow while its blocks are rewritten."""

    def __init__(self, graph: Graph, apply: Apply) -> None:
        self.graph, self._apply = graph, apply
        self.changed = False
        self.notes: list[Note] = []

    def op(self, op: Op) -> Op:
        """The op with rewritten blocks."""
        blocks = tuple(map(self._block, op.blocks))
        same = all(new is old for new, old in zip(blocks, op.blocks, strict=True))
        return op if same else replace(op, blocks=blocks)

    def _block(self, block: Block) -> Block:
        result = self._apply(self.graph.inner(block))
        self.notes.extend(result.notes)
        if not result.changed:
            return block
        self.changed = True
        self.graph = replace(self.graph, guards=result.graph.guards)
        return Block(result.graph.inputs, result.graph.ops, result.graph.outputs)
