"""Control flow: blocks become statements inside a Branch or a Loop, values that go round lie in pairs of buffers."""

from collections.abc import Callable

from cuvil_core.ir import DType, Op, Value, product
from cuvil_core.kernel_ir import Access, Index, Load, Map, Store, Use
from cuvil_core.lowering.axes import axes_of, zero
from cuvil_core.lowering.collapse import collapse_map
from cuvil_core.lowering.compose import Body
from cuvil_core.lowering.maps import copied, new_composer, write
from cuvil_core.lowering.placement import Placement
from cuvil_core.lowering.world import World
from cuvil_core.ops.control import fixed_operands
from cuvil_core.program import Branch, Carried, Loop
from cuvil_core.scheduling import PLAIN, Choice, schedule_map

LowerOps = Callable[[World], None]
"""Lowers all that a world's graph does."""


def lower_branch(world: World, op: Op, choice: Choice, lower_ops: LowerOps) -> None:
    """Both sides write the results."""
    origin = world.origin
    condition = _fresh(world, op.operands[0])
    arguments = [_argument(world, value) for value in op.operands[1:]]
    targets = [world.place(result) for result in op.results]
    sides = []
    for block, decisions in zip(op.blocks, choice.blocks, strict=True):
        inner = world.inside(block, decisions, arguments, targets)
        lower_ops(inner)
        sides.append(tuple(inner.statements))
    world.statements.append(Branch(condition.buffer, sides[0], sides[1], origin))


def lower_loop(world: World, op: Op, choice: Choice, lower_ops: LowerOps) -> None:
    """Carried values change places with what the turn made of them; rows are stored at the turn's number."""
    origin, (block,), (decisions,) = world.origin, op.blocks, choice.blocks
    turns, conditional = op.dims("turns"), op.attributes["conditional"] is True
    carried, steering = op.integer("carried"), fixed_operands(turns, conditional)
    limit = turns[0] if turns else _fresh(world, op.operands[0]).buffer
    condition = [_fresh(world, op.operands[steering - 1])] if conditional else []
    finals, rows = op.results[:carried], op.results[carried:]
    current = [_fresh(world, start, final) for start, final in zip(op.operands[steering:], finals, strict=False)]
    following = [world.temporary(value.dtype, value.shape) for value in finals]
    captured = [_argument(world, value) for value in op.operands[steering + carried :]]
    stacks = [world.place(value) for value in rows]
    if conditional or (turns and (turns[0].least or 0) < 1):
        for stack in stacks:
            _clear(world, stack)
    counter = world.temporary(DType.INT64, ())
    unchanging = dict(zip(block.inputs[1 + carried :], op.operands[steering + carried :], strict=True))
    inner = world.inside(block, decisions, [counter, *current, *captured], [*condition, *following], unchanging)
    lower_ops(inner)
    for value, stack in zip(block.outputs[conditional + carried :], stacks, strict=True):
        _store_row(inner, value, stack, counter)
    pairs = tuple(Carried(one.buffer, other.buffer) for one, other in zip(current, following, strict=True))
    steered = condition[0].buffer if condition else None
    world.statements.append(Loop(limit, tuple(inner.statements), pairs, steered, counter.buffer, origin))
    for final, place in zip(finals, current, strict=True):
        world.put(final, place)


def _argument(world: World, value: Value) -> Placement:
    """Where a block finds a value of the outside: as it lies, row-major; a view is made into bytes first."""
    return copied(world, value, PLAIN, Body(world, None))


def _fresh(world: World, value: Value, like: Value | None = None) -> Placement:
    """A copy that is nobody else's, in the spelling of the shape of `like`."""
    target = world.temporary(value.dtype, (like or value).shape)
    write(world, [(value, target)], Body(world, None))
    return target


def _store_row(world: World, value: Value, stack: Placement, counter: Placement) -> None:
    """The turn's row of a stacked result."""
    row = Placement.whole(stack.buffer, value.dtype, stack.shape[1:], PLAIN)
    axes = axes_of(row)
    if axes.is_empty:
        return
    composer = new_composer(world, Body(world, None), axes)
    element = composer.value(value, axes.indices)
    turn = Load(Access(composer.parameters.name(counter, Use.READ), Index()), DType.INT64)
    place = row.index(axes.indices, composer.extents) + Index.indirect(turn) * product(row.shape)
    name = composer.parameters.name(stack, Use.WRITE)
    statement = collapse_map(Map(axes.axes, (Store(Access(name, place), element),)))
    world.launch("row", statement, schedule_map(statement), composer.parameters)


def _clear(world: World, stack: Placement) -> None:
    """Zeros in a stack that may get fewer rows than it has, or none: a program may not read what nothing writes."""
    axes = axes_of(stack)
    if axes.is_empty:
        return
    composer = new_composer(world, Body(world, None), axes)
    name = composer.parameters.name(stack, Use.WRITE)
    place = stack.index(axes.indices, composer.extents)
    statement = collapse_map(Map(axes.axes, (Store(Access(name, place), zero(stack.dtype)),)))
    world.launch("clear", statement, schedule_map(statement), composer.parameters)
