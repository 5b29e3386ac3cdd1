"""Element by element: unary, binary, ternary, cast. Operands have equal shapes; broadcasting is an op of its own."""

from collections.abc import Callable

from cuvil_core.ir import DType, TensorType
from cuvil_core.ops.spec import (
    AttributeKind,
    Attributes,
    Group,
    OpSpec,
    Rule,
    Types,
    agree_shapes,
    require,
    require_dtype,
)

Allowed = Callable[[DType], bool]


def _float(dtype: DType) -> bool:
    return dtype.is_float


def _number(dtype: DType) -> bool:
    return dtype is not DType.BOOL


def _integer(dtype: DType) -> bool:
    return dtype.is_integer


def _unsigned(dtype: DType) -> bool:
    return dtype.is_integer and not dtype.is_signed


def _bool(dtype: DType) -> bool:
    return dtype is DType.BOOL


def _any(dtype: DType) -> bool:
    return True


def _same(allowed: Allowed) -> Rule:
    """Equal dtypes and shapes in, the same out."""

    def rule(operands: Types, attributes: Attributes) -> Types:
        dtype = operands[0].dtype
        require(all(type.dtype is dtype for type in operands), "the operands have different dtypes")
        require_dtype(allowed(dtype), dtype)
        return (TensorType(dtype, agree_shapes(operands)),)

    return rule


def _to_bool(allowed: Allowed) -> Rule:
    """Equal dtypes and shapes in, bool of that shape out."""
    same = _same(allowed)

    def rule(operands: Types, attributes: Attributes) -> Types:
        return (TensorType(DType.BOOL, same(operands, attributes)[0].shape),)

    return rule


def _cast(operands: Types, attributes: Attributes) -> Types:
    return (TensorType(attributes.dtype("dtype"), operands[0].shape),)


def _bitcast(operands: Types, attributes: Attributes) -> Types:
    source, target = operands[0].dtype, attributes.dtype("dtype")
    require_dtype(source is not DType.BOOL and target is not DType.BOOL, DType.BOOL)
    require(source.itemsize == target.itemsize, f"{source} and {target} differ in width")
    return (TensorType(target, operands[0].shape),)


def _mod(operands: Types, attributes: Attributes) -> Types:
    require(attributes.text("kind") in ("floor", "trunc"), "kind must be floor or trunc")
    return _same(_number)(operands, attributes)


def _select(operands: Types, attributes: Attributes) -> Types:
    condition, *branches = operands
    require(condition.dtype is DType.BOOL, "the condition must be bool")
    require(branches[0].dtype is branches[1].dtype, "the branches have different dtypes")
    return (TensorType(branches[0].dtype, agree_shapes(operands)),)


def _unary(names: str, rule: Rule) -> tuple[OpSpec, ...]:
    return tuple(OpSpec(name, Group.UNARY, 1, rule) for name in names.split())


def _binary(names: str, rule: Rule) -> tuple[OpSpec, ...]:
    return tuple(OpSpec(name, Group.BINARY, 2, rule) for name in names.split())


SPECS: tuple[OpSpec, ...] = (
    *_unary("neg abs sign", _same(_number)),
    *_unary("exp log sqrt reciprocal tanh sigmoid erf floor ceil round sin cos", _same(_float)),
    *_unary("tan asin acos atan sinh cosh asinh acosh atanh", _same(_float)),
    *_unary("not", _same(_bool)),
    *_unary("bit_not", _same(_integer)),
    *_unary("isnan isinf", _to_bool(_float)),
    OpSpec("cast", Group.UNARY, 1, _cast, {"dtype": AttributeKind.DTYPE}),
    OpSpec("bitcast", Group.UNARY, 1, _bitcast, {"dtype": AttributeKind.DTYPE}),
    *_binary("add sub mul div pow max min", _same(_number)),
    OpSpec("mod", Group.BINARY, 2, _mod, {"kind": AttributeKind.TEXT}),
    *_binary("eq ne", _to_bool(_any)),
    *_binary("lt le gt ge", _to_bool(_number)),
    *_binary("and or xor", _same(_bool)),
    *_binary("bit_and bit_or bit_xor", _same(_integer)),
    *_binary("shift_left shift_right", _same(_unsigned)),
    OpSpec("select", Group.TERNARY, 3, _select),
)
