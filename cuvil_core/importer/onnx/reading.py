"""Bytes → ModelProto, with the checks that need no translation."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from cuvil_core.errors import MissingError, ModelError, SizeError, UnsupportedOpError

MAX_MODEL_BYTES = (1 << 31) - 1
"""Protobuf itself cannot hold more in one message."""
MAX_NODES = 200_000
NEWEST_OPSET = 28
OLDEST_OPSET = 1


def read(source: Path | bytes) -> tuple[onnx.ModelProto, Path | None]:
    """The parsed model and the folder of its external data (None for bytes)."""
    if isinstance(source, bytes):
        return _parse(source, "The file"), None
    try:
        if source.stat().st_size > MAX_MODEL_BYTES:
            raise SizeError(f"{source.name} is larger than {MAX_MODEL_BYTES} bytes; keep weights as external data.")
        data = source.read_bytes()
    except OSError as error:
        raise MissingError(f"{source.name} cannot be read ({error.strerror}); correct the path.") from error
    return _parse(data, source.name), source.resolve().parent


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    if len(data) > MAX_MODEL_BYTES:
        raise SizeError(f"The model is larger than {MAX_MODEL_BYTES} bytes; keep weights as external data.")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(f"{name} is not an ONNX model or is truncated; fetch or export it again.") from error
    if not model.HasField("graph") or not model.graph.output:
        raise ModelError(f"{name} holds no ONNX graph with outputs; fetch or export the model again.")
    if len(model.graph.node) > MAX_NODES:
        raise SizeError(f"The graph has {len(model.graph.node)} nodes, more than {MAX_NODES}; split the model.")
    _check_text(model)
    return model


def _check_text(model: onnx.ModelProto) -> None:
    """Protobuf hands over names that are not UTF-8 as bytes, on which everything later would stumble."""
    texts: list[object] = []
    for function in model.functions:
        texts.extend((function.name, function.domain, function.overload, *function.input, *function.output))
        texts.extend((*function.attribute, *(attribute.name for attribute in function.attribute_proto)))
        texts.extend(_texts_of_nodes(function.node))
    texts.extend(_texts(model.graph))
    if not all(isinstance(text, str) for text in texts):
        raise ModelError("The model has a name that is not UTF-8; fetch or export it again.")


def _texts(graph: onnx.GraphProto) -> Iterator[object]:
    yield from (entry.name for entry in (*graph.initializer, *graph.input, *graph.output))
    for value in graph.input:
        yield from (dim.dim_param for dim in held(value.type).tensor_type.shape.dim)
    yield from _texts_of_nodes(graph.node)


def _texts_of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            if attribute.HasField("g"):
                yield from _texts(attribute.g)


def held(type: onnx.TypeProto) -> onnx.TypeProto:
    """The type itself, or of an optional what it holds: Cuvil compiles for calls that give it."""
    return type.optional_type.elem_type if type.HasField("optional_type") else type


def opsets(model: onnx.ModelProto) -> dict[str, int]:
    """Domain → opset version; the default domain is the empty string."""
    if not model.opset_import:
        raise ModelError("The model does not say which ONNX opset it uses; export it again.")
    return versions_of(model.opset_import)


def versions_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Domain → opset version, of a model or of a function."""
    found: dict[str, int] = {}
    for entry in imports:
        domain = "" if entry.domain == "ai.onnx" else str(entry.domain)
        if domain in found and found[domain] != entry.version:
            raise ModelError(f"The model imports two opsets of domain {domain!r}; export it again.")
        found[domain] = entry.version
    version = found.get("")
    if version is not None and not OLDEST_OPSET <= version <= NEWEST_OPSET:
        raise UnsupportedOpError(
            f"ONNX opset {version} is outside of {OLDEST_OPSET}..{NEWEST_OPSET}; convert the model."
        )
    return found
