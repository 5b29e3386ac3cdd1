"""Requests and answers of the Open Inference Protocol v2, with its binary tensor extension: bytes ↔ arrays, pure.

Sources: the KServe "Open Inference Protocol" REST page and Triton's "Binary Tensor Data Extension". A body is JSON,
then (when the header `Inference-Header-Content-Length` says where JSON ends) the raw little-endian tensors that the
JSON announces by `binary_data_size`, in order. Differences: no shared memory, no classification, no BYTES, since no
model has text inputs yet; each is refused by a sentence.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import TensorSpec
from cuvil_core.errors import InputError, TargetError

Array = NDArray[Any]
MAX_ELEMENTS = 1 << 34
MAX_AXES = 32
MAX_JSON_ELEMENTS = 1 << 24
"""Numbers of one output in JSON: each takes some fifty bytes on the way."""
TYPES: Mapping[str, str] = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}
"""NumPy's name → the protocol's."""
_DTYPES = {protocol: np.dtype(name) for name, protocol in TYPES.items()}


def check_types(specs: Iterable[TensorSpec]) -> None:
    """Raise TargetError for a tensor of a type that the protocol has no word for."""
    for spec in specs:
        if spec.dtype not in TYPES:
            raise TargetError(f"{spec.name!r} is {spec.dtype}, which cannot be served; cast it inside the model")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One output that the client asks for."""

    name: str
    binary: bool


@dataclass(frozen=True, slots=True)
class Request:
    """An inference request, read."""

    id: str
    inputs: Mapping[str, Array]
    """Views of the body where it is binary."""
    outputs: tuple[Wanted, ...] | None
    """None: all of them."""
    binary: bool
    """How outputs travel that the client does not name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A body and where its JSON ends (None: it is all JSON)."""

    body: bytes
    json_length: int | None


def read_request(body: bytes, json_length: str | None) -> Request:
    """Read an inference request; raises InputError that says what is wrong with it."""
    head, tail = _split(body, json_length)
    raw = _parse(head)
    parameters = _object(raw.get("parameters", {}), "'parameters'")
    binary = parameters.get("binary_data_output", False) is True
    identifier = raw.get("id", "")
    if not isinstance(identifier, str):
        raise InputError("'id' must be a text")
    inputs = _read_inputs(raw.get("inputs"), tail)
    return Request(identifier, inputs, _read_outputs(raw.get("outputs"), binary), binary)


def write_answer(model: str, version: str, request: Request, outputs: Mapping[str, Array]) -> Answer:
    """Write the outputs that the request asks for; raises InputError for one that the model lacks."""
    wanted = request.outputs or tuple(Wanted(name, request.binary) for name in outputs)
    described, blobs = [], []
    for one in wanted:
        if one.name not in outputs:
            raise InputError(f"there is no output {one.name!r}, the model has {', '.join(outputs)}")
        array = outputs[one.name]
        entry: dict[str, Any] = {"name": one.name, "datatype": TYPES[array.dtype.name], "shape": list(array.shape)}
        if one.binary:
            entry["parameters"] = {"binary_data_size": array.nbytes}
            blobs.append(array.tobytes())
        else:
            entry["data"] = _json_data(one.name, array)
        described.append(entry)
    answer: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": described}
    if request.id:
        answer["id"] = request.id
    head = json.dumps(answer, separators=(",", ":")).encode()
    return Answer(b"".join((head, *blobs)), len(head) if blobs else None)


def _json_data(name: str, array: Array) -> list[Any]:
    """Give the numbers; JSON has none that are not finite (null or a bare NaN would be read in different ways)."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"output {name!r} holds NaN or Inf, which JSON cannot hold: ask for it with 'binary_data'")
    if array.size > MAX_JSON_ELEMENTS:
        raise InputError(
            f"output {name!r} has {array.size} elements, more than the {MAX_JSON_ELEMENTS} that go as JSON: "
            "ask for it with 'binary_data'"
        )
    data: list[Any] = array.ravel().tolist()
    return data


def metadata(
    model: str, version: str, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]
) -> dict[str, Any]:
    """Give the model's metadata; a symbolic extent is -1."""
    return {
        "name": model,
        "versions": [version],
        "platform": "cuvil",
        "inputs": [_describe(one) for one in inputs],
        "outputs": [_describe(one) for one in outputs],
    }


def config(model: str, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    """Give Triton's model configuration, as far as clients read it: a batch axis is an axis like any other."""

    def one(spec: TensorSpec) -> dict[str, Any]:
        described = _describe(spec)
        return {
            "name": spec.name,
            "data_type": f"TYPE_{described['datatype']}",
            "dims": described["shape"],
        }

    return {
        "name": model,
        "platform": "cuvil",
        "backend": "cuvil",
        "max_batch_size": 0,
        "input": [one(spec) for spec in inputs],
        "output": [one(spec) for spec in outputs],
    }


def _describe(spec: TensorSpec) -> dict[str, Any]:
    shape = [extent if isinstance(extent, int) else -1 for extent in spec.shape]
    return {"name": spec.name, "datatype": TYPES[spec.dtype], "shape": shape}


def _split(body: bytes, json_length: str | None) -> tuple[bytes, memoryview]:
    if json_length is None:
        return body, memoryview(b"")
    decimal = json_length.isascii() and json_length.isdecimal() and len(json_length) <= 20
    if not decimal or int(json_length) > len(body):
        raise InputError(
            f"the header Inference-Header-Content-Length is {json_length[:30]!r}, wanted the length of the JSON part "
            f"of this body of {len(body)} bytes"
        )
    return body[: int(json_length)], memoryview(body)[int(json_length) :]


def _parse(head: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(head, parse_constant=_no_constant)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"the request is not JSON: {fault}") from fault
    return _object(raw, "the request")


def _no_constant(text: str) -> object:
    raise InputError(f"{text} is not JSON: send tensors that hold it in binary, with 'binary_data_size'")


def _object(raw: object, what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise InputError(f"{what} must be a JSON object")
    return raw


def _read_inputs(raw: object, tail: memoryview) -> dict[str, Array]:
    if not isinstance(raw, list):
        raise InputError("the request needs a list 'inputs'")
    found: dict[str, Array] = {}
    for index, one in enumerate(raw):
        entry = _object(one, f"input {index}")
        name = entry.get("name")
        if not isinstance(name, str) or name in found:
            raise InputError(f"input {index} needs a name of its own")
        found[name], tail = _read_input(name, entry, tail)
    if len(tail):
        raise InputError(f"the body has {len(tail)} bytes more than its inputs announce by 'binary_data_size'")
    return found


def _read_input(name: str, entry: dict[str, Any], tail: memoryview) -> tuple[Array, memoryview]:
    datatype = entry.get("datatype")
    dtype = _DTYPES.get(datatype) if isinstance(datatype, str) else None
    if dtype is None:
        raise InputError(f"input {name!r} has datatype {datatype!r}, wanted one of {', '.join(_DTYPES)}")
    shape = _read_shape(name, entry.get("shape"))
    parameters = _object(entry.get("parameters", {}), f"'parameters' of input {name!r}")
    if "shared_memory_region" in parameters:
        raise InputError(f"input {name!r} lies in shared memory, which this server does not read: send it in the body")
    size = parameters.get("binary_data_size")
    if size is None:
        return _read_json(name, dtype, shape, entry.get("data")), tail
    if "data" in entry:
        raise InputError(f"input {name!r} has 'data' and 'binary_data_size': send one of them")
    return _read_binary(name, dtype, shape, size, tail)


def _read_shape(name: str, raw: object) -> tuple[int, ...]:
    good = isinstance(raw, list) and len(raw) <= MAX_AXES and all(type(one) is int and one >= 0 for one in raw)
    # Zeros do not count: each extent, and any product of them, must be one that NumPy can hold.
    if not isinstance(raw, list) or not good or math.prod(one for one in raw if one) > MAX_ELEMENTS:
        raise InputError(
            f"input {name!r} needs a 'shape': a list of at most {MAX_AXES} whole numbers, whose product "
            f"is at most {MAX_ELEMENTS}"
        )
    return tuple(raw)


def _read_binary(
    name: str, dtype: np.dtype[Any], shape: tuple[int, ...], size: object, tail: memoryview
) -> tuple[Array, memoryview]:
    wanted = math.prod(shape) * dtype.itemsize
    if type(size) is not int or size != wanted:
        raise InputError(f"input {name!r} announces {size!r} bytes, its shape and datatype make {wanted}")
    if size > len(tail):
        raise InputError(f"input {name!r} announces {size} bytes, the body has {len(tail)} left")
    raw = np.frombuffer(tail[:size], np.uint8)
    if dtype == np.bool_ and raw.size and raw.max() > 1:
        raise InputError(f"input {name!r} is BOOL and holds a byte that is neither 0 nor 1")
    return raw.view(dtype).reshape(shape), tail[size:]


def _read_json(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], data: object) -> Array:
    if not isinstance(data, list):
        raise InputError(f"input {name!r} needs 'data' (a list) or the parameter 'binary_data_size'")
    try:
        loose = np.array(data) if data else np.empty(0, dtype)
    except (ValueError, OverflowError, RecursionError) as fault:
        raise InputError(f"input {name!r} has ragged or unreadable 'data': {fault}") from fault
    if loose.size != math.prod(shape):
        raise InputError(f"input {name!r} has {loose.size} elements, its shape makes {math.prod(shape)}")
    if dtype.kind == "f" and loose.dtype == object:
        loose = _wide_floats(name, loose)
    allowed = {"b": "b", "i": "iu", "u": "iu", "f": "fiu"}[dtype.kind]
    if loose.size and loose.dtype.kind not in allowed:
        raise InputError(f"input {name!r} has 'data' that is not {TYPES[dtype.name]}")
    with np.errstate(over="ignore", invalid="ignore"):
        exact = loose.astype(dtype)
    # JSON's own NaN and Infinity are refused before: an infinity here has overflowed.
    whole = np.isfinite(exact).all() if dtype.kind == "f" else np.array_equal(exact, loose)
    if not whole:
        raise InputError(f"input {name!r} has 'data' beyond the range of {TYPES[dtype.name]}")
    return exact.reshape(shape)


def _wide_floats(name: str, loose: Array) -> Array:
    """Give float64 for whole numbers beyond 64 bits; anything else stays as it is and is refused by its kind."""
    if any(type(one) not in (int, float) for one in loose.flat):
        return loose
    try:
        return loose.astype(np.float64)
    except OverflowError as fault:
        raise InputError(f"input {name!r} has 'data' beyond the range of FP64") from fault


def _read_outputs(raw: object, binary: bool) -> tuple[Wanted, ...] | None:
    if raw is None or raw == []:
        return None
    if not isinstance(raw, list):
        raise InputError("'outputs' must be a list")
    wanted = tuple(_read_output(index, _object(one, f"output {index}"), binary) for index, one in enumerate(raw))
    if len({one.name for one in wanted}) != len(wanted):
        # Else a small request could ask for one large output a million times.
        raise InputError("'outputs' names an output twice: name each once")
    return wanted


def _read_output(index: int, entry: dict[str, Any], binary: bool) -> Wanted:
    name = entry.get("name")
    if not isinstance(name, str):
        raise InputError(f"output {index} needs a name")
    parameters = _object(entry.get("parameters", {}), f"'parameters' of output {name!r}")
    for foreign in ("classification", "shared_memory_region"):
        if foreign in parameters:
            raise InputError(f"output {name!r} asks for {foreign!r}, which this server does not give: leave it out")
    return Wanted(name, parameters.get("binary_data", binary) is True)
