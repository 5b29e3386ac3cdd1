"""Kernels whose outer loop is a chain: running totals, and rows stored at looked-up indices.

Points of a Map are free of order, turns of the outer axes are not: what one turn stores the next one reads.
"""

from collections.abc import Sequence

from cuvil_core.ir import Dim, DType, Op, dim_max, dim_min
from cuvil_core.kernel_ir import (
    Access,
    Axis,
    Binary,
    Cast,
    Expr,
    Index,
    Load,
    Map,
    Store,
    Use,
    Within,
)
from cuvil_core.lowering.collapse import collapse_map
from cuvil_core.lowering.compose import Body, Composer
from cuvil_core.lowering.maps import write
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Indices, Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import schedule_chain, schedule_map

JOINS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
"""Kind → the operation that joins what is there with what comes."""


def lower_prefix(world: World, op: Op) -> None:
    """The first slice as it is, then result[i + 1] = result[i] joined with x[i + 1].

    The axes before `axis` are shared between threads.
    """
    place, axis = world.place(op.result), op.integer("axis")
    if any(extent == 0 for extent in op.result.shape):
        return
    lead, lead_at = _axes(place.shape[:axis], 0)
    inner, inner_at = _axes(place.shape[axis + 1 :], axis + 1)
    _first_slice(world, op, place, (lead, inner), (lead_at, inner_at))
    chain = Axis("i", dim_max(place.shape[axis] - 1, 0))
    if chain.extent == 0:
        return
    composer = _composer(world, op, (*lead, chain, *inner))
    here = (*lead_at, Index.axis("i") + 1, *inner_at)
    element = composer.value(op.operands[0], here)
    former = _load(composer, place, (*lead_at, Index.axis("i"), *inner_at), ())
    joined = Binary(JOINS[op.text("kind")], former, element)
    statement = Map(inner, (_store(composer, place, here, joined, ()),))
    _launch(world, "prefix", (*lead, chain), len(lead), statement, composer)


def _first_slice(
    world: World,
    op: Op,
    place: Placement,
    axes: tuple[tuple[Axis, ...], tuple[Axis, ...]],
    indices: tuple[Indices, Indices],
) -> None:
    """A Map that writes it; of an extent that may be 0 the axis says so."""
    count = dim_min(place.shape[op.integer("axis")], 1)
    one = () if count == 1 else (Axis("i", count),)
    at = Index() if count == 1 else Index.axis("i")
    every = (*axes[0], *one, *axes[1])
    composer = _composer(world, op, every)
    here = (*indices[0], at, *indices[1])
    name = composer.parameters.name(place, Use.WRITE)
    stored = Store(Access(name, place.index(here, composer.extents)), composer.value(op.operands[0], here))
    statement = collapse_map(Map(every, (stored,)))
    world.launch("first", statement, schedule_map(statement), composer.parameters)


def lower_scatter(world: World, op: Op) -> None:
    """A copy of the data, then row after row into it."""
    place = world.place(op.result)
    data, indices, updates = op.operands
    if any(extent == 0 for extent in op.result.shape):
        return
    write(world, [(data, place)], Body(world, None))
    if indices.shape[0] == 0:
        return
    rows = Axis("m", indices.shape[0])
    inner, inner_at = _axes(place.shape[1:], 1)
    composer = _composer(world, op, (rows, *inner))
    index = composer.value(indices, (Index.axis("m"),))
    row = Index.indirect(index if index.dtype is DType.INT64 else Cast(index, DType.INT64))
    within = (Within(row, place.shape[0]),)
    target = (row, *inner_at)
    value = composer.value(updates, (Index.axis("m"), *inner_at))
    join = JOINS.get(op.text("kind"))
    if join is not None:
        value = Binary(join, _load(composer, place, target, within), value)
    statement = Map(inner, (_store(composer, place, target, value, within),))
    _launch(world, "scatter", (rows,), 0, statement, composer)


def _axes(shape: Sequence[Dim], first: int) -> tuple[tuple[Axis, ...], Indices]:
    """One axis for each extent but 1, and the indices along all."""
    axes, indices = [], []
    for position, extent in enumerate(shape, first):
        if extent != 1:
            axes.append(Axis(f"d{position}", extent))
        indices.append(Index.axis(f"d{position}") if extent != 1 else Index())
    return tuple(axes), tuple(indices)


def _composer(world: World, op: Op, axes: tuple[Axis, ...]) -> Composer:
    extents = {axis.name: axis.extent for axis in axes}
    return Composer(Body(world, op), Parameters(world.buffers), extents)


def _load(composer: Composer, place: Placement, indices: Indices, within: tuple[Within, ...]) -> Load:
    name = composer.parameters.name(place, Use.UPDATE)
    return Load(Access(name, place.index(indices, composer.extents)), place.dtype, within)


def _store(composer: Composer, place: Placement, indices: Indices, value: Expr, within: tuple[Within, ...]) -> Store:
    """A store into a buffer whose other elements stay."""
    name = composer.parameters.name(place, Use.UPDATE)
    return Store(Access(name, place.index(indices, composer.extents)), value, within)


def _launch(world: World, kind: str, outer: tuple[Axis, ...], shared: int, statement: Map, composer: Composer) -> None:
    joined = collapse_map(statement)
    world.launch_kernel(kind, (joined,), outer, schedule_chain(outer, shared, joined), composer.parameters)
