"""The axes over which a kernel makes a value, by the value's layout."""

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import Access, Axis, AxisIndex, Binary, Expr, Index, Literal, Select, Store, Use, Within
from cuvil_core.lowering.compose import Composer
from cuvil_core.lowering.placement import Indices, Placement
from cuvil_core.lowering.vanishing import vanishes
from cuvil_core.scheduling import LANES


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes of a kernel, and the logical indices of the element at a point of them."""

    axes: tuple[Axis, ...]
    indices: Indices
    ragged: Within | None = None
    """Lanes beyond the channels exist, and this tells the real ones."""

    @property
    def extents(self) -> dict[str, Dim]:
        """Axis name → extent."""
        return {axis.name: axis.extent for axis in self.axes}

    @property
    def is_empty(self) -> bool:
        """True where there is no point at all."""
        return any(axis.extent == 0 for axis in self.axes)


def axes_of(place: Placement) -> Axes:
    """One axis for each extent but 1; for blocked values n, block, spatial, lane."""
    if not place.layout.blocked:
        axes, indices = _plain(place.shape)
        return Axes(axes, indices)
    outer, outer_indices = _plain(place.shape[:1], "n")
    inner, inner_indices = _plain(place.shape[2:], "s")
    channels = place.shape[1]
    block, lane = Axis("cb", channels.ceil_div(LANES)), Axis.of("cl", LANES)
    channel = Index.axis("cb") * LANES + Index.axis("cl")
    return Axes((*outer, block, *inner, lane), (*outer_indices, channel, *inner_indices), ragged(channel, channels))


def ragged(channel: Index, channels: Dim) -> Within | None:
    """The condition of real lanes, None where all are."""
    return None if channels.exact_div(LANES) is not None else Within(channel, channels)


def masked(expr: Expr, condition: Within | None) -> Expr:
    """Zero in lanes beyond the channels, whatever the expression gives there."""
    if condition is None or vanishes(expr, condition.index.axes):
        return expr
    inside = Binary("lt", AxisIndex(condition.index), AxisIndex(Index.of(condition.extent)))
    return Select(inside, expr, zero(expr.dtype))


def zero(dtype: DType) -> Literal:
    """The zero of a dtype."""
    return Literal(False if dtype is DType.BOOL else 0.0 if dtype.is_float else 0, dtype)


def store(composer: Composer, place: Placement, indices: Indices, value: Expr, within: Sequence[Within] = ()) -> Store:
    """Write an element of a value; lanes beyond the channels of a blocked one become zero."""
    if place.layout.blocked:
        value = masked(value, composer.ragged)
    name = composer.parameters.name(place, Use.WRITE)
    return Store(Access(name, place.index(indices, composer.extents)), value, tuple(within))


def _plain(shape: Sequence[Dim], prefix: str = "d") -> tuple[tuple[Axis, ...], Indices]:
    axes, indices = [], []
    for position, extent in enumerate(shape):
        name = prefix if prefix == "n" else f"{prefix}{position}"
        if extent != 1:
            axes.append(Axis(name, extent))
        indices.append(Index.axis(name) if extent != 1 else Index())
    return tuple(axes), tuple(indices)
