"""Pools over windows and over whole spatial axes."""

from dataclasses import replace
from math import prod

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.places import places_of_extremes
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.windows import Windows, read_windows
from cuvil_core.ir import Dim, DType


def _window_reduce(context: Context, kind: str, x: Tensor, windows: Windows) -> Tensor:
    return context.emit(
        "window_reduce",
        x,
        kind=kind,
        window=windows.size,
        strides=windows.strides,
        pads=windows.pads,
        dilations=windows.dilations,
    )


def _rounded_up(node: Node, x: Tensor, windows: Windows) -> Windows:
    """ceil_mode: more padding at the end, so that the last window starts within the input or its front padding."""
    if not node.flag("ceil_mode", False):
        return windows
    pads = list(windows.pads)
    for axis in range(windows.spatial):
        extent = x.shape[2 + axis].constant
        if extent is None:
            if windows.strides[axis] == 1:
                continue
            raise node.unsupported("ceil_mode on a symbolic extent")
        low, high = pads[axis], pads[windows.spatial + axis]
        stride, reach = windows.strides[axis], windows.reach(axis)
        count = -(-(extent + low + high - reach) // stride) + 1
        if (count - 1) * stride >= extent + low:
            count -= 1
        pads[windows.spatial + axis] = max(high, (count - 1) * stride + reach - extent - low)
    return replace(windows, pads=tuple(pads))


def _least(dtype: DType) -> float | int:
    """What the maximum of a window never prefers: padding with it leaves every maximum as it is."""
    if dtype.is_float:
        return float("-inf")
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.is_signed else 0


def _max_pool(context: Context, node: Node, operands: Operands) -> Tensor | tuple[Tensor, ...]:
    x = need(node, operands, 0)
    padded, windows = read_windows(context, node, x, node.integers("kernel_shape"), _least(x.dtype))
    _check_pads(node, windows)
    rounded = _rounded_up(node, padded, windows)
    result = _window_reduce(context, "max", padded, rounded)
    if len([name for name in node.outputs if name]) < 2:
        return result
    if padded is not x:
        raise node.unsupported("the indices output beside auto_pad on a symbolic extent")
    return result, places_of_extremes(context, x, result, rounded, node.flag("storage_order", False))


def _check_pads(node: Node, windows: Windows) -> None:
    """A pad as wide as the window would make windows of padding alone."""
    for axis in range(windows.spatial):
        if max(windows.pads[axis], windows.pads[windows.spatial + axis]) >= windows.reach(axis):
            raise node.broken("a pad is as wide as the window")


def _average_pool(context: Context, node: Node, operands: Operands) -> Tensor:
    """The sum by the number of elements: of the window, or of its part that is not padding."""
    x, include = need(node, operands, 0), node.flag("count_include_pad", False)
    padded, windows = read_windows(context, node, x, node.integers("kernel_shape"), 0.0)
    _check_pads(node, windows)
    rounded = _rounded_up(node, padded, windows)
    total = _window_reduce(context, "sum", padded, rounded)
    bare = padded is x and not any(rounded.pads)
    if bare or (include and rounded.pads == windows.pads):
        return context.number("div", total, prod(windows.size))
    ones = context.full(x.dtype, 1, [Dim.of(1), Dim.of(1), *x.shape[2:]])
    if include:
        counts = _counts_with_padding(context, ones, windows, rounded)
    else:
        counts = _window_reduce(context, "sum", read_windows(context, node, ones, windows.size, 0.0)[0], rounded)
    return context.binary("div", total, counts)


def _counts_with_padding(context: Context, ones: Tensor, counted: Windows, rounded: Windows) -> Tensor:
    """How many elements each window has of the input and its padding, but not of what rounding up has added."""
    spatial = counted.spatial
    extents = [extent + counted.pads[axis] + counted.pads[spatial + axis] for axis, extent in enumerate(ones.shape[2:])]
    padded = context.full(ones.dtype, 1, [*ones.shape[:2], *extents])
    rest = tuple(whole - pad for whole, pad in zip(rounded.pads, counted.pads, strict=True))
    return _window_reduce(context, "sum", padded, replace(rounded, pads=rest))


def _lp_pool(context: Context, node: Node, operands: Operands) -> Tensor:
    """The root of the sum of powers over each window; padding counts as 0."""
    x, power = need(node, operands, 0), _power(node)
    padded, windows = read_windows(context, node, x, node.integers("kernel_shape"), 0.0)
    terms = _raised(context, padded, power)
    return _root(context, _window_reduce(context, "sum", terms, _rounded_up(node, padded, windows)), power)


def _global_lp_pool(context: Context, node: Node, operands: Operands) -> Tensor:
    x, power = need(node, operands, 0), _power(node)
    return _root(context, context.reduce("sum", _raised(context, x, power), range(2, x.rank)), power)


def _power(node: Node) -> int:
    power = node.integer("p", 2)
    if not 1 <= power <= 1 << 10:
        raise node.broken(f"p must be a positive number, not {power}")
    return power


def _raised(context: Context, x: Tensor, power: int) -> Tensor:
    if power == 2:
        return context.emit("mul", x, x)
    size = context.emit("abs", x)
    return size if power == 1 else context.number("pow", size, power)


def _root(context: Context, total: Tensor, power: int) -> Tensor:
    if power == 2:
        return context.emit("sqrt", total)
    return total if power == 1 else context.number("pow", total, 1 / power)


def _global_average(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.mean(x, range(2, x.rank))


def _global_max(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.reduce("max", x, range(2, x.rank))


ENTRIES: tuple[Entry, ...] = (
    Entry("MaxPool", _max_pool),
    Entry("AveragePool", _average_pool),
    Entry("LpPool", _lp_pool),
    Entry("GlobalAveragePool", _global_average),
    Entry("GlobalMaxPool", _global_max),
    Entry("GlobalLpPool", _global_lp_pool),
)
