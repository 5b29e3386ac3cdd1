"""AffineGrid and GridSample: an image read at places that a grid gives in -1 … 1."""

from collections.abc import Callable

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.sampling import Border, Tap, corners, cubic, edge, linear, nearest, total, working, zeros
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType, Relation, product

_NAMES = {"bilinear": "linear", "bicubic": "cubic"}
_KERNELS = {"nearest": nearest, "linear": linear, "cubic": cubic}
MAX_CORNERS = 64


def _grid_sample(context: Context, node: Node, operands: Operands) -> Tensor:
    x, grid = all_of(node, operands)
    spatial = x.rank - 2
    if spatial < 1 or grid.rank != x.rank:
        raise node.broken("its input and grid need equal ranks of at least 3")
    context.guard(grid.shape[-1], spatial)
    context.guard(grid.shape[0], x.shape[0])
    given = node.text("mode", "linear" if node.opset >= 20 else "bilinear")
    mode = _NAMES.get(given, given)
    padding, align = node.text("padding_mode", "zeros"), node.flag("align_corners", False)
    if mode not in _KERNELS or padding not in _PADDINGS:
        raise node.broken(f"there is no mode {given!r} or padding_mode {padding!r}")
    if mode != "nearest" and not x.dtype.is_float:
        raise node.unsupported(f"the mode {given} on {x.dtype}")
    if mode == "cubic" and 4**spatial > MAX_CORNERS:
        raise node.unsupported(f"the mode {given} over {spatial} axes")
    values = x if mode == "nearest" else context.cast(x, working(x.dtype))
    taps = [_axis(context, grid, x, axis, mode, _PADDINGS[padding](align), align) for axis in range(spatial)]
    ones = [Dim.of(1)] * spatial
    lead = [counted(context, [x.shape[0], Dim.of(1), *ones], 0), counted(context, [Dim.of(1), x.shape[1], *ones], 1)]
    return context.cast(total(context, corners(context, values, lead, taps)), x.dtype)


def _axis(
    context: Context, grid: Tensor, x: Tensor, axis: int, mode: str, padding: "_Padding", align: bool
) -> list[Tap]:
    """The taps along one spatial axis; the grid names the last axis first."""
    column = context.slice(grid, grid.rank - 1, x.rank - 3 - axis, 1)
    place = context.reshape(context.cast(column, working(grid.dtype)), [grid.shape[0], Dim.of(1), *grid.shape[1:-1]])
    extent = x.shape[2 + axis]
    context.guard(1, extent, Relation.AT_MOST)
    length = context.count(extent - 1 if align else extent, place.dtype)
    scaled = context.binary("mul", context.number("add", place, 1), length)
    place = context.number("mul", scaled if align else context.number("sub", scaled, 1), 0.5)
    place = context.emit("round", place) if mode == "nearest" else place
    return _KERNELS[mode](context, padding.moved(context, place, extent), extent, padding.border)


class _Padding:
    """What lies beyond the border; `low` and `high` say how far the border is from the outer elements."""

    def __init__(self, border: Border, align: bool) -> None:
        self.border = border
        self.low, self.high = (0.0, 1.0) if align else (-0.5, 0.5)

    def ends(self, context: Context, place: Tensor, extent: Dim) -> tuple[Tensor, Tensor]:
        """The least place, and the greatest."""
        high = context.number("sub", context.count(extent, place.dtype), self.high)
        return context.like(place, self.low), context.stretch(high, place.shape)

    def moved(self, context: Context, place: Tensor, extent: Dim) -> Tensor:
        """The place from which neighbours are counted."""
        return place


class _Zeros(_Padding):
    def __init__(self, align: bool) -> None:
        super().__init__(zeros, align)


class _Border(_Padding):
    def __init__(self, align: bool) -> None:
        super().__init__(edge, align)

    def moved(self, context: Context, place: Tensor, extent: Dim) -> Tensor:
        """Places beyond the border become the outer elements'."""
        low, high = self.ends(context, place, extent)
        last = context.stretch(context.count(extent - 1, place.dtype), place.shape)
        lifted = context.emit("select", context.emit("lt", place, low), context.like(place, 0), place)
        return context.emit("select", context.emit("gt", place, high), last, lifted)


class _Reflection(_Padding):
    def __init__(self, align: bool) -> None:
        super().__init__(_reflected_on_elements if align else _reflected_between, align)

    def moved(self, context: Context, place: Tensor, extent: Dim) -> Tensor:
        """There and back between the borders, for places beyond them."""
        low, high = self.ends(context, place, extent)
        width = context.emit("sub", high, low)
        period = context.number("mul", width, 2)
        step = context.emit("mod", context.emit("sub", place, low), period, kind="floor")
        folded = context.emit("min", step, context.emit("sub", period, step))
        back = context.emit("select", context.number("gt", width, 0), context.emit("add", folded, low), low)
        beyond = context.emit("or", context.emit("lt", place, low), context.emit("gt", place, high))
        return context.emit("select", beyond, back, place)


def _reflected_on_elements(context: Context, place: Tensor, extent: Dim) -> Tap:
    return _folded(context, place, (extent - 1) * 2, 0, extent)


def _reflected_between(context: Context, place: Tensor, extent: Dim) -> Tap:
    return _folded(context, place, extent * 2, 1, extent)


def _folded(context: Context, place: Tensor, period: Dim, shift: int, extent: Dim) -> Tap:
    """The place in 0 … period - 1, counted back from `period - shift` where that is nearer."""
    length = context.stretch(context.count(period, DType.INT64), place.shape)
    step = context.emit("mod", place, length, kind="floor")
    back = context.emit("sub", context.number("sub", length, shift), step)
    return edge(context, context.emit("min", step, back), extent)


def _affine_grid(context: Context, node: Node, operands: Operands) -> Tensor:
    """theta · (x, y, …, 1) for the places of an image in -1 … 1; the last axis first, as GridSample reads them."""
    theta, size = all_of(node, operands)
    extents = context.extents(size)
    batch, spatial = extents[0], extents[2:]
    if theta.rank != 3 or not spatial:
        raise node.broken("it needs one matrix an image, and a size of at least 3 numbers")
    context.guard(theta.shape[0], batch)
    context.guard(theta.shape[1], len(spatial))
    context.guard(theta.shape[2], len(spatial) + 1)
    wide = context.cast(theta, working(theta.dtype))
    columns = [_line(context, node, spatial, axis, wide.dtype) for axis in reversed(range(len(spatial)))]
    columns.append(context.full(wide.dtype, 1, spatial))
    places = product(spatial)
    base = context.concat([context.reshape(column, [places, Dim.of(1)]) for column in columns], 1)
    moved = context.emit("dot", wide, base, batch_a=(), batch_b=(), contract_a=(2,), contract_b=(1,))
    grid = context.reshape(context.transpose(moved, [0, 2, 1]), [batch, *spatial, Dim.of(len(spatial))])
    return context.cast(grid, theta.dtype)


def _line(context: Context, node: Node, spatial: list[Dim], axis: int, dtype: DType) -> Tensor:
    """The places along one axis: from border to border, or the middles of as many equal parts."""
    extent, place = spatial[axis], context.cast(counted(context, spatial, axis), dtype)
    if not node.flag("align_corners", False):
        step = context.number("add", context.number("mul", place, 2), 1)
        return context.number("sub", context.binary("div", step, context.count(extent, dtype)), 1)
    if extent.constant is not None and extent.constant < 2:
        raise node.unsupported(f"align_corners on the extent {extent}, on which runtimes differ")
    context.guard(2, extent, Relation.AT_MOST)
    step = context.binary("div", context.number("mul", place, 2), context.count(extent - 1, dtype))
    return context.number("sub", step, 1)


_PADDINGS: dict[str, Callable[[bool], _Padding]] = {"zeros": _Zeros, "border": _Border, "reflection": _Reflection}
ENTRIES: tuple[Entry, ...] = (
    Entry("GridSample", _grid_sample, since=16),
    Entry("AffineGrid", _affine_grid, since=20, final=True),
)
