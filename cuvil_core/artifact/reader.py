"""A file or bytes → an Artifact that hands out only what it has checked."""

import mmap
import os
import stat
from dataclasses import dataclass, field
from hashlib import sha256
from io import BufferedReader
from pathlib import Path

from cuvil_core.artifact.digests import first_altered
from cuvil_core.artifact.layout import CHUNK, CHUNKS, HEAD, LIBRARY, WEIGHTS, Head, decode_head
from cuvil_core.contract import Manifest, Segment
from cuvil_core.errors import ArtifactError, DigestError, InfrastructureError, MissingError, SizeError

DEFAULT_LIMIT = 64 << 30
"""Bytes."""


@dataclass(slots=True)
class Artifact:
    """An open artifact. Its memory stays mapped as long as the object or a view of it lives."""

    where: str
    """A path, or `artifact in memory`: the subject of error sentences."""
    head: Head
    data: memoryview
    """The whole file, read-only, on a page boundary."""
    _segments: dict[str, Segment] = field(init=False)

    def __post_init__(self) -> None:
        self._segments = {part.name: part for part in self.head.manifest.segments}

    @property
    def manifest(self) -> Manifest:
        """What the artifact says of itself."""
        return self.head.manifest

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the libraries, such as `x86_64-avx2`."""
        return tuple(name.removeprefix(LIBRARY) for name in self._segments if name.startswith(LIBRARY))

    def library(self, variant: str) -> memoryview:
        """Give the shared object of a variant, checked; raises ArtifactError."""
        return self._checked(LIBRARY + variant)

    def weights(self, threads: int = 1) -> memoryview:
        """Give the weights, each chunk checked by `threads` threads; raises ArtifactError."""
        view, table = self._view(WEIGHTS), self._checked(CHUNKS)
        if len(table) != -(-len(view) // CHUNK) * 32:
            raise ArtifactError(f"{self.where} has a wrong chunk table; compile or fetch it again")
        at = first_altered(view, table, threads)
        if at is not None:
            raise ArtifactError(f"{self.where} has altered weights near byte {at}; compile or fetch it again")
        return view

    def sha256(self) -> str:
        """Give the digest of the whole file, hex: what stores and revisions name it by."""
        return sha256(self.data).hexdigest()

    def verify(self, digest: str | None = None) -> None:
        """Check every byte, and the whole file against `digest` (hex); raises ArtifactError, DigestError."""
        if digest is not None and (found := self.sha256()) != digest:
            raise DigestError(f"{self.where} has sha256 {found}, wanted {digest}; fetch it again or mend the digest")
        end = HEAD.size + len(self.head.text)
        for part in self.manifest.segments:
            if any(self.data[end : part.offset]):
                raise ArtifactError(f"{self.where} has altered filling before {part.name!r}; fetch it again")
            self._checked(part.name)
            end = part.offset + part.size
        self.weights()

    def _view(self, name: str) -> memoryview:
        part = self._segments.get(name)
        if part is None:
            raise ArtifactError(f"{self.where} has no segment {name!r}; compile it again")
        return self.data[part.offset : part.offset + part.size]

    def _checked(self, name: str) -> memoryview:
        view = self._view(name)
        if sha256(view).hexdigest() != self._segments[name].sha256:
            raise ArtifactError(f"{self.where} has an altered segment {name!r}; compile or fetch it again")
        return view


Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def open_artifact(source: Source, limit: int = DEFAULT_LIMIT) -> Artifact:
    """Map a file, or take bytes, and check the head (manifest and tiling; parts are checked when they are asked for).

    A mapped file must not be shortened while it is in use, as every reader that maps files asks; `publish` replaces
    files and never shortens one. Raises MissingError, ArtifactError, SizeError (over `limit` bytes),
    InfrastructureError.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        where, data = "artifact in memory", _page_aligned(memoryview(source), limit)
    else:
        where, data = str(Path(source)), _map(Path(source), limit)
    return Artifact(where, decode_head(data, where), data)


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises ArtifactError at once for pipes, devices and folders, else OSError.

    An ordinary open of a pipe waits for its writer, and a device never ends.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError as fault:
        raise ArtifactError(f"{str(path)!r} is no path; name an artifact file") from fault
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise ArtifactError(f"{path} is {'a folder' if stat.S_ISDIR(mode) else 'no plain file'}; name an artifact file")


def _map(path: Path, limit: int) -> memoryview:
    try:
        with open_plain(path) as file:
            _check_size(os.fstat(file.fileno()).st_size, limit, str(path))
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError as fault:
        raise MissingError(f"{path} does not exist; name an artifact file") from fault
    except PermissionError as fault:
        raise MissingError(f"{path} may not be read by this user; change its permissions") from fault
    except OSError as fault:
        raise InfrastructureError(f"{path} cannot be read: {fault.strerror}; try again") from fault


def _page_aligned(data: memoryview, limit: int) -> memoryview:
    _check_size(data.nbytes, limit, "artifact in memory")
    area = mmap.mmap(-1, data.nbytes)
    area.write(data)
    return memoryview(area).toreadonly()


def _check_size(size: int, limit: int, where: str) -> None:
    if size == 0:
        raise ArtifactError(f"{where} is empty; compile or fetch it again")
    if size > limit:
        raise SizeError(f"{where} has {size} bytes, more than the allowed {limit}; raise the limit or shrink the model")
