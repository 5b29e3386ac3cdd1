"""Graph + Decisions → Program: each op of the outer level by its strategy, then outputs that lie elsewhere."""

from collections.abc import Callable

from cuvil_core.ir import Graph, Op
from cuvil_core.lowering.calls import lower_call
from cuvil_core.lowering.checks import lower_check
from cuvil_core.lowering.control import lower_branch, lower_loop
from cuvil_core.lowering.convs import lower_conv
from cuvil_core.lowering.dots import lower_dot
from cuvil_core.lowering.effects import lower_effect
from cuvil_core.lowering.folds import lower_fold
from cuvil_core.lowering.maps import lower_concat, lower_map, lower_outputs
from cuvil_core.lowering.serial import lower_prefix, lower_scatter
from cuvil_core.lowering.world import World
from cuvil_core.program import Bind, Port, Program
from cuvil_core.scheduling import Choice, Decisions, Strategy
from cuvil_core.scheduling.units import root_of

Builder = Callable[[World, Op, Choice], None]


def lower(graph: Graph, decisions: Decisions, name: str = "model") -> Program:
    """Build the program; its interpretation equals `reference.run(graph, …)` up to the order of sums."""
    world = World(graph, decisions)
    _lower_ops(world)
    bound = [one.symbol for one in world.statements if isinstance(one, Bind)]
    return Program(
        name,
        (*(symbol.name for symbol in graph.input_symbols), *bound),
        *ports_of(graph),
        graph.guards,
        tuple(world.buffers.values()),
        tuple(world.kernels.values()),
        tuple(world.statements),
        bytes(world.weights),
    )


def _lower_ops(world: World) -> None:
    """Everything that the graph, or the block, of a world does, its outputs last."""
    for op in world.graph.ops:
        choice = world.decisions.choices[op]
        world.origin = _origin(op)
        STRATEGIES[choice.strategy](world, op, choice)
    world.origin = "output"
    lower_outputs(world)


def ports_of(graph: Graph) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Inputs and outputs as the caller sees them."""
    inputs = zip(graph.input_names, graph.inputs, graph.inputs_as, strict=True)
    outputs = zip(graph.output_names, graph.outputs, graph.outputs_as, strict=True)
    return (
        tuple(Port(label, value.type, element) for label, value, element in inputs),
        tuple(Port(label, value.type, element) for label, value, element in outputs),
    )


def _origin(op: Op) -> str:
    inner = [op] if op.region is None else op.region.ops
    nodes = dict.fromkeys(one.provenance.node or one.provenance.op_type or one.name for one in inner)
    return " + ".join(nodes)


def _nothing(world: World, op: Op, choice: Choice) -> None:
    """Views and constants: readers do the work."""


def _alias(world: World, op: Op, choice: Choice) -> None:
    if not world.alias(op.result, op.operands[0]):
        lower_map(world, op)


def _checked(world: World, op: Op, choice: Choice) -> None:
    lower_check(world, op)


def _effect(world: World, op: Op, choice: Choice) -> None:
    lower_effect(world, op)


def _call(world: World, op: Op, choice: Choice) -> None:
    lower_call(world, op)


def _map(world: World, op: Op, choice: Choice) -> None:
    lower_map(world, op)


def _fold(world: World, op: Op, choice: Choice) -> None:
    root = root_of(op)
    assert root is not None
    lower_fold(world, op, root)


def _prefix(world: World, op: Op, choice: Choice) -> None:
    lower_prefix(world, op)


def _scatter(world: World, op: Op, choice: Choice) -> None:
    lower_scatter(world, op)


def _concat(world: World, op: Op, choice: Choice) -> None:
    lower_concat(world, op)


def _conv(world: World, op: Op, choice: Choice) -> None:
    root = root_of(op)
    assert root is not None
    lower_conv(world, op, root, choice)


def _dot(world: World, op: Op, choice: Choice) -> None:
    root = root_of(op)
    assert root is not None
    lower_dot(world, op, root, choice)


def _branch(world: World, op: Op, choice: Choice) -> None:
    lower_branch(world, op, choice, _lower_ops)


def _loop(world: World, op: Op, choice: Choice) -> None:
    lower_loop(world, op, choice, _lower_ops)


STRATEGIES: dict[Strategy, Builder] = {
    Strategy.CONSTANT: _nothing,
    Strategy.VIEW: _nothing,
    Strategy.ALIAS: _alias,
    Strategy.CHECKED: _checked,
    Strategy.BIND: _effect,
    Strategy.CALL: _call,
    Strategy.MAP: _map,
    Strategy.FOLD: _fold,
    Strategy.PREFIX: _prefix,
    Strategy.SCATTER: _scatter,
    Strategy.CONCAT: _concat,
    Strategy.DIRECT: _conv,
    Strategy.POINTWISE: _conv,
    Strategy.STEM: _conv,
    Strategy.DEPTHWISE: _conv,
    Strategy.GROUPED: _conv,
    Strategy.GENERAL: _conv,
    Strategy.DOT: _dot,
    Strategy.BRANCH: _branch,
    Strategy.LOOP: _loop,
}
