"""Ops with blocks: text and back, and what the verifier finds wrong in them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from control_graphs import TEXTS, control_graph
from cuvil_core.ir import Attribute, Block, Dim, Graph, TensorType, Value, VerifyError, parse_graph, print_graph, verify
from cuvil_core.ops import RULES


@pytest.mark.parametrize("name", TEXTS)
def test_printer_and_parser_are_inverse(name: str) -> None:
    """Each hand-made graph is sound, and its text is what it was parsed from."""
    graph = control_graph(name)
    verify(graph, RULES)
    assert print_graph(graph) == TEXTS[name]
    assert print_graph(parse_graph(print_graph(graph))) == TEXTS[name]


LOOP = "rows of a running sum"


def _with(graph: Graph, change: Callable[[Block], Block], **attributes: Attribute) -> Graph:
    """The graph with the block of its last op changed, and that op's attributes."""
    last = graph.ops[-1]
    changed = replace(last, blocks=tuple(map(change, last.blocks)), attributes={**last.attributes, **attributes})
    return replace(graph, ops=(*graph.ops[:-1], changed))


def _outsider(graph: Graph) -> Callable[[Block], Block]:
    """A block that yields a value of the outside."""
    return lambda block: replace(block, outputs=(graph.inputs[0], *block.outputs[1:]))


def _reader(graph: Graph) -> Callable[[Block], Block]:
    """A block whose first op reads a value of the outside."""

    def change(block: Block) -> Block:
        first = replace(block.ops[0], operands=(graph.inputs[0], *block.ops[0].operands[1:]))
        return replace(block, ops=(first, *block.ops[1:]))

    return change


def _other_state(block: Block) -> Block:
    """A carried value that is longer after a turn than before."""
    return replace(block, outputs=(block.inputs[3], *block.outputs[1:]))


def _wide_argument(block: Block) -> Block:
    """An argument of another shape than its operand."""
    wide = Value("wide", TensorType(block.inputs[1].dtype, (Dim.of(7),)))
    return Block((block.inputs[0], wide, *block.inputs[2:]), (), (wide, wide, wide))


def _more(block: Block) -> Block:
    """One argument more than there are operands."""
    return replace(block, inputs=(*block.inputs, Value("more", block.inputs[0].type)))


def _same(block: Block) -> Block:
    return block


BROKEN: dict[str, Callable[[Graph], Graph]] = {
    "the region yields %0 : float32.*, which it does not define": lambda g: _with(g, _outsider(g)),
    "gather reads %0 : float32.*, which is not defined before it": lambda g: _with(g, _reader(g)),
    "a value has different ranks on two ways": lambda g: _with(g, _other_state),
    "the extents 7 and 3 differ|the extents 3 and 7 differ": lambda g: _with(g, _wide_argument),
    "the body yields too few values": lambda g: _with(g, lambda block: replace(block, outputs=block.outputs[:1])),
    "more or fewer arguments": lambda g: _with(g, _more),
    "turns is one extent, or none": lambda g: _with(g, _same, turns=(Dim.of(1), Dim.of(2))),
    "the body must yield its condition first|turns must be one int64": lambda g: _with(g, _same, conditional=True),
    "it carries more values than it has operands": lambda g: _with(g, _same, carried=4),
    "loop has result types other than its rule's": lambda g: _with(g, _same, turns=(Dim.of(9),)),
    "neg has no blocks": lambda g: replace(
        g, ops=(*g.ops, replace(g.ops[-1], name="neg", operands=g.inputs, attributes={}))
    ),
    "it needs one block": lambda g: replace(g, ops=(*g.ops[:-1], replace(g.ops[-1], blocks=()))),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_each_fault_of_a_block_is_named(fault: str) -> None:
    """The error says what is wrong, and its window is that of the whole op."""
    graph = control_graph(LOOP)
    with pytest.raises(VerifyError, match=fault) as caught:
        verify(BROKEN[fault](graph), RULES)
    assert "> " in str(caught.value)
