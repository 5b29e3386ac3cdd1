"""The type of a tensor, and the rule by which ops derive theirs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cuvil_core.ir.dims import Dim, DimLike, product
from cuvil_core.ir.dtypes import DType

if TYPE_CHECKING:
    from cuvil_core.ir.graph import Attribute, Block


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape, outermost extent first; `float32[N, 3, (H + 1)//2]`."""

    dtype: DType
    shape: tuple[Dim, ...]

    @staticmethod
    def of(dtype: DType, shape: "tuple[DimLike, ...] | list[DimLike]") -> "TensorType":
        """The type with ints taken as constant dims."""
        return TensorType(dtype, tuple(Dim.of(extent) for extent in shape))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> Dim:
        """The number of elements."""
        return product(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape as ints when no symbol is left, else None."""
        extents = [extent.constant for extent in self.shape]
        return None if None in extents else tuple(extent for extent in extents if extent is not None)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class Rules(Protocol):
    """What the IR asks of the op table: the result types of an op, or a ModelError that says what is wrong."""

    def infer(
        self,
        name: str,
        operands: tuple[TensorType, ...],
        attributes: "Mapping[str, Attribute]",
        region: "Block | None",
        blocks: "tuple[Block, ...]" = (),
    ) -> tuple[TensorType, ...]:
        """Result types; raises ModelError for an unknown op, wrong operands or wrong attributes."""
        ...
