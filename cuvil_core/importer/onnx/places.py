"""Where in the input the greatest element of each window stands: the second output of MaxPool."""

from math import prod

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.lookups import counted, flat_places
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.windows import Windows
from cuvil_core.ir import Dim, DType


def places_of_extremes(context: Context, x: Tensor, greatest: Tensor, windows: Windows, columns_first: bool) -> Tensor:
    """Flat positions in x of the first element of each window that equals its maximum, or is NaN as it is.

    `columns_first` counts the spatial axes of an image in the other order.
    """
    taps = prod(windows.size)
    shape = (*greatest.shape, Dim.of(taps))
    places, inside = _taps(context, x, windows, shape)
    lead = [counted(context, shape, axis) for axis in (0, 1)]
    seen = context.emit(
        "gather", context.reshape(x, [x.type.elements]), flat_places(context, [*lead, *places], x.shape), axis=0
    )
    wanted = context.stretch(context.reshape(greatest, [*greatest.shape, Dim.of(1)]), shape)
    hit = context.emit("eq", seen, wanted)
    if x.dtype.is_float:
        hit = context.emit("or", hit, context.emit("isnan", seen))
    marks = context.cast(context.emit("and", hit, inside), DType.INT32)
    first = context.emit("arg_reduce", marks, kind="max", axis=len(shape) - 1, select_last=False)
    return _position(context, x, first, windows, columns_first)


def _taps(context: Context, x: Tensor, windows: Windows, shape: tuple[Dim, ...]) -> tuple[list[Tensor], Tensor]:
    """Places of all taps along the spatial axes, clamped, and which of them are no padding."""
    number = counted(context, shape, len(shape) - 1)
    places, inside = [], context.full(DType.BOOL, 1, shape)
    for axis in range(windows.spatial):
        start = context.number("mul", counted(context, shape, 2 + axis), windows.strides[axis])
        place = context.emit("add", start, _offset(context, number, windows, axis))
        last = context.stretch(context.count(x.shape[2 + axis] - 1, DType.INT64), shape)
        inside = context.emit("and", inside, context.number("ge", place, 0))
        inside = context.emit("and", inside, context.emit("le", place, last))
        places.append(context.number("max", context.emit("min", place, last), 0))
    return places, inside


def _offset(context: Context, tap: Tensor, windows: Windows, axis: int) -> Tensor:
    """From the start of the window to a tap, by the tap's number, the front padding taken off."""
    below = prod(windows.size[axis + 1 :])
    step = context.number("mod", context.number("div", tap, below), windows.size[axis], kind="floor")
    return context.number("sub", context.number("mul", step, windows.dilations[axis]), windows.pads[axis])


def _position(context: Context, x: Tensor, tap: Tensor, windows: Windows, columns_first: bool) -> Tensor:
    shape = tap.shape
    places = []
    for axis in range(windows.spatial):
        start = context.number("mul", counted(context, shape, 2 + axis), windows.strides[axis])
        places.append(context.emit("add", start, _offset(context, tap, windows, axis)))
    lead = [counted(context, shape, axis) for axis in (0, 1)]
    if not columns_first:
        return flat_places(context, [*lead, *places], x.shape)
    extents = (*x.shape[:2], *reversed(x.shape[2:]))
    return flat_places(context, [*lead, *reversed(places)], extents)
