"""Neighbouring loops that walk memory as one loop become one loop."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Axis, Fold, Index, Map, Reducer, Store
from cuvil_core.kernel_ir.kernel import conditions, indices
from cuvil_core.lowering.indices import Rewriter


def collapse_map(statement: Map) -> Map:
    """`for a: for b` over offsets `k·B·a + k·b` is one loop over A·B."""
    axes = list(statement.axes)
    for outer, inner in _pairs(axes):
        if _together(statement, outer, inner):
            return collapse_map(_rewritten(statement, outer, inner))
    return statement


def collapse_fold(statement: Fold) -> Fold:
    """The same for reduced axes, whose order is free as well."""
    for outer, inner in _pairs(list(statement.axes)):
        if _together(statement, outer, inner):
            return collapse_fold(_joined(statement, outer, inner, statement.axes, ()))
    for outer, inner in _pairs(list(statement.reduce_axes)):
        if _together(statement, outer, inner) and not any(one.combine.is_arg for one in statement.reducers):
            return collapse_fold(_joined(statement, outer, inner, (), statement.reduce_axes))
    return statement


def _pairs(axes: Sequence[Axis]) -> list[tuple[Axis, Axis]]:
    return list(pairwise(axes))


def _together(statement: Map | Fold, outer: Axis, inner: Axis) -> bool:
    used = (*indices(statement), *(condition.index for condition in conditions(statement)))
    return all(_steps_on(index, outer, inner) for index in used)


def _steps_on(index: Index, outer: Axis, inner: Axis) -> bool:
    a, b = index.coefficient(outer.name), index.coefficient(inner.name)
    return a is not None and b is not None and a == b * inner.extent


def _merge(axes: tuple[Axis, ...], outer: Axis, inner: Axis) -> tuple[Axis, ...]:
    joined = Axis(inner.name, outer.extent * inner.extent)
    return tuple(joined if axis == inner else axis for axis in axes if axis != outer)


def _stores(stores: tuple[Store, ...], rewriter: Rewriter) -> tuple[Store, ...]:
    return tuple(
        Store(rewriter.access(one.access), rewriter.expr(one.value), tuple(map(rewriter.within, one.within)))
        for one in stores
    )


def _rewritten(statement: Map, outer: Axis, inner: Axis) -> Map:
    rewriter = Rewriter({outer.name: Index.of(Dim.of(0))})
    return Map(_merge(statement.axes, outer, inner), _stores(statement.stores, rewriter))


def _joined(statement: Fold, outer: Axis, inner: Axis, axes: tuple[Axis, ...], reduce_axes: tuple[Axis, ...]) -> Fold:
    rewriter = Rewriter({outer.name: Index.of(Dim.of(0))})
    return replace(
        statement,
        axes=_merge(axes, outer, inner) if axes else statement.axes,
        reduce_axes=_merge(reduce_axes, outer, inner) if reduce_axes else statement.reduce_axes,
        reducers=tuple(Reducer(one.combine, rewriter.expr(one.element)) for one in statement.reducers),
        stores=_stores(statement.stores, rewriter),
    )
