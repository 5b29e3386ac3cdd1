"""Sums of products: dot over named axes, convolution over sliding windows."""

from cuvil_core.ir import Dim, TensorType
from cuvil_core.ops.reduction import check_windows, window_extent
from cuvil_core.ops.spec import (
    AttributeKind,
    Attributes,
    Group,
    OpSpec,
    Types,
    agree,
    check_axes,
    require,
    require_dtype,
)


def _dot(operands: Types, attributes: Attributes) -> Types:
    a, b = operands
    batch_a, batch_b = attributes.integers("batch_a"), attributes.integers("batch_b")
    contract_a, contract_b = attributes.integers("contract_a"), attributes.integers("contract_b")
    require(a.dtype is b.dtype, "the operands have different dtypes")
    require_dtype(a.dtype.value != "bool", a.dtype)
    require(len(batch_a) == len(batch_b) and len(contract_a) == len(contract_b), "the axes do not pair")
    check_axes((*batch_a, *contract_a), a.rank)
    check_axes((*batch_b, *contract_b), b.rank)
    for at_a, at_b in zip(contract_a, contract_b, strict=True):
        agree(a.shape[at_a], b.shape[at_b])
    batch = tuple(agree(a.shape[at_a], b.shape[at_b]) for at_a, at_b in zip(batch_a, batch_b, strict=True))
    free_a = tuple(e for axis, e in enumerate(a.shape) if axis not in (*batch_a, *contract_a))
    free_b = tuple(e for axis, e in enumerate(b.shape) if axis not in (*batch_b, *contract_b))
    return (TensorType(a.dtype, (*batch, *free_a, *free_b)),)


def _conv(operands: Types, attributes: Attributes) -> Types:
    x, w = operands
    strides, pads = attributes.integers("strides"), attributes.integers("pads")
    dilations, base = attributes.integers("dilations"), attributes.integers("base_dilations")
    groups, spatial = attributes.integer("groups"), x.rank - 2
    require(spatial >= 1 and w.rank == x.rank, "x and w need equal ranks of at least 3")
    require(x.dtype is w.dtype, "x and w have different dtypes")
    require_dtype(x.dtype.value != "bool", x.dtype)
    check_windows(spatial, strides=strides, pads=pads, dilations=dilations, base_dilations=base)
    _check_groups(x.shape[1], w.shape[0], w.shape[1], groups)
    extents = []
    for i in range(spatial):
        window = w.shape[2 + i].constant
        require(window is not None and window >= 1, "the window of w must be fixed and at least 1")
        stretched = (x.shape[2 + i] - 1) * base[i] + 1
        extents.append(window_extent(stretched, window or 1, strides[i], pads[i], pads[spatial + i], dilations[i]))
    return (TensorType(x.dtype, (x.shape[0], w.shape[0], *extents)),)


def _check_groups(channels: Dim, outputs: Dim, inner: Dim, groups: int) -> None:
    require(groups >= 1, "groups must be at least 1")
    agree(inner * groups, channels)
    require(outputs.exact_div(groups) is not None, f"{outputs} output channels do not split into {groups} groups")


_INTS = AttributeKind.INTEGERS
SPECS: tuple[OpSpec, ...] = (
    OpSpec(
        "dot",
        Group.CONTRACTION,
        2,
        _dot,
        {"batch_a": _INTS, "batch_b": _INTS, "contract_a": _INTS, "contract_b": _INTS},
    ),
    OpSpec(
        "conv",
        Group.CONTRACTION,
        2,
        _conv,
        {
            "strides": _INTS,
            "pads": _INTS,
            "dilations": _INTS,
            "base_dilations": _INTS,
            "groups": AttributeKind.INTEGER,
        },
    ),
)
