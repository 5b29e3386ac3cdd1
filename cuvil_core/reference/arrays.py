"""Between payloads and NumPy arrays."""

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from cuvil_core.ir import DType, Payload

Array: TypeAlias = np.ndarray[Any, Any]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of an element type."""
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16) if dtype is DType.BFLOAT16 else np.dtype(dtype.value)
    return found


def array_of(payload: Payload) -> Array:
    """A read-only array over the payload's bytes."""
    return np.frombuffer(payload.data, numpy_dtype(payload.dtype)).reshape(payload.shape)


def payload_of(array: Array) -> Payload:
    """A copy of the array as a payload."""
    return Payload(DType(array.dtype.name), array.shape, np.ascontiguousarray(array).tobytes())
