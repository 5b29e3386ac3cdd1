"""Checks of values that the caller gives: a kernel that looks at all of them, and what ends the call."""

from cuvil_core.ir import Dim, DType, Op
from cuvil_core.kernel_ir import (
    Accumulator,
    Axis,
    AxisIndex,
    Binary,
    Cast,
    Combine,
    Expr,
    Fold,
    Index,
    Literal,
    Reducer,
)
from cuvil_core.lowering.axes import axes_of, store
from cuvil_core.lowering.collapse import collapse_fold
from cuvil_core.lowering.compose import Body
from cuvil_core.lowering.maps import new_composer
from cuvil_core.lowering.world import World
from cuvil_core.program import Assert
from cuvil_core.scheduling import schedule_fold


def lower_check(world: World, op: Op) -> None:
    """One bool, whether all elements lie in 0 .. extent - 1, and an Assert of it; readers see the operand itself."""
    source, (extent,) = op.operands[0], op.dims("extent")
    if any(one == 0 for one in source.shape):
        return
    answer = world.temporary(DType.BOOL, ())
    composer = new_composer(world, Body(world, None), axes_of(answer))
    axes = tuple(Axis(f"r{position}", one) for position, one in enumerate(source.shape))
    composer.extents.update({axis.name: axis.extent for axis in axes})
    element = composer.value(source, tuple(Index.axis(axis.name) for axis in axes))
    reducer = Reducer(Combine.ALL, _inside(element, extent))
    stored = store(composer, answer, (), Accumulator(DType.BOOL))
    statement = collapse_fold(Fold((), axes or (Axis.of("r", 1),), (reducer,), (stored,)))
    world.launch("check", statement, schedule_fold(statement), composer.parameters)
    world.statements.append(Assert(answer.buffer, bounds_text(op, extent)))


def bounds_text(op: Op, extent: Dim) -> str:
    """What must hold of the caller's values; those below 0 count from the end and have been wrapped before."""
    return f"that the indices of {op.provenance} lie in {-extent} .. {extent - 1}"


def _inside(element: Expr, extent: Dim) -> Expr:
    index = element if element.dtype is DType.INT64 else Cast(element, DType.INT64)
    not_below = Binary("ge", index, Literal(0, DType.INT64))
    return Binary("and", not_below, Binary("lt", index, AxisIndex(Index.of(extent))))
