"""Element types of tensors."""

from enum import Enum


class DType(Enum):
    """An element type; the value is NumPy's name (ml_dtypes' for bfloat16)."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return 1 if self is DType.BOOL else int("".join(filter(str.isdigit, self.value))) // 8

    @property
    def is_float(self) -> bool:
        """True for the IEEE types and bfloat16."""
        return self.value.startswith(("float", "bfloat"))

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.value.startswith(("int", "uint"))

    @property
    def is_signed(self) -> bool:
        """True where a negative element is possible."""
        return self.is_float or self.value.startswith("int")

    def __str__(self) -> str:
        return self.value
