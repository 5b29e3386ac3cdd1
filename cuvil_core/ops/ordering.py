"""What needs more than sums and indices: sorting, places of true elements, choosing among overlapping boxes."""

from cuvil_core.ir import DType, TensorType
from cuvil_core.ops.spec import AttributeKind, Attributes, Group, OpSpec, Types, agree, require, require_dtype


def _sort_order(operands: Types, attributes: Attributes) -> Types:
    (source,) = operands
    require(source.rank >= 1, "a scalar has no order")
    require_dtype(source.dtype not in (DType.BOOL, DType.BFLOAT16), source.dtype)
    return (TensorType(DType.INT64, source.shape),)


def _positions(operands: Types, attributes: Attributes) -> Types:
    (mask,), count = operands, attributes.dims("count")
    require(mask.dtype is DType.BOOL and mask.rank == 1, "places are found in a vector of bools")
    require(len(count) == 1, "count is one extent")
    return (TensorType(DType.INT64, count),)


def _suppress(operands: Types, attributes: Attributes) -> Types:
    boxes, scores, most, overlap, least = operands
    require(boxes.rank == 3 and boxes.shape[2] == 4, "boxes are [batches, boxes, 4]")
    require(scores.rank == 3, "scores are [batches, classes, boxes]")
    require(boxes.dtype is DType.FLOAT32 and scores.dtype is DType.FLOAT32, "boxes and scores are float32")
    require(most.dtype is DType.INT64 and most.rank == 0, "the most boxes a class are one int64")
    for limit in (overlap, least):
        require(limit.dtype is DType.FLOAT32 and limit.rank == 0, "the limits are float32 scalars")
    shape = (agree(boxes.shape[0], scores.shape[0]), scores.shape[1], agree(boxes.shape[1], scores.shape[2]))
    return (TensorType(DType.INT64, shape),)


SPECS: tuple[OpSpec, ...] = (
    OpSpec("sort_order", Group.LIBRARY, 1, _sort_order, {"descending": AttributeKind.FLAG}),
    OpSpec("positions", Group.LIBRARY, 1, _positions, {"count": AttributeKind.DIMS}),
    OpSpec("suppress", Group.LIBRARY, 5, _suppress, {"centered": AttributeKind.FLAG}),
)
