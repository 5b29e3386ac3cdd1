"""Shifts and logic of bits, and bits read as another type."""

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of, need
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType

UNSIGNED = {
    DType.INT8: DType.UINT8,
    DType.INT16: DType.UINT16,
    DType.INT32: DType.UINT32,
    DType.INT64: DType.UINT64,
}


def bitcast(context: Context, x: Tensor, dtype: DType) -> Tensor:
    """bitcast unless the dtype is right already."""
    return x if x.dtype is dtype else context.emit("bitcast", x, dtype=dtype)


def _bit_shift(context: Context, node: Node, operands: Operands) -> Tensor:
    """Signed operands shift as unsigned ones, so that a negative count lies beyond the width as a large one does."""
    x, count = all_of(node, operands)
    direction = node.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.broken(f"its direction is {direction!r}")
    name = "shift_left" if direction == "LEFT" else "shift_right"
    if not x.dtype.is_signed:
        return context.binary(name, x, count)
    x, count = context.together(x, count)
    return _left(context, x, count) if direction == "LEFT" else _right(context, x, count)


def _left(context: Context, x: Tensor, count: Tensor) -> Tensor:
    plain = UNSIGNED[x.dtype]
    return bitcast(
        context,
        context.emit("shift_left", bitcast(context, x, plain), bitcast(context, count, plain)),
        x.dtype,
    )


def _right(context: Context, x: Tensor, count: Tensor) -> Tensor:
    """x >> count for x >= 0, else ~(~x >> count): what moves in is the sign."""
    plain, below = UNSIGNED[x.dtype], context.number("lt", x, 0)
    bits = context.emit("select", below, context.emit("bit_not", x), x)
    moved = context.emit("shift_right", bitcast(context, bits, plain), bitcast(context, count, plain))
    result = bitcast(context, moved, x.dtype)
    return context.emit("select", below, context.emit("bit_not", result), result)


def _binary(name: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        return context.binary(name, *all_of(node, operands))

    return translate


def _not(context: Context, node: Node, operands: Operands) -> Tensor:
    return context.emit("bit_not", need(node, operands, 0))


ENTRIES: tuple[Entry, ...] = (
    Entry("BitShift", _bit_shift, since=11),
    Entry("BitwiseAnd", _binary("bit_and"), since=18),
    Entry("BitwiseOr", _binary("bit_or"), since=18),
    Entry("BitwiseXor", _binary("bit_xor"), since=18),
    Entry("BitwiseNot", _not, since=18),
)
