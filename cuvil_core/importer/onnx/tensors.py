"""TensorProto → Payload, every size checked before memory is taken."""

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from cuvil_core.errors import ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType, Element, Payload

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
ELEMENTS: dict[int, Element] = {
    TensorProto.FLOAT8E4M3FN: Element.FLOAT8_E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ: Element.FLOAT8_E4M3FNUZ,
    TensorProto.FLOAT8E5M2: Element.FLOAT8_E5M2,
    TensorProto.FLOAT8E5M2FNUZ: Element.FLOAT8_E5M2FNUZ,
    TensorProto.FLOAT8E8M0: Element.FLOAT8_E8M0,
    TensorProto.FLOAT4E2M1: Element.FLOAT4_E2M1,
    TensorProto.INT4: Element.INT4,
    TensorProto.UINT4: Element.UINT4,
    TensorProto.INT2: Element.INT2,
    TensorProto.UINT2: Element.UINT2,
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


def kind_of(code: int, where: str) -> tuple[DType, Element | None]:
    """The dtype in a graph of an ONNX element type code, and the narrow type that it stands for."""
    element = ELEMENTS.get(code)
    return (dtype_of(code, where), None) if element is None else (element.storage, element)


def tensor_of_proto(tensor: onnx.TensorProto, folder: Path | None, where: str) -> Tensor:
    """The tensor's data with its narrow type, one element a byte."""
    element = ELEMENTS.get(tensor.data_type)
    if element is None:
        return Tensor.of_payload(payload_of_proto(tensor, folder, where))
    shape = _checked_shape(tensor, 1, where)
    count = math.prod(shape)
    packed = -(-count * element.bits // 8)
    if tensor.data_location == TensorProto.EXTERNAL:
        data = _external(tensor, folder, packed, where)
    elif tensor.HasField("raw_data"):
        data = bytes(tensor.raw_data)
    else:
        data = bytes(one & 0xFF for one in tensor.int32_data)
    if len(data) != packed:
        raise ModelError(
            f"{where} of type {element}{list(shape)} holds {len(data)} bytes instead of {packed}; "
            "fetch or export the model again."
        )
    return Tensor.of_payload(Payload(element.storage, shape, _unpacked(data, count, element)), element=element)


def _unpacked(data: bytes, count: int, element: Element) -> bytes:
    """One element a byte, the low bits first; signed ones keep their sign."""
    parts = 8 // element.bits
    shifts = np.arange(parts, dtype=np.uint8) * np.uint8(element.bits)
    codes = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & np.uint8((1 << element.bits) - 1)
    codes = codes.ravel()[:count]
    if element.storage is DType.INT8:
        sign = np.uint8(1 << (element.bits - 1))
        codes = (codes ^ sign) - sign
    return codes.tobytes()


def _checked_shape(tensor: onnx.TensorProto, itemsize: int, where: str) -> tuple[int, ...]:
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where} has a negative extent in {list(shape)}; export the model again.")
    size = math.prod(shape) * itemsize
    if size > MAX_PAYLOAD_BYTES:
        raise SizeError(f"{where} of shape {list(shape)} takes {size} bytes, more than {MAX_PAYLOAD_BYTES}.")
    return shape


def payload_of_proto(tensor: onnx.TensorProto, folder: Path | None, where: str) -> Payload:
    """The tensor's data; ModelError where its size and shape do not agree."""
    dtype = dtype_of(tensor.data_type, where)
    shape = _checked_shape(tensor, dtype.itemsize, where)
    size = math.prod(shape) * dtype.itemsize
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
