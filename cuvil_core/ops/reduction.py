"""Many elements to one: over whole axes, over sliding windows, to the place of an extreme."""

from cuvil_core.ir import Dim, DType, TensorType
from cuvil_core.ops.spec import (
    AttributeKind,
    Attributes,
    Group,
    OpSpec,
    Types,
    check_axes,
    check_axis,
    require,
    require_dtype,
)


def window_extent(extent: Dim, window: int, stride: int, low: int, high: int, dilation: int) -> Dim:
    """How many windows fit: (extent + low + high - (dilation*(window - 1) + 1)) // stride + 1; refused when below 1."""
    count = (extent + (low + high - dilation * (window - 1) - 1)) // stride + 1
    greatest = count.bounds()[1]
    require(greatest is None or greatest >= 1, f"a window of {window} does not fit into extent {extent}")
    return count


def check_windows(spatial: int, **named: tuple[int, ...]) -> None:
    """Each attribute has one entry a spatial axis, all at least 1 (pads: two, at least 0)."""
    for name, entries in named.items():
        require(len(entries) == (2 * spatial if name == "pads" else spatial), f"{name} does not fit {spatial} axes")
        require(all(entry >= (name != "pads") for entry in entries), f"{name} {list(entries)} has too small an entry")


def _reduce(operands: Types, attributes: Attributes) -> Types:
    (source,), axes = operands, attributes.integers("axes")
    check_axes(axes, source.rank)
    require(attributes.text("kind") in ("sum", "max", "min", "prod"), "kind must be sum, max, min or prod")
    require_dtype(source.dtype is not DType.BOOL, source.dtype)
    return (TensorType(source.dtype, tuple(e for axis, e in enumerate(source.shape) if axis not in axes)),)


def _window_reduce(operands: Types, attributes: Attributes) -> Types:
    (source,) = operands
    window, strides = attributes.integers("window"), attributes.integers("strides")
    pads, dilations = attributes.integers("pads"), attributes.integers("dilations")
    spatial = source.rank - 2
    require(spatial >= 1, "N, C and at least one spatial axis are needed")
    require(attributes.text("kind") in ("max", "sum"), "kind must be max or sum")
    require_dtype(source.dtype is not DType.BOOL, source.dtype)
    check_windows(spatial, window=window, strides=strides, pads=pads, dilations=dilations)
    extents = tuple(
        window_extent(source.shape[2 + i], window[i], strides[i], pads[i], pads[spatial + i], dilations[i])
        for i in range(spatial)
    )
    return (TensorType(source.dtype, (*source.shape[:2], *extents)),)


def _arg_reduce(operands: Types, attributes: Attributes) -> Types:
    (source,), axis = operands, attributes.integer("axis")
    check_axis(axis, source.rank)
    require(attributes.text("kind") in ("max", "min"), "kind must be max or min")
    require(source.shape[axis] != 0, "no element of an empty axis is the extreme one")
    require_dtype(source.dtype is not DType.BOOL, source.dtype)
    return (TensorType(DType.INT64, (*source.shape[:axis], *source.shape[axis + 1 :])),)


_INTS, _TEXT = AttributeKind.INTEGERS, AttributeKind.TEXT
SPECS: tuple[OpSpec, ...] = (
    OpSpec("reduce", Group.REDUCTION, 1, _reduce, {"kind": _TEXT, "axes": _INTS}),
    OpSpec(
        "window_reduce",
        Group.REDUCTION,
        1,
        _window_reduce,
        {"kind": _TEXT, "window": _INTS, "strides": _INTS, "pads": _INTS, "dilations": _INTS},
    ),
    OpSpec(
        "arg_reduce",
        Group.REDUCTION,
        1,
        _arg_reduce,
        {"kind": _TEXT, "axis": AttributeKind.INTEGER, "select_last": AttributeKind.FLAG},
    ),
)
