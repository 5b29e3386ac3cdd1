"""Reductions: over whole axes, over windows, to the position of an extreme."""

from dataclasses import dataclass

from cuvil_core.ir import DType, Op, Value
from cuvil_core.kernel_ir import Accumulator, Axis, Combine, Expr, Fold, Index, Literal, Load, Reducer, Select, Within
from cuvil_core.lowering.axes import axes_of, store
from cuvil_core.lowering.collapse import collapse_fold
from cuvil_core.lowering.compose import Body, Composer, Unfused
from cuvil_core.lowering.expressions import all_of
from cuvil_core.lowering.maps import inner_results, new_composer, write_groups
from cuvil_core.lowering.placement import Indices, Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import Layout, schedule_fold

KINDS = {"sum": Combine.SUM, "prod": Combine.PROD, "max": Combine.MAX, "min": Combine.MIN}


@dataclass(frozen=True, slots=True)
class Reduced:
    """The reduce axes of a root, and the element at a point of all axes."""

    combine: Combine
    axes: tuple[Axis, ...]
    indices: Indices
    """Into the root's operand."""
    within: tuple[Within, ...] = ()


def lower_fold(world: World, op: Op, root: Op) -> None:
    """The op's results by one Fold; where they do not fit over its axes, the root first and the rest as Maps."""
    body = Body(world, op)
    places = [(inner, world.place(outer)) for inner, outer in zip(inner_results(op), op.results, strict=True)]
    if len(places) == 1 and _fold(world, root, body, places[0][0], places[0][1]):
        return
    layout = world.decisions.layout(op.results[0])
    made = world.temporary(root.result.dtype, root.result.shape, Layout(layout.blocked and len(root.result.shape) > 1))
    if not _fold(world, root, body, root.result, made):
        raise AssertionError("a root alone always fits over its own axes")
    body.cuts[root.result] = made
    write_groups(world, places, body)


def _fold(world: World, root: Op, body: Body, value: Value, place: Placement) -> bool:
    axes = axes_of(place)
    if axes.is_empty:
        return True
    composer = new_composer(world, body, axes)
    composer.probing[root.result] = None
    try:
        composer.value(value, axes.indices)
        found = composer.probing.pop(root.result)
        if found is None or not _covers(found, composer, axes.axes):
            return False
        composer = new_composer(world, body, axes)
        reduced = _reduced(root, found)
        composer.extents.update({axis.name: axis.extent for axis in reduced.axes})
        element = _element(composer, root, reduced)
        composer.accumulators[root.result] = (found, Accumulator(root.result.dtype))
        result = composer.value(value, axes.indices)
    except Unfused:
        return False
    stored = store(composer, place, axes.indices, result)
    reducer = Reducer(reduced.combine, element)
    statement = collapse_fold(Fold(axes.axes, reduced.axes, (reducer,), (stored,)))
    world.launch("fold", statement, schedule_fold(statement), composer.parameters)
    return True


def _covers(indices: Indices, composer: Composer, axes: tuple[Axis, ...]) -> bool:
    """True where no two points of the axes share one reduction, which would be computed twice."""
    used = frozenset(axis for index in indices for axis in index.axes)
    return all(axis.name in used for axis in axes)


def _reduced(root: Op, kept: Indices) -> Reduced:
    source = root.operands[0]
    if root.name == "window_reduce":
        return _window(root, kept)
    if root.name == "arg_reduce":
        axis = root.integer("axis")
        last = "last" if root.attributes["select_last"] else "first"
        combine = Combine(f"arg_{root.text('kind')}_{last}")
        indices = (*kept[:axis], Index.axis("r0"), *kept[axis:])
        return Reduced(combine, (Axis("r0", source.shape[axis]),), indices)
    gone = root.integers("axes")
    axes = tuple(Axis(f"r{axis}", source.shape[axis]) for axis in sorted(gone))
    left = iter(kept)
    indices = tuple(Index.axis(f"r{axis}") if axis in gone else next(left) for axis in range(len(source.shape)))
    # Without axes a reduction keeps its operand; a fold goes over one element then, since it must go over something.
    return Reduced(KINDS[root.text("kind")], axes or (Axis.of("r", 1),), indices)


def _window(root: Op, kept: Indices) -> Reduced:
    source, rank = root.operands[0], len(kept) - 2
    window, strides = root.integers("window"), root.integers("strides")
    pads, dilations = root.integers("pads"), root.integers("dilations")
    axes = tuple(Axis.of(f"k{axis}", window[axis]) for axis in range(rank))
    positions = tuple(
        kept[2 + axis] * strides[axis] + Index.axis(f"k{axis}") * dilations[axis] - pads[axis] for axis in range(rank)
    )
    within = tuple(
        Within(position, source.shape[2 + axis])
        for axis, position in enumerate(positions)
        if pads[axis] or pads[rank + axis]
    )
    return Reduced(KINDS[root.text("kind")], axes, (*kept[:2], *positions), within)


def _element(composer: Composer, root: Op, reduced: Reduced) -> Expr:
    element = composer.value(root.operands[0], reduced.indices, reduced.within)
    if not reduced.within:
        return element
    fill = identity(reduced.combine, element.dtype)
    if isinstance(element, Load) and element.within == reduced.within:
        return Load(element.access, element.dtype, element.within, fill.value)
    return Select(all_of(reduced.within), element, fill)


def identity(combine: Combine, dtype: DType) -> Literal:
    """What leaves a fold as it is."""
    if combine is Combine.SUM:
        return Literal(0.0 if dtype.is_float else 0, dtype)
    if combine is Combine.PROD:
        return Literal(1.0 if dtype.is_float else 1, dtype)
    lowest = combine is Combine.MAX
    if dtype.is_float:
        return Literal(float("-inf") if lowest else float("inf"), dtype)
    bits = 8 * dtype.itemsize
    if dtype.is_signed:
        return Literal(-(1 << (bits - 1)) if lowest else (1 << (bits - 1)) - 1, dtype)
    return Literal(0 if lowest else (1 << bits) - 1, dtype)
