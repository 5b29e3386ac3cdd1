"""What the importer knows of a tensor before it decides whether an op is needed for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cuvil_core.ir import Attribute, Dim, DType, Element, Payload, TensorType, Value

Content: TypeAlias = np.ndarray[Any, Any]
"""An object array of Dims."""
MAX_CONTENT = 1024
"""Shape arithmetic is followed for tensors of at most so many elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """A primitive that makes a tensor whose elements are known, for the consumer that needs it as a value."""

    name: str
    operands: "tuple[Tensor, ...]"
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A type and one or more ways to have the data: a value of the graph, a constant, known elements."""

    type: TensorType
    value: Value | None = None
    payload: Payload | None = None
    content: Content | None = None
    """Elements as dims, for integers, bools (0 and 1) and floats cast from integers."""
    recipe: Recipe | None = None
    """How the graph makes the data, where that is better than a constant."""
    element: Element | None = None
    """The narrow type that the bytes stand for; operands of translations that read no elements never have one."""
    items: "tuple[Tensor, ...] | None" = None
    """The tensors of a sequence; then the type tells the element type alone, and there is no data."""

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of the type."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    @staticmethod
    def of_value(value: Value) -> "Tensor":
        """A tensor that the graph computes; one without elements is known all the same."""
        shape = value.type.static_shape
        return Tensor(value.type, value, content=np.empty(shape, object) if shape and 0 in shape else None)

    @staticmethod
    def of_items(dtype: DType, element: Element | None, items: "tuple[Tensor, ...]") -> "Tensor":
        """A sequence of tensors of one element type."""
        return Tensor(TensorType(dtype, ()), element=element, items=items)

    @staticmethod
    def of_bytes(dtype: DType, shape: tuple[int, ...], data: bytes) -> "Tensor":
        """A constant of row-major little-endian elements."""
        return Tensor.of_payload(Payload(dtype, shape, data))

    @staticmethod
    def of_payload(payload: Payload, recipe: Recipe | None = None, element: Element | None = None) -> "Tensor":
        """A constant; small ones of integers and bools have known elements."""
        type = TensorType.of(payload.dtype, list(payload.shape))
        whole = not payload.dtype.is_float and payload.elements <= MAX_CONTENT
        content = to_content([int(value) for value in payload.values()], payload.shape) if whole else None
        return Tensor(type, payload=payload, content=content, recipe=recipe, element=element)

    @staticmethod
    def of_content(dtype: DType, content: Content) -> "Tensor":
        """A tensor of known elements."""
        return Tensor(TensorType.of(dtype, list(content.shape)), content=content)

    def numbers(self) -> list[float | int] | None:
        """The elements as numbers when all are known, else None; ints for integers, which a float may not hold."""
        if self.payload is not None and self.payload.elements <= MAX_CONTENT:
            return [value for value in self.payload.values()]
        constants = None if self.content is None else [dim.constant for dim in self.content.ravel()]
        if constants is None or None in constants:
            return None
        return [value for value in constants if value is not None]


def to_content(values: "list[int] | list[Dim] | list[Dim | int]", shape: tuple[int, ...]) -> Content:
    """An object array of dims in row-major order."""
    content = np.empty(len(values), object)
    for at, value in enumerate(values):
        content[at] = Dim.of(value)
    return content.reshape(shape)
