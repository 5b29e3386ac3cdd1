"""Names of C element and vector types, and numbers as C constants."""

from __future__ import annotations

import math

from cuvil_core.ir import DType

SHORT = {
    DType.BOOL: "u8",
    DType.INT8: "i8",
    DType.INT16: "i16",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.UINT8: "u8",
    DType.UINT16: "u16",
    DType.UINT32: "u32",
    DType.UINT64: "u64",
    DType.FLOAT16: "f16",
    DType.BFLOAT16: "u16",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
}
"""The stem of each dtype's names in `cuvil_lanes.h`; bools and bfloat16 as they lie in memory."""

ELEMENT = {
    "f16": "_Float16",
    "f32": "float",
    "f64": "double",
    **{f"{sign}{bits}": f"{'' if sign == 'i' else 'u'}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)},
}
"""Stem → C element type."""


def pointer(buffer: str) -> str:
    """The C variable of a buffer or scratch array."""
    return f"p_{buffer}"


def variable(axis: str) -> str:
    """The C variable of an axis."""
    return f"i_{axis}"


def symbol_variable(symbol: str) -> str:
    """The C variable of a symbol, whatever characters its name has."""
    plain = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in symbol)
    return f"s_{plain}"


def element_type(dtype: DType) -> str:
    """The C type of an element in memory."""
    return ELEMENT[SHORT[dtype]]


def vector_type(dtype: DType, lanes: int) -> str:
    """The C type of `lanes` values."""
    return f"{SHORT[dtype]}x{lanes}"


def literal_text(value: float | int | bool, dtype: DType) -> str:
    """A C constant of the dtype, exact."""
    if dtype is DType.BOOL:
        return "1" if value else "0"
    if dtype.is_integer:
        return _integer_text(int(value), dtype)
    return f"({element_type(dtype)}){_float_text(float(value), dtype)}"


def _integer_text(value: int, dtype: DType) -> str:
    if dtype is DType.INT64 and value == -(1 << 63):
        return "INT64_MIN"
    suffix = "ULL" if dtype is DType.UINT64 else "LL"
    return f"({element_type(dtype)}){value}{suffix}" if value >= 0 else f"({element_type(dtype)})(-{-value}{suffix})"


def _float_text(value: float, dtype: DType) -> str:
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "(-__builtin_inf())"
    return f"{value.hex()}f" if dtype is DType.FLOAT32 and abs(value) < 3.4e38 else value.hex()
