"""Loops of Maps and Folds: order, vector axis, threads."""

from collections.abc import Iterable, Sequence

from cuvil_core.ir import Dim, product
from cuvil_core.kernel_ir import Axis, Fold, Index, Map, Schedule
from cuvil_core.kernel_ir.kernel import loads

NOMINAL = 256
"""Extent that a symbol is given when sizes are estimated: images have this many rows, sequences this many tokens."""
UNIT = 1024
"""Points of the smallest share that a thread takes: below, finding out which share it is costs more than the work."""
SHARES = 16
"""Leading loops are flattened until they surely have this many turns, so that even shares stay even."""


def nominal(extent: Dim) -> int:
    """The extent with every symbol at NOMINAL."""
    return extent.constant if extent.constant is not None else extent.evaluate(dict.fromkeys(extent.symbols, NOMINAL))


def least(extent: Dim) -> int:
    """What the extent is at least, 1 when that is not known."""
    return max(1, extent.least or 1)


def width_of(itemsizes: Iterable[int]) -> int:
    """Lanes: 16, or 8 where an element has 8 bytes."""
    return 8 if max(itemsizes, default=4) > 4 else 16


def schedule_map(statement: Map) -> Schedule:
    """Loops in the order of the axes, lanes along the last axis that the stores step through one by one."""
    axes = statement.axes
    if not axes:
        return Schedule(order=())
    vector = _unit_axis(statement, axes)
    order = [axis.name for axis in axes if axis.name != vector] + ([vector] if vector else [])
    return _split(statement, axes, order, vector, ())


def schedule_chain(outer: Sequence[Axis], shared: int, statement: Map) -> Schedule:
    """Outer axes turn by turn, the first `shared` of them between threads; within a turn lanes as in any Map."""
    vector = _unit_axis(statement, statement.axes)
    order = [axis.name for axis in statement.axes if axis.name != vector] + ([vector] if vector else [])
    inner = Schedule(tuple(order), vector=vector, width=_width(statement))
    return Schedule(tuple(axis.name for axis in outer), shared, inner=(inner,))


def schedule_fold(statement: Fold) -> Schedule:
    """Lanes along the innermost kept axis that is stored one by one, else along the reduced axis with unit steps."""
    kept, reduced = statement.axes, statement.reduce_axes
    names = [axis.name for axis in kept]
    inner = [axis.name for axis in reduced]
    is_arg = any(reducer.combine.is_arg for reducer in statement.reducers)
    along = None if is_arg else _reduced_vector(statement, reduced)
    if along is not None and (not kept or _steps(statement, along) > 0):
        inner = [name for name in inner if name != along] + [along]
        schedule = _split(statement, kept, names, None, tuple(inner))
        return Schedule(
            schedule.order,
            schedule.parallel,
            schedule.tiles,
            vector=along,
            width=_width(statement),
            unroll=((along, 4),),
        )
    vector = None if is_arg else _unit_axis(statement, kept)
    order = [name for name in names if name != vector] + ([vector] if vector else [])
    return _split(statement, kept, order, vector, tuple(inner))


def _split(
    statement: Map | Fold, axes: Sequence[Axis], order: list[str], vector: str | None, inner: tuple[str, ...]
) -> Schedule:
    """Share the leading loops; an axis whose turns are too small to be shares is cut into strips, once."""
    extents = {axis.name: axis.extent for axis in axes}
    below = nominal(product(axis.extent for axis in (*axes, *statement.reduce_axes)))
    turns, parallel, names = 1, 0, list(order)
    tiles: tuple[tuple[str, int], ...] = ()
    for axis in order:
        if turns >= SHARES or below < 2 * UNIT:
            break
        below //= max(1, nominal(extents[axis]))
        if below < UNIT:
            strip = -(-(UNIT // max(1, below)) // STRIP) * STRIP if axis == vector else UNIT // max(1, below)
            if nominal(extents[axis]) > strip:
                names.insert(parallel, axis)
                tiles, parallel = ((axis, strip),), parallel + 1
            break
        turns *= least(extents[axis])
        parallel += 1
    return Schedule((*names, *inner), parallel, tiles, vector=vector, width=_width(statement))


STRIP = 256
"""Strips along the lanes are multiples of this many elements."""


def _width(statement: Map | Fold) -> int:
    sizes = [load.dtype.itemsize for load in loads(statement)]
    return width_of([*sizes, *(store.value.dtype.itemsize for store in statement.stores)])


def _unit_axis(statement: Map | Fold, axes: Sequence[Axis]) -> str | None:
    """The axis along which all stores step by one; long enough to fill lanes."""
    for axis in reversed(axes):
        steps = [store.access.index.coefficient(axis.name) for store in statement.stores]
        if all(step is not None and step == 1 for step in steps):
            return axis.name if axis.extent.constant is None or axis.extent.constant >= 4 else None
    return None


def _reduced_vector(statement: Fold, reduced: Sequence[Axis]) -> str | None:
    """A reduced axis along which every load steps by one or not at all."""
    indices = [load.access.index for load in loads(statement)]
    for axis in reversed(reduced):
        if nominal(axis.extent) >= 8 and any(_is(index, axis.name, 1) for index in indices):
            fits = all(_is(index, axis.name, 1) or _is(index, axis.name, 0) for index in indices)
            return axis.name if fits else None
    return None


def _steps(statement: Fold, axis: str) -> int:
    return sum(_is(load.access.index, axis, 1) for load in loads(statement))


def _is(index: Index, axis: str, step: int) -> bool:
    coefficient = index.coefficient(axis)
    return coefficient is not None and coefficient == step
