"""Borders of zeros around images."""

from typing import TYPE_CHECKING

from cuvil_core.ir import Dim, product
from cuvil_core.kernel_ir import Access, Axis, Index, Map, Schedule, Store, Use
from cuvil_core.lowering.axes import zero
from cuvil_core.lowering.indices import row_major
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Placement
from cuvil_core.scheduling import LANES

if TYPE_CHECKING:
    from cuvil_core.lowering.world import World


def zero_borders(world: "World", place: Placement) -> None:
    """One launch that zeroes the halo of a value that fills its buffer: for each image plane, side by side.

    Sides of axis d run over the interior of the axes before d and the whole of those after it, so no element is written
    twice.
    """
    if not place.layout.halo:
        return
    extents = place.layout.physical(place.shape)
    images = product(extents[:2])
    parameters = Parameters(world.buffers)
    name = parameters.name(place, Use.WRITE)
    spatial = place.shape[2:]
    body: list[Map] = []
    for axis, (low, high) in enumerate(place.layout.halo):
        for first, count in ((Dim.of(0), low), (spatial[axis] + low, high)):
            if count:
                body.append(_side(place, name, axis, first, count, f"{len(body)}"))
    inner = tuple(Schedule(tuple(axis.name for axis in one.axes), vector=one.axes[-1].name) for one in body)
    schedule = Schedule(("image",), 1, inner=inner)
    world.launch_kernel("halo", tuple(body), (Axis("image", images),), schedule, parameters)


def _side(place: Placement, name: str, axis: int, first: Dim, count: int, tag: str) -> Map:
    """Zeros at positions first … first+count-1 of one spatial axis; `tag` keeps axis names unique in the kernel."""
    spatial, halo = place.shape[2:], place.layout.halo
    padded = [extent + low + high for extent, (low, high) in zip(spatial, halo, strict=True)]
    lanes = Dim.of(LANES if place.layout.blocked else 1)
    strides = row_major((*padded, lanes))
    index = Index.axis("image") * (product(padded) * lanes) + (Index.axis(f"side{tag}") + first) * strides[axis]
    axes = []
    for before in range(axis):
        axes.append(Axis(f"row{tag}_{before}", spatial[before]))
        index = index + (Index.axis(f"row{tag}_{before}") + halo[before][0]) * strides[before]
    axes += [Axis.of(f"side{tag}", count), Axis(f"rest{tag}", strides[axis])]
    return Map(tuple(axes), (Store(Access(name, index + Index.axis(f"rest{tag}")), zero(place.dtype)),))
