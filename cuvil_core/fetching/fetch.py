"""A URI → a checked file, or what lies behind it."""

import os
import urllib.parse
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cuvil_core.contract import ResolvedModel
from cuvil_core.errors import InfrastructureError, InputError, MissingError, SizeError
from cuvil_core.fetching.artifacts import MODEL_LAYER, check_digest, find_layer, pull
from cuvil_core.fetching.credentials import for_source
from cuvil_core.fetching.mounted import missing
from cuvil_core.fetching.reference import parse
from cuvil_core.fetching.registry import Registry
from cuvil_core.fetching.sink import Expected, Received, receive
from cuvil_core.fetching.web import PAUSES, SCHEMES, call, check_url, refused, shown

FORMATS = {
    ".onnx": "onnx",
    ".pt2": "torch-export",
    ".pt": "torchscript",
    ".pth": "torchscript",
    ".ts": "torchscript",
    ".jit": "torchscript",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A checked file."""

    path: Path
    sha256: str
    size: int


def fetch(uri: str, destination: Path, *, max_bytes: int, sha256: str | None = None, insecure: bool = False) -> Fetched:
    """Bring what `uri` names to `destination`, whole and checked, or raise and leave nothing.

    Raises InputError for what is no URI, MissingError, DigestError, SizeError, InfrastructureError.
    """
    check_url(uri)
    wanted = Expected(max_bytes, sha256)
    if uri.startswith("oci://"):
        got = pull(parse(uri), destination, MODEL_LAYER, wanted, insecure)
    else:
        got = _stream(uri, wanted, destination)
    return Fetched(destination, got.sha256, got.size)


def resolve(uri: str, *, max_bytes: int, sha256: str | None = None, insecure: bool = False) -> ResolvedModel:
    """Give digest, size and format of the model behind `uri`; keeps no file. Raises like `fetch`."""
    check_url(uri)
    wanted = Expected(max_bytes, sha256)
    in_registry = uri.startswith("oci://")
    got = _resolve_in_registry(uri, wanted, insecure) if in_registry else _stream(uri, wanted, None)
    return ResolvedModel(got.sha256, got.size, model_format(uri))


def model_format(uri: str) -> str:
    """Tell the format by the suffix; `onnx` where there is none that is known."""
    return FORMATS.get(PurePosixPath(urllib.parse.urlsplit(uri).path).suffix.lower(), "onnx")


def _resolve_in_registry(uri: str, wanted: Expected, insecure: bool) -> Received:
    """The registry names blobs by digest, so that nothing need be downloaded to know it."""
    where = parse(uri)
    registry = Registry(where, insecure)
    digest, size = find_layer(registry, where, MODEL_LAYER)
    check_digest(where, digest, wanted)
    if size > wanted.max_bytes:
        raise SizeError(
            f"{where} has {size} bytes, more than the allowed {wanted.max_bytes}; raise the bound or shrink it"
        )
    if not registry.has_blob(digest):
        raise MissingError(f"{where} names a blob that the registry lacks; push it again")
    return Received(digest.removeprefix("sha256:"), size)


def _stream(uri: str, wanted: Expected, destination: Path | None) -> Received:
    scheme = urllib.parse.urlsplit(uri).scheme
    if scheme in ("http", "https"):
        return _download(uri, wanted, destination)
    if scheme == "file":
        return _copy(uri, wanted, destination)
    raise InputError(f"{shown(uri)} has scheme {scheme!r}; use one of {SCHEMES}")


def _download(uri: str, wanted: Expected, destination: Path | None) -> Received:
    """Download, again from the start when the connection breaks in the middle."""
    for _ in PAUSES:
        try:
            return _download_once(uri, wanted, destination)
        except InfrastructureError:
            continue
    return _download_once(uri, wanted, destination)


def _download_once(uri: str, wanted: Expected, destination: Path | None) -> Received:
    authorization = for_source().header
    reply = call("GET", uri, {"Authorization": authorization} if authorization else {})
    if reply.status != 200:
        reply.body.close()
        raise refused(uri, reply.status)
    length = reply.headers.get("Content-Length", "")
    size = int(length) if length.isascii() and length.isdecimal() else None
    return receive(reply.body, uri, Expected(wanted.max_bytes, wanted.sha256, size), destination)


def _copy(uri: str, wanted: Expected, destination: Path | None) -> Received:
    parts = urllib.parse.urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise InputError(f"{uri} names another machine; write file:///path")
    path = Path(urllib.parse.unquote(parts.path))
    try:
        if not path.is_file():
            raise MissingError(missing(path) or f"{path} is no file here; correct the path")
        return receive(
            open(path, "rb"), uri, Expected(wanted.max_bytes, wanted.sha256, os.stat(path).st_size), destination
        )
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {fault.strerror}; correct path or permissions") from fault
