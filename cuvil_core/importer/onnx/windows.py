"""The window attributes that convolutions and pools share, auto_pad resolved."""

from dataclasses import dataclass, replace

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, dim_max

MAX_WINDOW = 1 << 20
"""Entries beyond this come from a damaged file: a window of a million taps fits no model."""


@dataclass(frozen=True, slots=True)
class Windows:
    """One entry a spatial axis; pads are all lows, then all highs."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def spatial(self) -> int:
        """The number of spatial axes."""
        return len(self.size)

    def reach(self, axis: int) -> int:
        """The extent that a dilated window covers."""
        return self.dilations[axis] * (self.size[axis] - 1) + 1


def read_windows(
    context: Context, node: Node, x: Tensor, size: tuple[int, ...], fill: float | int
) -> tuple[Tensor, Windows]:
    """The attributes, and x padded beforehand where auto_pad's widths depend on symbols."""
    windows = window_attributes(node, x, size)
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        return _same(context, x, windows, mode == "SAME_LOWER", fill)
    return x, windows


def window_attributes(node: Node, x: Tensor, size: tuple[int, ...]) -> Windows:
    """The attributes after their checks, without pads where auto_pad is given."""
    spatial = x.rank - 2
    if spatial < 1:
        raise node.broken("its input needs N, C and at least one spatial axis")
    ones = (1,) * spatial
    windows = Windows(
        size,
        node.integers("strides", ones),
        node.integers("dilations", ones),
        node.integers("pads", (0,) * 2 * spatial),
    )
    _check(node, windows, spatial)
    mode = node.text("auto_pad", "NOTSET")
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise node.broken(f"there is no auto_pad {mode!r}")
    return windows if mode == "NOTSET" else replace(windows, pads=(0,) * 2 * spatial)


def _check(node: Node, windows: Windows, spatial: int) -> None:
    lengths = {len(windows.size), len(windows.strides), len(windows.dilations), len(windows.pads) // 2}
    if lengths != {spatial} or len(windows.pads) % 2:
        raise node.broken(f"its window attributes do not fit {spatial} spatial axes")
    positive = (*windows.size, *windows.strides, *windows.dilations)
    if min(positive) < 1 or min(windows.pads) < 0:
        raise node.broken("its windows, strides and dilations must be at least 1 and its pads at least 0")
    if max(*positive, *windows.pads) > MAX_WINDOW:
        raise node.broken(f"an entry of its window attributes is larger than {MAX_WINDOW}")


def _same(context: Context, x: Tensor, windows: Windows, lower: bool, fill: float | int) -> tuple[Tensor, Windows]:
    """As many outputs as ceil(extent / stride); the odd pad goes to the end, or to the start for SAME_LOWER."""
    lows, highs = [Dim.of(0)] * x.rank, [Dim.of(0)] * x.rank
    for axis in range(windows.spatial):
        extent, stride = x.shape[2 + axis], windows.strides[axis]
        total = dim_max(0, (extent.ceil_div(stride) - 1) * stride + windows.reach(axis) - extent)
        small = total // 2
        lows[2 + axis], highs[2 + axis] = (total - small, small) if lower else (small, total - small)
    fixed = [width.constant for width in (*lows[2:], *highs[2:])]
    if None not in fixed:
        pads = tuple(width for width in fixed if width is not None)
        return x, Windows(windows.size, windows.strides, windows.dilations, pads)
    none = (0,) * 2 * windows.spatial
    padded = pad(context, x, lows, highs, fill)
    return padded, Windows(windows.size, windows.strides, windows.dilations, none)
