"""What reads a value to steer the call: it fixes an extent, or it ends the call."""

from cuvil_core.ir import DType, is_from_data
from cuvil_core.ops.spec import AttributeKind, Attributes, Group, OpSpec, Types, require


def _bind(operands: Types, attributes: Attributes) -> Types:
    (source,), named = operands, attributes.dims("symbol")
    require(source.dtype is DType.INT64 and source.rank == 0, "an extent is one int64")
    require(len(named) == 1 and is_from_data(str(named[0])), "symbol is one name that begins with an underscore")
    require(named[0].symbols == {str(named[0])}, "symbol is one name that begins with an underscore")
    return (source,)


def _check(operands: Types, attributes: Attributes) -> Types:
    (source,) = operands
    require(source.dtype is DType.BOOL and source.rank == 0, "a condition is one bool")
    return (source,)


SPECS: tuple[OpSpec, ...] = (
    OpSpec("bind", Group.EFFECT, 1, _bind, {"symbol": AttributeKind.DIMS}),
    OpSpec("check", Group.EFFECT, 1, _check, {"text": AttributeKind.TEXT}),
)
