"""Constant data as bytes, so that the IR needs no array library."""

import hashlib
import math
import struct
from dataclasses import dataclass
from functools import cached_property

from cuvil_core.errors import ModelError
from cuvil_core.ir.dtypes import DType

_FORMATS = {
    DType.BOOL: "?",
    DType.INT8: "b",
    DType.INT16: "h",
    DType.INT32: "i",
    DType.INT64: "q",
    DType.UINT8: "B",
    DType.UINT16: "H",
    DType.UINT32: "I",
    DType.UINT64: "Q",
    DType.FLOAT16: "e",
    DType.FLOAT32: "f",
    DType.FLOAT64: "d",
}
"""struct's letters; bfloat16 has none and travels as bytes."""


@dataclass(frozen=True)
class Payload:
    """Row-major little-endian elements of a tensor of fixed shape."""

    dtype: DType
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        expected = math.prod(self.shape) * self.dtype.itemsize
        if len(self.data) != expected:
            raise ModelError(
                f"A constant {self.dtype}{list(self.shape)} holds {len(self.data)} bytes instead of {expected}; "
                "export the model again."
            )

    @cached_property
    def digest(self) -> str:
        """sha256 over dtype, shape and data, in hex: the key in a payload table."""
        return hashlib.sha256(f"{self.dtype}{self.shape}".encode() + self.data).hexdigest()

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @staticmethod
    def scalar(dtype: DType, value: float | int | bool) -> "Payload":
        """A rank-0 payload of one number."""
        return Payload.of(dtype, (), [value])

    @staticmethod
    def of(dtype: DType, shape: tuple[int, ...], values: "list[float] | list[int] | list[bool]") -> "Payload":
        """A payload from numbers; ModelError when one does not fit the dtype."""
        if dtype is DType.BFLOAT16:
            return Payload(dtype, shape, b"".join(_bfloat16_bytes(float(value)) for value in values))
        try:
            return Payload(dtype, shape, struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *values))
        except (struct.error, OverflowError) as error:
            raise ModelError(f"A constant does not fit {dtype} ({error}); correct the model's constant.") from error

    def values(self) -> list[float] | list[int] | list[bool]:
        """The elements as Python numbers, in row-major order."""
        if self.dtype is DType.BFLOAT16:
            return [struct.unpack("<f", b"\0\0" + self.data[at : at + 2])[0] for at in range(0, len(self.data), 2)]
        return list(struct.unpack(f"<{self.elements}{_FORMATS[self.dtype]}", self.data))

    def item(self) -> float | int | bool | None:
        """The one number that fills the payload, or None when elements differ or there are none."""
        size = self.dtype.itemsize
        first = self.data[:size]
        if not self.data or first * self.elements != self.data:
            return None
        return Payload(self.dtype, (), first).values()[0]


def _bfloat16_bytes(value: float) -> bytes:
    """Round to nearest even, as conversions in hardware do."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if math.isnan(value):
        return b"\xc0\x7f"
    return struct.pack("<H", (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
