"""Narrow element types: known where a model is read and where a caller passes tensors, stored as bytes in between."""

from collections.abc import Sequence
from enum import Enum

from cuvil_core.ir.dtypes import DType


class Element(Enum):
    """A type of 8, 4 or 2 bits that no kernel computes in; the value is ml_dtypes' name.

    A graph holds it as `storage`, one element a byte: integers by value, floats by their bits (in the low ones).
    """

    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0 = "float8_e8m0fnu"
    FLOAT4_E2M1 = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    @property
    def is_float(self) -> bool:
        """True where the bytes are bit patterns, not numbers."""
        return self.value.startswith("float")

    @property
    def bits(self) -> int:
        """How many of a byte's bits it takes: 8, 4 or 2."""
        return 8 if "8_" in self.value else 4 if "4" in self.value else 2

    @property
    def storage(self) -> DType:
        """The dtype of its bytes in a graph."""
        return DType.INT8 if self.value.startswith("int") else DType.UINT8

    def __str__(self) -> str:
        return self.value


Elements = tuple[Element | None, ...]
"""One a port; None where the value's own dtype is what the caller sees."""


def each(elements: Elements, ports: Sequence[object]) -> Elements:
    """The elements, or None for each port where nothing was said."""
    return elements or (None,) * len(ports)
