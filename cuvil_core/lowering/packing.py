"""Operands in the order in which a contraction reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil_core.ir import Dim, Payload, Value, product
from cuvil_core.kernel_ir import Access, Axis, Index, Load, Map, Select, Store, Use, Within
from cuvil_core.kernel_ir.analysis import index_range, is_never_negative
from cuvil_core.kernel_ir.index import AxisAtom, Quotient, Remainder
from cuvil_core.lowering.axes import zero
from cuvil_core.lowering.compose import Body, Composer
from cuvil_core.lowering.expressions import all_of
from cuvil_core.lowering.indices import row_major
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Indices, Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import PLAIN, schedule_map


@dataclass(frozen=True, slots=True)
class Packing:
    """A dense array over `axes`, outermost first; its element is the operand's at `indices`, or zero out of bounds."""

    axes: tuple[Axis, ...]
    indices: Indices

    @property
    def shape(self) -> tuple[Dim, ...]:
        """Extents of the packed array."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def position(self) -> Index:
        """Offset of the element at a point of the axes."""
        total = Index()
        for axis, stride in zip(self.axes, row_major(self.shape), strict=True):
            total = total + Index.axis(axis.name) * stride
        return total


def pack(world: World, value: Value, packing: Packing, body: Body) -> Placement:
    """The packed operand: a weight when the value is a constant, else written by a Map in this call."""
    outer = body.outer(value)
    if (early := world.before(outer)) is not None:
        return pack(early[0], early[1], packing, Body(early[0], None))
    payload = None
    if body.placement(outer) is None and body.maker(outer).name == "constant":
        payload = body.maker(outer).payload()
    if payload is not None:
        packed = _evaluate(packing, _bits(payload))
        name = world.array(packed, payload.dtype)
        return Placement.whole(name, payload.dtype, packing.shape, PLAIN)
    target = world.temporary(value.dtype, (product(packing.shape),))
    parameters = Parameters(world.buffers)
    composer = Composer(body, parameters, {axis.name: axis.extent for axis in packing.axes})
    within = tuple(
        Within(index, extent)
        for index, extent in zip(packing.indices, value.shape, strict=True)
        if not _always(index, extent, composer.extents)
    )
    element = composer.value(value, packing.indices, within)
    if within and not isinstance(element, Load):
        element = Select(all_of(within), element, zero(value.dtype))
    statement = Map(packing.axes, (Store(Access(parameters.name(target, Use.WRITE), packing.position), element),))
    world.launch("pack", statement, schedule_map(statement), parameters)
    return Placement.whole(target.buffer, value.dtype, packing.shape, PLAIN)


def _always(index: Index, extent: Dim, extents: Mapping[str, Dim]) -> bool:
    low, high = index_range(index, extents)
    if low is None or high is None:
        return False
    return is_never_negative(low) and is_never_negative(extent - 1 - high)


Array = np.ndarray[Any, np.dtype[Any]]


def _bits(payload: Payload) -> Array:
    """The elements as unsigned integers: packing moves them and never computes."""
    return np.frombuffer(payload.data, f"u{payload.dtype.itemsize}").reshape(payload.shape)


def _evaluate(packing: Packing, array: Array) -> Array:
    """The packed array of a constant, by NumPy's indexing."""
    extents = [axis.extent.constant or 0 for axis in packing.axes]
    grid = dict(zip((axis.name for axis in packing.axes), np.ogrid[tuple(slice(0, n) for n in extents)], strict=True))
    inside: Array = np.ones((1,) * len(extents), bool)
    places = []
    for index, extent in zip(packing.indices, array.shape, strict=True):
        position = _numbers(index, grid)
        inside = inside & (position >= 0) & (position < extent)
        places.append(np.clip(position, 0, max(0, extent - 1)))
    chosen = np.broadcast_to(np.where(inside, array[tuple(places)], np.zeros((), array.dtype)), extents)
    return np.ascontiguousarray(chosen)


def _numbers(index: Index, grid: Mapping[str, Array]) -> Array:
    total: Array = np.asarray(index.offset.constant or 0)
    for atom, coefficient in index.terms:
        match atom:
            case AxisAtom():
                value = grid[atom.axis]
            case Quotient():
                value = _numbers(atom.numerator, grid) // (atom.divisor.constant or 1)
            case Remainder():
                value = _numbers(atom.numerator, grid) % (atom.divisor.constant or 1)
            case _:
                raise TypeError("a packing never looks positions up")
        total = total + value * (coefficient.constant or 0)
    return total
