"""Where commands get models and artifacts from: a path, a URI, a reference."""

import errno
import tempfile
import urllib.parse
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path, PurePosixPath

from cuvil_core.errors import DigestError, MissingError, SizeError
from cuvil_core.fetching import check_url, fetch, pull_artifact

DEFAULT_MAX_BYTES = 8 << 30


def is_uri(text: str) -> bool:
    """Tell `scheme://…` from a path."""
    return "://" in text


@contextmanager
def local_model(text: str, given: Namespace, sha256: str | None) -> Iterator[Path]:
    """Lend a model as a file: the path itself, or a checked download that goes when the block ends."""
    if not is_uri(text):
        yield check_file(Path(text), given.max_bytes, sha256)
        return
    check_url(text)
    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        path = Path(folder) / _name(text)
        fetch(text, path, max_bytes=given.max_bytes, sha256=sha256, insecure=given.insecure_registry)
        yield path


@contextmanager
def local_artifact(text: str, given: Namespace, sha256: str | None) -> Iterator[Path]:
    """Lend an artifact as a file: a path that exists, a file URI, or what a registry holds."""
    if text.startswith("file://") or _there(Path(text)):
        with local_model(text, given, sha256) as path:
            yield path
        return
    if "/" not in text or text.startswith((".", "/", "~")):
        raise MissingError(f"{text} is no file here; name an artifact file or HOST/REPOSITORY@sha256:…")
    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        path = Path(folder) / "artifact.cuvil"
        pull_artifact(text, path, sha256=sha256, max_bytes=given.max_bytes, insecure=given.insecure_registry)
        yield path


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:  # a reference may be longer than a file's name
            return False
        raise MissingError(f"{path} cannot be read: {fault.strerror}; name a file") from fault


def check_file(path: Path, max_bytes: int, sha256: str | None) -> Path:
    """Give a path whose size and digest are right; raises MissingError, SizeError, DigestError."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise MissingError(f"{path} is no file; name a file")
        if size > max_bytes:
            raise SizeError(f"{path} has {size} bytes, more than the allowed {max_bytes}; raise --max-bytes")
        if sha256 is not None:
            with open(path, "rb") as file:
                found = file_digest(file, "sha256").hexdigest()
            if found != sha256:
                raise DigestError(f"{path} has sha256 {found}, wanted {sha256}; correct the digest or the file")
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {fault.strerror}; name a file") from fault
    return path


def check_source(path: Path, made_from: str) -> None:
    """Raise DigestError when a model file is not the one that an artifact was compiled from."""
    with open(path, "rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != made_from:
        raise DigestError(
            f"the artifact was compiled from another model, of sha256 {made_from[:12]}…, than {path.name}, which has "
            f"{found[:12]}…; name that model, or compile this one"
        )


def _name(uri: str) -> str:
    """Give a plain file name for a download: the URI's last part, which becomes the model's name."""
    last = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(uri).path)).name.partition("@")[0]
    plain = "".join(one if one.isalnum() or one in "._-" else "_" for one in last)[:100].lstrip(".")
    return plain or "model.onnx"
