"""The narrow float formats: their numbers, and how wider floats are rounded to them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType, Element, Payload

INFINITY, NAN = math.inf, math.nan
_BITS = {DType.FLOAT32: (DType.UINT32, 0x7F800000, 31), DType.FLOAT64: (DType.UINT64, 0x7FF << 52, 63)}
"""Dtype in which rounding is done → dtype of its bits, mask of the exponent, place of the sign."""


@dataclass(frozen=True, slots=True)
class Format:
    """A float of `bits` bits: a sign, an exponent with this bias, a mantissa; what else its codes mean."""

    bits: int
    mantissa: int
    bias: int
    greatest: float
    special: Callable[[int], float | None]
    """Code without its sign → infinity or NaN, None for a number."""
    beyond: int | None
    """The code of what overflows where it may not be the greatest number; None: it is that in any case."""
    nan: int
    """A code of NaN; where the format has none, what NumPy's extension makes of it."""
    one_zero: bool = False
    """No negative zero: its code is NaN."""

    @property
    def least_exponent(self) -> int:
        """The exponent of the least normal number."""
        return 1 - self.bias

    def number(self, code: int) -> float:
        """What a code means."""
        sign, plain = code >> (self.bits - 1), code & ((1 << (self.bits - 1)) - 1)
        if self.one_zero and sign and not plain:
            return NAN
        found = self.special(plain)
        return math.copysign(self._size(plain) if found is None else found, -1.0 if sign else 1.0)

    def _size(self, plain: int) -> float:
        exponent, rest = plain >> self.mantissa, plain & ((1 << self.mantissa) - 1)
        if exponent == 0:
            return math.ldexp(rest, self.least_exponent - self.mantissa)
        return math.ldexp((1 << self.mantissa) + rest, exponent - self.bias - self.mantissa)


def _none(code: int) -> float | None:
    return None


def _as_ieee(code: int) -> float | None:
    """The greatest exponent is infinity, and NaN with a mantissa."""
    return None if code < 0x7C else INFINITY if code == 0x7C else NAN


FORMATS: dict[Element, Format] = {
    Element.FLOAT8_E4M3FN: Format(8, 3, 7, 448.0, lambda code: NAN if code == 0x7F else None, 0x7F, 0x7F),
    Element.FLOAT8_E4M3FNUZ: Format(8, 3, 8, 240.0, _none, 0x80, 0x80, one_zero=True),
    Element.FLOAT8_E5M2: Format(8, 2, 15, 57344.0, _as_ieee, 0x7C, 0x7E),
    Element.FLOAT8_E5M2FNUZ: Format(8, 2, 16, 57344.0, _none, 0x80, 0x80, one_zero=True),
    Element.FLOAT4_E2M1: Format(4, 1, 1, 6.0, _none, None, 0x8),
}
SCALE_NAN = 0xFF
"""float8_e8m0fnu has powers of two only, 2**(code - 127), and this NaN."""


def numbers_of(element: Element) -> list[float]:
    """What each code of a narrow float means."""
    if element is Element.FLOAT8_E8M0:
        return [math.ldexp(1.0, code - 127) for code in range(SCALE_NAN)] + [NAN]
    return [FORMATS[element].number(code) for code in range(1 << element.bits)]


def decode(context: Context, codes: Tensor, element: Element) -> Tensor:
    """The float32 numbers of codes, looked up."""
    numbers = numbers_of(element)
    table = Tensor.of_payload(Payload.of(DType.FLOAT32, (len(numbers),), numbers))
    return context.emit("gather", table, codes, axis=0)


def encode(context: Context, x: Tensor, element: Element, saturate: bool, rounding: str) -> Tensor:
    """Codes of float32 or float64 numbers, rounded to nearest even; `rounding` steers float8_e8m0fnu alone."""
    if element is Element.FLOAT8_E8M0:
        return _power_of_two(context, context.cast(x, DType.FLOAT32), saturate, rounding)
    format = FORMATS[element]
    size = context.emit("abs", x)
    rounded = _on_grid(context, size, format)
    code = _code(context, context.cast(context.number("min", rounded, format.greatest), DType.FLOAT32), format)
    if format.beyond is not None and not saturate:
        code = _where(context, context.number("gt", rounded, format.greatest), format.beyond, code)
    code = _signed(context, x, code, format)
    return _where(context, context.emit("isnan", x), format.nan, code)


def _on_grid(context: Context, size: Tensor, format: Format) -> Tensor:
    """The nearest multiple of the format's step at this size; all factors are powers of two, so only `round` rounds."""
    plain, mask, _ = _BITS[size.dtype]
    size = context.number("min", size, 4 * format.greatest)
    exponent = context.number("bit_and", context.emit("bitcast", size, dtype=plain), mask)
    power = context.number(
        "max", context.emit("bitcast", exponent, dtype=size.dtype), math.ldexp(1.0, format.least_exponent)
    )
    step = context.number("mul", power, math.ldexp(1.0, -format.mantissa))
    return context.emit("mul", context.emit("round", context.emit("div", size, step)), step)


def _code(context: Context, number: Tensor, format: Format) -> Tensor:
    """The code of a float32 number on the grid: its own bits shifted, or a count of steps below the normal ones."""
    bits = context.emit("bitcast", number, dtype=DType.UINT32)
    moved = context.number("shift_right", bits, 23 - format.mantissa)
    normal = context.number("sub", moved, (127 - format.bias) << format.mantissa)
    steps = context.number("mul", number, math.ldexp(1.0, format.mantissa - format.least_exponent))
    below = context.number("lt", number, math.ldexp(1.0, format.least_exponent))
    return context.cast(
        context.emit("select", below, context.cast(steps, DType.UINT32), normal),
        DType.UINT8,
    )


def _signed(context: Context, x: Tensor, code: Tensor, format: Format) -> Tensor:
    plain, _, place = _BITS[x.dtype]
    sign = context.number("shift_right", context.emit("bitcast", x, dtype=plain), place)
    bit = context.number("shift_left", context.cast(sign, DType.UINT8), format.bits - 1)
    signed = context.emit("bit_or", code, bit)
    return _where(context, context.number("eq", code, 0), 0, signed) if format.one_zero else signed


def _where(context: Context, condition: Tensor, code: int, otherwise: Tensor) -> Tensor:
    return context.emit("select", condition, context.like(otherwise, code), otherwise)


_HALF = {"up": (0, 0x400000), "nearest": (0x3FFFFF, 0x600000), "down": (0x7FFFFF, 0x7FFFFF)}
"""Rounding → the greatest mantissa bits that stay, of normal numbers and of those below 2**-126."""


def _power_of_two(context: Context, x: Tensor, saturate: bool, rounding: str) -> Tensor:
    """float32's exponent, one more where the mantissa says so. Infinity and what is below the least power are NaN
    unless saturated; of the sign nothing is said, so it is dropped."""
    bits = context.emit("bitcast", context.emit("abs", x), dtype=DType.UINT32)
    exponent = context.number("shift_right", bits, 23)
    rest = context.number("bit_and", bits, 0x7FFFFF)
    stays, stays_below = _HALF[rounding]
    edge = _where(context, context.number("eq", exponent, 0), stays_below, context.like(exponent, stays))
    code = context.emit("add", exponent, context.cast(context.emit("gt", rest, edge), DType.UINT32))
    if saturate:
        code = context.number("min", code, SCALE_NAN - 1)
    else:
        small = context.number("lt", bits, 0x400000)
        code = _where(context, small, SCALE_NAN, context.number("min", code, SCALE_NAN))
    return context.cast(_where(context, context.emit("isnan", x), SCALE_NAN, code), DType.UINT8)
