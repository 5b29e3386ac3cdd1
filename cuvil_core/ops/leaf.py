"""Values from nothing: constants, counted axes, symbolic extents as data."""

from cuvil_core.ir import Dim, DType, TensorType
from cuvil_core.ops.spec import AttributeKind, Attributes, Group, OpSpec, Types, check_axis, require


def _constant(operands: Types, attributes: Attributes) -> Types:
    payload = attributes.payload("value")
    return (TensorType(payload.dtype, tuple(map(Dim.of, payload.shape))),)


def _iota(operands: Types, attributes: Attributes) -> Types:
    shape, dtype = attributes.dims("shape"), attributes.dtype("dtype")
    check_axis(attributes.integer("axis"), len(shape))
    require(dtype is not DType.BOOL, "bool cannot count")
    return (TensorType(dtype, shape),)


def _dim_vector(operands: Types, attributes: Attributes) -> Types:
    return (TensorType(DType.INT64, (Dim.of(len(attributes.dims("dims"))),)),)


SPECS: tuple[OpSpec, ...] = (
    OpSpec("constant", Group.LEAF, 0, _constant, {"value": AttributeKind.PAYLOAD}),
    OpSpec(
        "iota",
        Group.LEAF,
        0,
        _iota,
        {"shape": AttributeKind.DIMS, "axis": AttributeKind.INTEGER, "dtype": AttributeKind.DTYPE},
    ),
    OpSpec("dim_vector", Group.LEAF, 0, _dim_vector, {"dims": AttributeKind.DIMS}),
)
