"""TensorProto → Payload, every size checked before memory is taken."""

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from cuvil_core.errors import ModelError, SizeError, UnsupportedOpError
from cuvil_core.ir import DType, Payload

DTYPES: dict[int, DType] = {
    TensorProto.BOOL: DType.BOOL,
    TensorProto.INT8: DType.INT8,
    TensorProto.INT16: DType.INT16,
    TensorProto.INT32: DType.INT32,
    TensorProto.INT64: DType.INT64,
    TensorProto.UINT8: DType.UINT8,
    TensorProto.UINT16: DType.UINT16,
    TensorProto.UINT32: DType.UINT32,
    TensorProto.UINT64: DType.UINT64,
    TensorProto.FLOAT16: DType.FLOAT16,
    TensorProto.BFLOAT16: DType.BFLOAT16,
    TensorProto.FLOAT: DType.FLOAT32,
    TensorProto.DOUBLE: DType.FLOAT64,
}
MAX_PAYLOAD_BYTES = 1 << 33


def dtype_of(code: int, where: str) -> DType:
    """The dtype of an ONNX element type code."""
    dtype = DTYPES.get(code)
    if dtype is None:
        known = code in TensorProto.DataType.values() and code
        kind = TensorProto.DataType.Name(code).lower() if known else f"code {code}"
        raise UnsupportedOpError(
            f"{where} has element type {kind}, which Cuvil does not compile; use float32 or int64."
        )
    return dtype


def payload_of_proto(tensor: onnx.TensorProto, folder: Path | None, where: str) -> Payload:
    """The tensor's data; ModelError where its size and shape do not agree."""
    dtype = dtype_of(tensor.data_type, where)
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where} has a negative extent in {list(shape)}; export the model again.")
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_PAYLOAD_BYTES:
        raise SizeError(f"{where} of shape {list(shape)} takes {size} bytes, more than {MAX_PAYLOAD_BYTES}.")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _checked(dtype, shape, _external(tensor, folder, size, where), where)
    if tensor.HasField("raw_data"):
        return _checked(dtype, shape, bytes(tensor.raw_data), where)
    return _checked(dtype, shape, _typed_fields(tensor, math.prod(shape), where), where)


def _checked(dtype: DType, shape: tuple[int, ...], data: bytes, where: str) -> Payload:
    expected = math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise ModelError(
            f"{where} of type {dtype}{list(shape)} holds {len(data)} bytes instead of {expected}; "
            "fetch or export the model again."
        )
    if dtype is DType.BOOL and data.translate(None, b"\0\1"):
        data = np.frombuffer(data, np.uint8).astype(bool).tobytes()
    return Payload(dtype, shape, data)


def _typed_fields(tensor: onnx.TensorProto, count: int, where: str) -> bytes:
    """Elements in float_data, int32_data, …: their number must be right before NumPy converts them."""
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    values = getattr(tensor, field)
    if len(values) != count:
        raise ModelError(f"{where} holds {len(values)} elements instead of {count}; fetch or export the model again.")
    try:
        return bytes(np.ascontiguousarray(numpy_helper.to_array(tensor)).tobytes())
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"{where} holds elements that do not fit its type; export the model again.") from error


def _external(tensor: onnx.TensorProto, folder: Path | None, size: int, where: str) -> bytes:
    facts = {entry.key: entry.value for entry in tensor.external_data}
    if folder is None:
        raise ModelError(f"{where} lies outside of the model file; load the model from its folder.")
    try:
        offset, length = int(facts.get("offset", "0")), int(facts.get("length", str(size)))
        path = (folder / facts["location"]).resolve()
        inside = path.is_relative_to(folder) and offset >= 0 and length == size
        if not inside:
            raise ModelError(f"{where} points outside of the model's folder or has a wrong length; export it again.")
        with path.open("rb") as file:
            file.seek(offset)
            return bytes(file.read(size))
    except (KeyError, ValueError, OSError) as error:
        raise ModelError(f"{where} lies in external data that cannot be read; put it beside the model.") from error
