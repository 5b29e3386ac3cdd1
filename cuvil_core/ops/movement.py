"""The same elements at other places."""

from cuvil_core.ir import Dim, TensorType, product
from cuvil_core.ops.spec import AttributeKind, Attributes, Group, OpSpec, Types, agree, check_axis, require


def _broadcast_to(operands: Types, attributes: Attributes) -> Types:
    (source,), target = operands, attributes.dims("shape")
    require(source.rank <= len(target), "the target has a lower rank than the operand")
    for have, want in zip(reversed(source.shape), reversed(target), strict=False):
        require(have == 1 or have == want or (have - want).constant is None, f"{have} does not stretch to {want}")
        require(have == 1 or want != 1, f"{have} does not stretch to {want}")
    return (TensorType(source.dtype, target),)


def _reshape(operands: Types, attributes: Attributes) -> Types:
    (source,), target = operands, attributes.dims("shape")
    difference = (source.elements - product(target)).constant
    require(difference in (0, None), f"{source.elements} elements do not fill {[str(extent) for extent in target]}")
    return (TensorType(source.dtype, target),)


def _transpose(operands: Types, attributes: Attributes) -> Types:
    (source,), perm = operands, attributes.integers("perm")
    require(sorted(perm) == list(range(source.rank)), f"{list(perm)} does not permute rank {source.rank}")
    return (TensorType(source.dtype, tuple(source.shape[axis] for axis in perm)),)


def _slice(operands: Types, attributes: Attributes) -> Types:
    (source,) = operands
    starts, sizes, steps = attributes.dims("starts"), attributes.dims("sizes"), attributes.integers("steps")
    require(len(starts) == len(sizes) == len(steps) == source.rank, "starts, sizes and steps need one entry an axis")
    for extent, start, size, step in zip(source.shape, starts, sizes, steps, strict=True):
        require(step != 0, "a step is zero")
        may_be_empty = (size.least or 0) < 1
        for index in () if may_be_empty else (start, start + (size - 1) * step):
            outside = _proved_negative(index) or _proved_negative(extent - 1 - index)
            require(not outside, f"index {index} is outside of extent {extent}")
    return (TensorType(source.dtype, sizes),)


def _pad(operands: Types, attributes: Attributes) -> Types:
    (source,), low, high = operands, attributes.dims("low"), attributes.dims("high")
    value = attributes.payload("value")
    require(len(low) == len(high) == source.rank, "low and high need one entry an axis")
    require(not any(_proved_negative(extent) for extent in (*low, *high)), "a pad is negative")
    require(value.dtype is source.dtype and value.shape == (), f"the value must be a scalar {source.dtype}")
    shape = tuple(a + extent + b for a, extent, b in zip(low, source.shape, high, strict=True))
    return (TensorType(source.dtype, shape),)


def _concat(operands: Types, attributes: Attributes) -> Types:
    require(bool(operands), "there is nothing to join")
    first, axis = operands[0], attributes.integer("axis")
    check_axis(axis, first.rank)
    require(all(type.dtype is first.dtype for type in operands), "the operands have different dtypes")
    require(all(type.rank == first.rank for type in operands), "the operands have different ranks")
    shape = list(first.shape)
    for other in operands[1:]:
        shape = [a + b if at == axis else agree(a, b) for at, (a, b) in enumerate(zip(shape, other.shape, strict=True))]
    return (TensorType(first.dtype, tuple(shape)),)


def _gather(operands: Types, attributes: Attributes) -> Types:
    (data, indices), axis = operands, attributes.integer("axis")
    check_axis(axis, data.rank)
    require(indices.dtype.is_integer, "the indices must be integers")
    return (TensorType(data.dtype, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])),)


def _in_bounds(operands: Types, attributes: Attributes) -> Types:
    (source,) = operands
    require(source.dtype.is_integer, "the indices must be integers")
    require(len(attributes.dims("extent")) == 1, "extent is one extent")
    return (source,)


def _proved_negative(extent: Dim) -> bool:
    greatest = extent.bounds()[1]
    return greatest is not None and greatest < 0


_DIMS, _INTS = AttributeKind.DIMS, AttributeKind.INTEGERS
SPECS: tuple[OpSpec, ...] = (
    OpSpec("broadcast_to", Group.MOVEMENT, 1, _broadcast_to, {"shape": _DIMS}),
    OpSpec("reshape", Group.MOVEMENT, 1, _reshape, {"shape": _DIMS}),
    OpSpec("transpose", Group.MOVEMENT, 1, _transpose, {"perm": _INTS}),
    OpSpec("slice", Group.MOVEMENT, 1, _slice, {"starts": _DIMS, "sizes": _DIMS, "steps": _INTS}),
    OpSpec("pad", Group.MOVEMENT, 1, _pad, {"low": _DIMS, "high": _DIMS, "value": AttributeKind.PAYLOAD}),
    OpSpec("concat", Group.MOVEMENT, None, _concat, {"axis": AttributeKind.INTEGER}),
    OpSpec("gather", Group.MOVEMENT, 2, _gather, {"axis": AttributeKind.INTEGER}),
    OpSpec("in_bounds", Group.MOVEMENT, 1, _in_bounds, {"extent": _DIMS}),
)
