"""Cast, CastLike and BitCast, narrow types included: what is narrow is bytes here, see docs/decisions/0034."""

from dataclasses import replace

from cuvil_core.importer.onnx.bits import bitcast
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, need
from cuvil_core.importer.onnx.formats import decode, encode
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import kind_of
from cuvil_core.ir import DType, Element


def widen(context: Context, x: Tensor) -> Tensor:
    """A narrow tensor as one that kernels compute on: floats as float32, integers as bytes; others as they are."""
    if x.element is None:
        return x
    plain = replace(x, element=None)
    return decode(context, plain, x.element) if x.element.is_float else plain


def narrow(context: Context, x: Tensor, element: Element, saturate: bool = True, rounding: str = "up") -> Tensor:
    """A tensor in a narrow type; integers keep their low bits, floats are rounded."""
    if element.is_float:
        wide = x.dtype if x.dtype in (DType.FLOAT32, DType.FLOAT64) else DType.FLOAT32
        made = encode(context, context.cast(x, wide), element, saturate, rounding)
    else:
        made = _low_bits(context, x, element)
    return replace(made, element=element)


def _low_bits(context: Context, x: Tensor, element: Element) -> Tensor:
    """What a machine integer of so few bits keeps; floats are truncated first."""
    whole = context.cast(x, DType.INT32) if x.dtype.is_float else x
    low = context.number("bit_and", context.cast(whole, DType.UINT8), (1 << element.bits) - 1)
    return low if element.storage is DType.UINT8 else _extended(context, low, element)


def _extended(context: Context, low: Tensor, element: Element) -> Tensor:
    """(low xor sign) - sign, as int8"""
    sign = 1 << (element.bits - 1)
    return bitcast(context, context.number("sub", context.number("bit_xor", low, sign), sign), DType.INT8)


def converted(
    context: Context, x: Tensor, kind: tuple[DType, Element | None], saturate: bool = True, rounding: str = "up"
) -> Tensor:
    """The tensor in another type of ONNX."""
    dtype, element = kind
    if element is not None and element is x.element:
        return x
    plain = widen(context, x)
    return context.cast(plain, dtype) if element is None else narrow(context, plain, element, saturate, rounding)


def _cast(context: Context, node: Node, operands: Operands) -> Tensor:
    return _converted(context, node, need(node, operands, 0), kind_of(node.integer("to"), str(node)))


def _cast_like(context: Context, node: Node, operands: Operands) -> Tensor:
    like = need(node, operands, 1)
    return _converted(context, node, need(node, operands, 0), (like.dtype, like.element))


def _converted(context: Context, node: Node, x: Tensor, kind: tuple[DType, Element | None]) -> Tensor:
    rounding = node.text("round_mode", "up")
    if rounding not in ("up", "down", "nearest"):
        raise node.broken(f"its round_mode is {rounding!r}")
    return converted(context, x, kind, node.flag("saturate", True), rounding)


def _bit_cast(context: Context, node: Node, operands: Operands) -> Tensor:
    x, (dtype, element) = need(node, operands, 0), kind_of(node.integer("to"), str(node))
    width = 8 * x.dtype.itemsize if x.element is None else x.element.bits
    wanted = 8 * dtype.itemsize if element is None else element.bits
    if width != wanted:
        raise node.broken(f"it turns elements of {width} bits into such of {wanted}")
    if element is x.element and dtype is x.dtype:
        return x
    bits = _bits(context, x)
    if element is not None and element.storage is DType.INT8:
        return replace(_extended(context, bits, element), element=element)
    if element is not None:
        return replace(bits, element=element)
    return context.cast(bits, dtype) if dtype is DType.BOOL else bitcast(context, bits, dtype)


def _bits(context: Context, x: Tensor) -> Tensor:
    """A tensor whose bytes hold the bits and nothing else."""
    plain = replace(x, element=None)
    if x.dtype is DType.BOOL:
        return context.cast(plain, DType.UINT8)
    if x.element is None or x.element.storage is DType.UINT8:
        return plain
    return context.number("bit_and", bitcast(context, plain, DType.UINT8), (1 << x.element.bits) - 1)


ENTRIES: tuple[Entry, ...] = (
    Entry("Cast", _cast, reads_elements=True),
    Entry("CastLike", _cast_like, since=15, reads_elements=True),
    Entry("BitCast", _bit_cast, since=26, reads_elements=True),
)
