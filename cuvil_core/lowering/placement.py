"""Where a value's elements lie: logical indices → element offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import Index
from cuvil_core.kernel_ir.analysis import simplify
from cuvil_core.lowering.indices import join_divisions, row_major
from cuvil_core.scheduling import LANES, Layout

Indices = tuple[Index, ...]
"""One an axis of a value."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A value inside a buffer."""

    buffer: str
    dtype: DType
    shape: tuple[Dim, ...]
    layout: Layout
    strides: tuple[Dim, ...]
    """Elements, one a physical axis."""
    offset: Dim
    contiguous: bool
    """The value fills the buffer without gaps, in physical order."""
    padded: bool = False
    """Constants: readable, and zero, up to a multiple of LANES elements past the end."""

    @staticmethod
    def whole(buffer: str, dtype: DType, shape: tuple[Dim, ...], layout: Layout, padded: bool = False) -> "Placement":
        """A value that has a buffer to itself."""
        strides = row_major(layout.physical(shape))
        return Placement(buffer, dtype, shape, layout, strides, Dim.of(0), not layout.halo, padded)

    def part(self, shape: tuple[Dim, ...], axis: int, start: Dim) -> "Placement":
        """The place of an operand inside a concatenation along `axis`; blocked channels start at a whole block."""
        step = self.strides[axis]
        if self.layout.blocked and axis == 1:
            blocks = start.exact_div(LANES)
            assert blocks is not None, "scheduling gives homes at whole blocks only"
            start = blocks
        low = self.layout.halo[axis - 2][0] if self.layout.halo and axis >= 2 else 0
        assert low == 0, "a part along an axis with a halo has no halo of its own"
        return replace(self, shape=shape, offset=self.offset + start * step, contiguous=False, padded=False)

    def reshaped(self, shape: tuple[Dim, ...]) -> "Placement":
        """The same bytes under another shape."""
        strides = row_major(self.layout.physical(shape))
        return replace(self, shape=shape, strides=strides)

    def index(self, indices: Sequence[Index], extents: Mapping[str, Dim]) -> Index:
        """The element offset; `extents` of the kernel's axes decide divisions."""
        if not self.layout.blocked:
            physical = list(indices)
            spatial = physical[2:]
        else:
            spatial = list(indices[2:])
        halo = self.layout.halo or ((0, 0),) * len(spatial)
        inner = [one + low for one, (low, _) in zip(spatial, halo, strict=True)]
        if not self.layout.blocked:
            return self._sum([*indices[:2], *inner], extents)
        channel = indices[1]
        if self.strides[1] == LANES:  # one pixel an image: lanes of successive blocks are neighbours
            return self._sum([indices[0], Index.of(0), *inner, channel], extents)
        return self._sum([indices[0], channel // LANES, *inner, channel % LANES], extents)

    def block_index(self, indices: Sequence[Index], lane: Index, extents: Mapping[str, Dim]) -> Index:
        """The offset in a blocked value by its physical indices n, block, spatial… and the lane within the block."""
        halo = self.layout.halo or ((0, 0),) * (len(indices) - 2)
        inner = [one + low for one, (low, _) in zip(indices[2:], halo, strict=True)]
        return self._sum([*indices[:2], *inner, lane], extents)

    def _sum(self, physical: Sequence[Index], extents: Mapping[str, Dim]) -> Index:
        total = Index.of(self.offset)
        for one, stride in zip(physical, self.strides, strict=True):
            total = total + simplify(one, extents) * stride
        return join_divisions(total)
