"""Quantized ops in integers and floats that are not: steps of rounding, int32 sums that are exact and wrap."""

from cuvil_core.importer.onnx.casting import converted, narrow, widen
from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.contractions import convolve, matmul
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import kind_of
from cuvil_core.ir import Dim, DType, Element

Kind = tuple[DType, Element | None]
BEYOND = 1 << 18
"""No zero point brings a number of this size back into a range of 16 bits; an int32 holds it with any of them."""


# --- QuantizeLinear and DequantizeLinear ----------------------------------------------------------------------------


def _quantize(context: Context, node: Node, operands: Operands) -> Tensor:
    """saturate(round(x / scale) + zero point); narrow floats are rounded by their own rule, after the sum."""
    x, scale, zero = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    kind = _output_kind(node, zero)
    spread = _Spread(context, node, x)
    quotient = _quotient(context, node, x, scale, spread.over(scale))
    offset = None if zero is None or _is_zero(zero) else spread.over(zero)
    if kind[1] is not None and kind[1].is_float:
        if offset is not None:
            quotient = context.emit("add", quotient, context.cast(offset, DType.FLOAT32))
        return narrow(context, quotient, kind[1], node.flag("saturate", True))
    return saturated(context, quotient, offset, kind)


def _output_kind(node: Node, zero: Tensor | None) -> Kind:
    """The type of the zero point, else what the node says, else uint8."""
    asked = node.integer("output_dtype", 0)
    kind = kind_of(asked, str(node)) if asked else (DType.UINT8, None)
    if zero is None:
        return kind
    if asked and kind != (zero.dtype, zero.element):
        raise node.broken(f"its output_dtype is {kind[1] or kind[0]}, its zero point {zero.element or zero.dtype}")
    return zero.dtype, zero.element


def _quotient(context: Context, node: Node, x: Tensor, scale: Tensor, spread: Tensor) -> Tensor:
    """x / scale, rounded to the precision that the node or the scale gives; as float32 in the end.

    The quotient of two numbers of 8 or 11 digits is the same whether float32 rounds it on the way or not.
    """
    if scale.dtype is DType.INT32:
        raise node.unsupported("scales of int32, whose division ONNX leaves open")
    result = context.emit("div", context.cast(x, DType.FLOAT32), context.cast(spread, DType.FLOAT32))
    asked = node.integer("precision", 0)
    precision = kind_of(asked, str(node))[0] if asked else DType.FLOAT32 if scale.element else scale.dtype
    if precision not in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16):
        raise node.unsupported(f"the precision {precision}")
    return context.cast(context.cast(result, precision), DType.FLOAT32)


def saturated(context: Context, x: Tensor, offset: Tensor | None, kind: Kind) -> Tensor:
    """round(x) + offset within the range of an integer type, half to even; NaN counts as 0."""
    dtype, element = kind
    bits = 8 * dtype.itemsize if element is None else element.bits
    low = -(1 << (bits - 1)) if dtype.is_signed else 0
    rounded = context.number("min", context.number("max", context.emit("round", x), -BEYOND), BEYOND)
    whole = context.cast(rounded, DType.INT32)
    if offset is not None:
        whole = context.binary("add", whole, context.cast(offset, DType.INT32))
    within = context.number("min", context.number("max", whole, low), low + (1 << bits) - 1)
    return converted(context, within, kind)


def _dequantize(context: Context, node: Node, operands: Operands) -> Tensor:
    """(x - zero point) * scale, in float32, rounded to the type of the scale or the one asked for."""
    x, scale, zero = need(node, operands, 0), need(node, operands, 1), optional(operands, 2)
    asked = node.integer("output_dtype", 0)
    if scale.element is not None and not asked:
        raise node.broken(f"its scale is {scale.element}, so it must say its output_dtype")
    dtype = kind_of(asked, str(node))[0] if asked else scale.dtype
    spread = _Spread(context, node, x)
    number = _centred(context, x, None if zero is None or _is_zero(zero) else spread.over(zero))
    factor = context.cast(spread.over(scale), DType.FLOAT32)
    return context.cast(context.emit("mul", context.cast(number, DType.FLOAT32), factor), dtype)


def _centred(context: Context, x: Tensor, zero: Tensor | None) -> Tensor:
    """x - zero in int32, or in float32 for floats."""
    plain = widen(context, x)
    dtype = plain.dtype if plain.dtype.is_float else DType.INT32
    number = context.cast(plain, dtype)
    return number if zero is None else context.binary("sub", number, context.cast(zero, dtype))


def _is_zero(tensor: Tensor) -> bool:
    numbers = tensor.numbers()
    return numbers is not None and all(number == 0 for number in numbers)


class _Spread:
    """Stretches scales and zero points over x: one number, one a place of the axis, or one a block along it."""

    def __init__(self, context: Context, node: Node, x: Tensor) -> None:
        self._context, self._node, self._x = context, node, x
        self._block = node.integer("block_size", 0)

    def over(self, given: Tensor) -> Tensor:
        """The numbers of the tensor with the shape of x."""
        x, context = self._x, self._context
        tensor = widen(context, given)
        if self._block < 0:
            raise self._node.broken(f"its block_size is {self._block}")
        if self._block > 0:
            return self._blocked(tensor)
        if tensor.rank > 1:
            raise self._node.broken(f"its scale or zero point has rank {tensor.rank} without a block_size")
        if tensor.rank == 0 or tensor.type.elements == 1:
            return context.stretch(context.reshape(tensor, ()), x.shape)
        if self._node.opset < 13:
            raise self._node.broken("before opset 13 its scale and zero point must be scalars")
        axis = 0 if x.rank == 1 else self._axis()
        context.guard(tensor.shape[0], x.shape[axis])
        line = context.reshape(tensor, [x.shape[axis] if at == axis else Dim.of(1) for at in range(x.rank)])
        return context.stretch(line, x.shape)

    def _axis(self) -> int:
        return resolve_axis(self._node.integer("axis", 1), self._x.rank)

    def _blocked(self, tensor: Tensor) -> Tensor:
        """Each number `block_size` times along the axis; the last block may be shorter."""
        context, x, axis, block = self._context, self._x, self._axis(), self._block
        if tensor.rank != x.rank:
            raise self._node.broken(f"its scale or zero point has rank {tensor.rank}, its input {x.rank}")
        blocks = x.shape[axis].ceil_div(block)
        wanted = (*x.shape[:axis], blocks, *x.shape[axis + 1 :])
        for extent, want in zip(tensor.shape, wanted, strict=True):
            context.guard(extent, want)
        apart = context.reshape(tensor, (*wanted[: axis + 1], 1, *wanted[axis + 1 :]))
        stretched = context.stretch(apart, (*wanted[: axis + 1], Dim.of(block), *wanted[axis + 1 :]))
        joined = context.reshape(stretched, (*wanted[:axis], blocks * block, *wanted[axis + 1 :]))
        return context.slice(joined, axis, 0, x.shape[axis])


# --- products in int32 ----------------------------------------------------------------------------------------------


def _matmul_integer(context: Context, node: Node, operands: Operands) -> Tensor:
    a, b = need(node, operands, 0), need(node, operands, 1)
    return _product(context, node, a, optional(operands, 2), b, optional(operands, 3))


def _product(
    context: Context, node: Node, a: Tensor, zero_a: Tensor | None, b: Tensor, zero_b: Tensor | None
) -> Tensor:
    left = _centred(context, a, None if zero_a is None else _along(context, node, zero_a, a, -2))
    right = _centred(context, b, None if zero_b is None else _along(context, node, zero_b, b, -1))
    return matmul(context, node, (left, right))


def _along(context: Context, node: Node, tensor: Tensor, x: Tensor, axis: int) -> Tensor:
    """One number, a vector along an axis of x counted from the end, or a tensor that broadcasts already."""
    if tensor.rank != 1 or tensor.type.elements == 1:
        return _scalar(context, tensor) if tensor.type.elements == 1 else tensor
    if x.rank < -axis:
        raise node.broken("its zero points or scales do not fit its input")
    return context.reshape(tensor, [tensor.shape[0], *[1] * (-axis - 1)])


def _scalar(context: Context, tensor: Tensor) -> Tensor:
    return context.reshape(tensor, ())


def _conv_integer(context: Context, node: Node, operands: Operands) -> Tensor:
    x, w = need(node, operands, 0), need(node, operands, 1)
    return _convolved(context, node, x, optional(operands, 2), w, optional(operands, 3))


def _convolved(
    context: Context, node: Node, x: Tensor, zero_x: Tensor | None, w: Tensor, zero_w: Tensor | None
) -> Tensor:
    """The borders hold x's zero point, which is 0 once that is subtracted."""
    if zero_x is not None and zero_x.type.elements != 1:
        raise node.broken("the zero point of its input must be a scalar")
    if w.rank < 3:
        raise node.broken("its weights need O, I and at least one spatial axis")
    left = _centred(context, x, None if zero_x is None else _scalar(context, zero_x))
    right = _centred(context, w, None if zero_w is None else _a_channel(context, node, zero_w, w, 0))
    return convolve(context, node, left, right)


def _a_channel(context: Context, node: Node, tensor: Tensor, x: Tensor, axis: int) -> Tensor:
    """One number, or one a place of the axis."""
    if tensor.type.elements == 1:
        return _scalar(context, tensor)
    if tensor.rank != 1:
        raise node.broken("the scales and zero points of its weights must be scalars or vectors")
    context.guard(tensor.shape[0], x.shape[axis])
    return context.reshape(tensor, [x.shape[axis], *[1] * (x.rank - 1 - axis)])


# --- products between quantized tensors -----------------------------------------------------------------------------


def _qlinear_matmul(context: Context, node: Node, operands: Operands) -> Tensor:
    a, scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y = (need(node, operands, at) for at in range(8))
    total = _product(context, node, a, zero_a, b, zero_b)
    left = _along(context, node, scale_a, total, -2)
    right = _along(context, node, scale_b, total, -1)
    return _requantized(
        context,
        total,
        (left, right, _along(context, node, scale_y, total, -2)),
        _along(context, node, zero_y, total, -2),
    )


def _qlinear_conv(context: Context, node: Node, operands: Operands) -> Tensor:
    x, scale_x, zero_x, w, scale_w, zero_w, scale_y, zero_y = (need(node, operands, at) for at in range(8))
    bias = optional(operands, 8)
    total = _convolved(context, node, x, zero_x, w, zero_w)
    if bias is not None:
        total = context.binary("add", total, _a_channel(context, node, bias, total, 1))
    for one in (scale_x, scale_y, zero_y):
        if one.type.elements != 1:
            raise node.broken("the scales of its input and output, and the output's zero point, must be scalars")
    scales = _scalar(context, scale_x), _a_channel(context, node, scale_w, total, 1), _scalar(context, scale_y)
    return _requantized(context, total, scales, _scalar(context, zero_y))


def _requantized(context: Context, total: Tensor, scales: tuple[Tensor, Tensor, Tensor], zero: Tensor) -> Tensor:
    """saturate(round(total * (left * right / out)) + zero): the factor once a scale, in float32 as runtimes have it."""
    left, right, out = (context.cast(scale, DType.FLOAT32) for scale in scales)
    factor = context.binary("div", context.binary("mul", left, right), out)
    result = context.binary("mul", context.cast(total, DType.FLOAT32), factor)
    return saturated(context, result, zero, (zero.dtype, zero.element))


ENTRIES: tuple[Entry, ...] = (
    Entry("QuantizeLinear", _quantize, since=10, reads_elements=True),
    Entry("DequantizeLinear", _dequantize, since=10, reads_elements=True),
    Entry("MatMulInteger", _matmul_integer, since=10),
    Entry("ConvInteger", _conv_integer, since=10),
    Entry("QLinearMatMul", _qlinear_matmul, since=10),
    Entry("QLinearConv", _qlinear_conv, since=10),
)
