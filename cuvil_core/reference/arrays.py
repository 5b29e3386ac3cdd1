"""Between payloads and NumPy arrays."""

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from cuvil_core.ir import DType, Element, Payload

Array: TypeAlias = np.ndarray[Any, Any]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of an element type."""
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16) if dtype is DType.BFLOAT16 else np.dtype(dtype.value)
    return found


def to_storage(array: Array, element: Element) -> Array:
    """What a caller passes as the graph holds it: integers by value, floats by their bits."""
    if not element.is_float:
        return array.astype(numpy_dtype(element.storage))
    return array.view(np.uint8) & np.uint8((1 << element.bits) - 1)


def from_storage(array: Array, element: Element) -> Array:
    """What a graph holds as its caller knows it."""
    return array.view(_outside(element)) if element.is_float else array.astype(_outside(element))


def _outside(element: Element) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, element.value))
    return found


def seen_as(dtype: DType, element: Element | None) -> np.dtype[Any]:
    """The NumPy dtype of what a caller passes or gets."""
    return numpy_dtype(dtype) if element is None else _outside(element)


def array_of(payload: Payload) -> Array:
    """A read-only array over the payload's bytes."""
    return np.frombuffer(payload.data, numpy_dtype(payload.dtype)).reshape(payload.shape)


def payload_of(array: Array) -> Payload:
    """A copy of the array as a payload."""
    return Payload(DType(array.dtype.name), array.shape, np.ascontiguousarray(array).tobytes())
