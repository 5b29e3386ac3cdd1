"""Maps: pure expressions, copies into other layouts, concatenations."""

from collections.abc import Sequence

from cuvil_core.ir import Dim, Op, Value
from cuvil_core.kernel_ir import Access, Axis, Index, Load, Map, Store, Use
from cuvil_core.lowering.axes import Axes, axes_of, store
from cuvil_core.lowering.collapse import collapse_map
from cuvil_core.lowering.compose import Body, Composer
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import PLAIN, Layout, schedule_map
from cuvil_core.scheduling.layout import BLOCKED, HALF, is_aligned, starts_of


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
    if (early := world.before(outer)) is not None:
        return copied(early[0], early[1], layout, Body(early[0], None))
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
    axis, target = op.integer("axis"), world.place(op.result)
    for operand, start in zip(op.operands, starts_of([one.shape for one in op.operands], axis), strict=True):
        if world.decisions.homes.get(operand) is op.result or operand.shape[axis] == 0:
            continue
        if target.layout.halo and axis >= 2:  # a part along an axis with a halo has no place of its own
            write(world, [(op.result, target)], Body(world, op))
            return
        if target.layout.blocked and axis == 1 and not (is_aligned(start) and is_aligned(operand.shape[1])):
            _copy_halves(world, operand, target, start)
        else:
            write(world, [(operand, target.part(operand.shape, axis, start))], Body(world, None))


def _copy_halves(world: World, operand: Value, target: Placement, start: Dim) -> None:
    """Channels that begin in the middle of a block: vectors of half a block keep together on both sides."""
    source = copied(world, operand, BLOCKED, Body(world, None))
    first, count = start.exact_div(HALF), operand.shape[1].exact_div(HALF)
    assert first is not None and count is not None, "scheduling blocks a concat only by whole halves"
    flat = (*operand.shape[:1], Dim.of(1), *operand.shape[2:])
    images = axes_of(Placement.whole(source.buffer, source.dtype, flat, PLAIN))
    axes = (*images.axes, Axis("half", count), Axis.of("lane", HALF))
    extents = {axis.name: axis.extent for axis in axes}
    parameters = Parameters(world.buffers)
    offsets = []
    for place, half in ((source, Index.axis("half")), (target, Index.axis("half") + first)):
        lane = half % 2 * HALF + Index.axis("lane")
        offsets.append(place.block_index((images.indices[0], half // 2, *images.indices[2:]), lane, extents))
    load = Load(Access(parameters.name(source, Use.READ), offsets[0]), source.dtype)
    statement = Map(axes, (Store(Access(parameters.name(target, Use.WRITE), offsets[1]), load),))
    world.launch("halves", statement, schedule_map(statement), parameters)


def lower_outputs(world: World) -> None:
    """Copy outputs that do not lie in the caller's buffers yet."""
    for position, value in enumerate(world.graph.outputs):
        if not world.is_claimed(position):
            write(world, [(value, world.claim(position))], Body(world, None))
