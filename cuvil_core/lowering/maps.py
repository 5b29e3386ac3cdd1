"""Maps: pure expressions, copies into other layouts, concatenations."""

from collections.abc import Sequence

from cuvil_core.ir import Dim, Op, Value
from cuvil_core.kernel_ir import Map
from cuvil_core.lowering.axes import Axes, axes_of, store
from cuvil_core.lowering.collapse import collapse_map
from cuvil_core.lowering.compose import Body, Composer
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import PLAIN, Layout, schedule_map


def lower_map(world: World, op: Op) -> None:
    """All results of an op; those of one shape and layout by one kernel."""
    body = Body(world, op)
    pairs = [(inner, world.place(outer)) for inner, outer in zip(inner_results(op), op.results, strict=True)]
    write_groups(world, pairs, body)


def write_groups(world: World, pairs: Sequence[tuple[Value, Placement]], body: Body) -> None:
    """Compute values into their places, one Map for each group of equal shapes and layouts."""
    groups: dict[tuple[object, ...], list[tuple[Value, Placement]]] = {}
    for value, place in pairs:
        groups.setdefault((place.shape, place.layout.blocked), []).append((value, place))
    for group in groups.values():
        write(world, group, body)


def inner_results(op: Op) -> tuple[Value, ...]:
    """The values of the body that are the op's results."""
    return op.results if op.region is None else op.region.outputs


def write(world: World, pairs: Sequence[tuple[Value, Placement]], body: Body) -> None:
    """One Map that computes values of one shape and layout into their places."""
    axes = axes_of(pairs[0][1])
    if axes.is_empty:
        return
    composer = new_composer(world, body, axes)
    stores = tuple(store(composer, place, axes.indices, composer.value(value, axes.indices)) for value, place in pairs)
    statement = collapse_map(Map(axes.axes, stores))
    world.launch("map", statement, schedule_map(statement), composer.parameters)


def new_composer(world: World, body: Body, axes: Axes) -> Composer:
    """A composer for a kernel over these axes."""
    composer = Composer(body, Parameters(world.buffers), axes.extents)
    composer.ragged = axes.ragged
    return composer


def copied(world: World, value: Value, layout: Layout, body: Body) -> Placement:
    """The value in a layout: as it lies when that serves, else a copy, made once."""
    outer = body.outer(value)
    place = body.placement(outer)
    if place is not None and serves(place, layout):
        return place
    key = (outer, layout)
    if key not in world.copies:
        target = world.temporary(outer.dtype, outer.shape, layout)
        write(world, [(outer, target)], body)
        world.copies[key] = target
    return world.copies[key]


def serves(place: Placement, layout: Layout) -> bool:
    """True where a reader that wants `layout` can read the value as it lies: the same order, at least its halo."""
    if place.layout.blocked != layout.blocked:
        return False
    if not layout.halo:
        return True
    pairs = zip(place.layout.halo or ((0, 0),) * len(layout.halo), layout.halo, strict=True)
    return all(have[0] >= want[0] and have[1] >= want[1] for have, want in pairs)


def lower_concat(world: World, op: Op) -> None:
    """Copy those operands that do not lie in the result already."""
    axis, start = op.integer("axis"), Dim.of(0)
    target = world.place(op.result)
    for operand in op.operands:
        if world.decisions.homes.get(operand) is not op.result and operand.shape[axis] != 0:
            place = _part(target, operand, axis, start)
            if place is None:
                write(world, [(op.result, target)], Body(world, op))
                return
            write(world, [(operand, place)], Body(world, None))
        start = start + operand.shape[axis]


def _part(target: Placement, operand: Value, axis: int, start: Dim) -> Placement | None:
    """None where a blocked concat does not fall on whole blocks, or lies along an axis with a halo."""
    if target.layout.blocked and axis == 1 and (start.exact_div(16) is None or operand.shape[1].exact_div(16) is None):
        return None
    if target.layout.halo and axis >= 2:
        return None
    return target.part(operand.shape, axis, start)


def lower_outputs(world: World) -> None:
    """Copy outputs that do not lie in the caller's buffers yet."""
    for position, value in enumerate(world.graph.outputs):
        if not world.is_claimed(position):
            target = Placement.whole(world.claim(position), value.dtype, value.shape, PLAIN)
            write(world, [(value, target)], Body(world, None))
