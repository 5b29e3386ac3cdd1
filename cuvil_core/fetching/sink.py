"""A stream → a file that appears only when size and digest are right."""

import errno
import http.client
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from cuvil_core.artifact import check_target
from cuvil_core.errors import DigestError, InfrastructureError, SizeError
from cuvil_core.fetching.web import shown, unreachable

PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Received:
    """What came."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come."""

    max_bytes: int
    sha256: str | None = None
    size: int | None = None
    """Bytes that the sender announced."""


def receive(stream: IO[bytes], url: str, wanted: Expected, destination: Path | None) -> Received:
    """Read a stream to its end, into `destination` or nowhere.

    Raises SizeError over the bound, DigestError for other bytes than wanted, InfrastructureError for a broken
    connection, fewer bytes than announced, or a disk that refuses.
    """
    if wanted.size is not None and wanted.size > wanted.max_bytes:
        raise _too_large(url, wanted)
    with stream, _file(destination) as file:
        digest, size = sha256(), 0
        for piece in _pieces(stream, url):
            size += len(piece)
            if size > wanted.max_bytes:
                raise _too_large(url, wanted)
            digest.update(piece)
            if file is not None:
                file.write(piece)
        if wanted.size is not None and size != wanted.size:
            raise InfrastructureError(f"{shown(url)} ended after {size} of {wanted.size} bytes; try again later")
        got = Received(digest.hexdigest(), size)
        if wanted.sha256 is not None and got.sha256 != wanted.sha256:
            raise DigestError(
                f"{shown(url)} has sha256 {got.sha256}, wanted {wanted.sha256}; correct the digest or the URI"
            )
    return got


def _pieces(stream: IO[bytes], url: str) -> Iterator[bytes]:
    while True:
        try:
            piece = stream.read(PIECE)
        except (OSError, http.client.HTTPException) as fault:
            raise unreachable(url, fault) from fault
        if not piece:
            return
        yield piece


@contextmanager
def _file(destination: Path | None) -> Iterator[IO[bytes] | None]:
    """Lend a file that takes its name when the block ends well, and is gone when it does not."""
    if destination is None:
        yield None
        return
    partial = destination.with_name(f".{destination.name}.{secrets.token_hex(8)}.partial")
    try:
        check_target(destination)
        destination.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, destination)
    except OSError as fault:
        cause = "the disk is full" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else fault.strerror
        raise InfrastructureError(
            f"cannot write {destination}: {cause}; free space or choose another folder"
        ) from fault
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _too_large(url: str, wanted: Expected) -> SizeError:
    return SizeError(f"{shown(url)} is larger than the allowed {wanted.max_bytes} bytes; raise the bound or shrink it")
