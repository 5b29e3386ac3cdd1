"""Primitives whose steps follow one another: running totals along an axis, rows written at looked-up places."""

from cuvil_core.ir import DType
from cuvil_core.ops.spec import (
    AttributeKind,
    Attributes,
    Group,
    OpSpec,
    Types,
    agree,
    check_axis,
    require,
    require_dtype,
)

SCATTER_KINDS = ("set", "sum", "prod", "max", "min")


def _prefix_reduce(operands: Types, attributes: Attributes) -> Types:
    (source,) = operands
    check_axis(attributes.integer("axis"), source.rank)
    require(attributes.text("kind") in ("sum", "prod", "max", "min"), "kind must be sum, prod, max or min")
    require_dtype(source.dtype is not DType.BOOL, source.dtype)
    return (source,)


def _scatter(operands: Types, attributes: Attributes) -> Types:
    data, indices, updates = operands
    require(data.rank >= 1, "data has no rows")
    require(indices.rank == 1 and indices.dtype is DType.INT64, "the indices must be a vector of int64")
    require(updates.dtype is data.dtype, "data and updates have different dtypes")
    require(updates.rank == data.rank, "data and updates have different ranks")
    agree(indices.shape[0], updates.shape[0])
    for a, b in zip(data.shape[1:], updates.shape[1:], strict=True):
        agree(a, b)
    kind = attributes.text("kind")
    require(kind in SCATTER_KINDS, f"kind must be one of {', '.join(SCATTER_KINDS)}")
    require_dtype(kind == "set" or data.dtype is not DType.BOOL, data.dtype)
    return (data,)


_TEXT = AttributeKind.TEXT
SPECS: tuple[OpSpec, ...] = (
    OpSpec("prefix_reduce", Group.REDUCTION, 1, _prefix_reduce, {"kind": _TEXT, "axis": AttributeKind.INTEGER}),
    OpSpec("scatter", Group.MOVEMENT, 3, _scatter, {"kind": _TEXT}),
)
