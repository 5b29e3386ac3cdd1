"""What all contractions share: the epilogue over the accumulator, and the way out when it cannot stand there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuvil_core.ir import Op, Value
from cuvil_core.kernel_ir import Accumulator, Axis, Contraction, Expr, Schedule, Store, Tail, Use, Within
from cuvil_core.lowering.axes import store
from cuvil_core.lowering.compose import Body, Composer, Unfused
from cuvil_core.lowering.maps import inner_results, write_groups
from cuvil_core.lowering.placement import Indices, Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import Choice, Layout


@dataclass(frozen=True, slots=True)
class Frame:
    """A contraction but for its epilogue."""

    kind: str
    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    left: Expr
    right: Expr
    indices: Indices
    """Of the root's result at a point of the axes."""
    within: tuple[Within, ...] = ()
    """Where the point lies inside the result."""


def finish(world: World, op: Op, root: Op, body: Body, composer: Composer, frame: Frame, choice: Choice) -> None:
    """Launch the contraction with the op's results as epilogue, or alone and the rest as Maps."""
    assert choice.schedule is not None, "scheduling gives every contraction its loops"
    places = [(inner, world.place(outer)) for inner, outer in zip(inner_results(op), op.results, strict=True)]
    composer.accumulators[root.result] = (frame.indices, Accumulator(root.result.dtype))
    alike = all(_same(place, places[0][1], root.result) for _, place in places)
    stores = _epilogue(composer, places, frame) if alike else None
    if stores is not None:
        _launch(world, composer, frame, choice.schedule, stores)
        return
    layout = world.decisions.layout(op.results[0])
    made = world.temporary(root.result.dtype, root.result.shape, Layout(layout.blocked))
    alone = store(composer, made, frame.indices, Accumulator(root.result.dtype), frame.within)
    _launch(world, composer, frame, choice.schedule, (alone,))
    body.cuts[root.result] = made
    write_groups(world, places, body)


def _same(place: Placement, first: Placement, result: Value) -> bool:
    return place.shape == result.shape and place.layout.blocked == first.layout.blocked


def _epilogue(composer: Composer, places: Sequence[tuple[Value, Placement]], frame: Frame) -> tuple[Store, ...] | None:
    try:
        return tuple(
            store(composer, place, frame.indices, composer.value(value, frame.indices), frame.within)
            for value, place in places
        )
    except Unfused:
        return None


def _launch(world: World, composer: Composer, frame: Frame, schedule: Schedule, stores: tuple[Store, ...]) -> None:
    if any(buffer.use is Use.UPDATE for buffer in composer.parameters.declared()):
        schedule = replace(schedule, tail=Tail.SMALLER)  # a tile that is computed twice would read its own result
    statement = Contraction(frame.axes, frame.reduce_axes, frame.left, frame.right, stores)
    world.launch(frame.kind, statement, schedule, composer.parameters)
