"""Pools over windows and over whole spatial axes."""

from dataclasses import replace

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need
from cuvil_core.importer.onnx.node import Node
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
    """What the maximum of a window never prefers."""
    if dtype.is_float:
        return float("-inf")
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.is_signed else 0


def _max_pool(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    if len([name for name in node.outputs if name]) > 1:
        raise node.unsupported("the indices output")
    padded, windows = read_windows(context, node, x, node.integers("kernel_shape"), _least(x.dtype))
    _check_pads(node, windows)
    return _window_reduce(context, "max", padded, _rounded_up(node, padded, windows))


def _lowest(dtype: DType) -> float:
    """What no element is below: padding with it leaves every maximum as it is."""
    if dtype.is_float:
        return float("-inf")
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.is_signed else 0


def _check_pads(node: Node, windows: Windows) -> None:
    """A pad as wide as the window would make windows of padding alone."""
    for axis in range(windows.spatial):
        if max(windows.pads[axis], windows.pads[windows.spatial + axis]) >= windows.reach(axis):
            raise node.broken("a pad is as wide as the window")


def _average_pool(context: Context, node: Node, operands: Operands) -> Tensor:
    """The sum by the number of elements: of the window, or of its part that is not padding."""
    x = need(node, operands, 0)
    if node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise node.unsupported("auto_pad SAME")
    _, windows = read_windows(context, node, x, node.integers("kernel_shape"), 0.0)
    _check_pads(node, windows)
    rounded = _rounded_up(node, x, windows)
    total = _window_reduce(context, "sum", x, rounded)
    include = node.flag("count_include_pad", False)
    if not any(rounded.pads) or (include and rounded.pads == windows.pads):
        size = 1
        for extent in windows.size:
            size *= extent
        return context.number("div", total, size)
    return context.binary("div", total, _counts(context, x, windows if include else None, rounded))


def _counts(context: Context, x: Tensor, counted: Windows | None, rounded: Windows) -> Tensor:
    """How many elements each window counts: the input's, and the padding's of `counted`."""
    ones = context.full(x.dtype, 1, [Dim.of(1), Dim.of(1), *x.shape[2:]])
    if counted is not None:
        low = [Dim.of(0)] * 2 + [Dim.of(pad) for pad in counted.pads[: counted.spatial]]
        high = [Dim.of(0)] * 2 + [Dim.of(pad) for pad in counted.pads[counted.spatial :]]
        padded = [a + extent + b for a, extent, b in zip(low, ones.shape, high, strict=True)]
        ones = context.full(x.dtype, 1, padded)
        rest = [all_pad - pad for all_pad, pad in zip(rounded.pads, counted.pads, strict=True)]
        rounded = replace(rounded, pads=tuple(rest))
    return _window_reduce(context, "sum", ones, rounded)


def _global_average(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.mean(x, range(2, x.rank))


def _global_max(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.reduce("max", x, range(2, x.rank))


ENTRIES: tuple[Entry, ...] = (
    Entry("MaxPool", _max_pool),
    Entry("AveragePool", _average_pool),
    Entry("GlobalAveragePool", _global_average),
    Entry("GlobalMaxPool", _global_max),
)
