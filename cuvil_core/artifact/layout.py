"""Where the parts of an artifact file lie.

```
0       magic, 8 bytes
8       length of the manifest text, u64 little endian
16      sha256 of the manifest text, 32 bytes
48      manifest text (canonical JSON)
        zeros up to the next multiple of PAGE
PAGE·k  segment, zeros up to the next multiple of PAGE, segment, …; weights last; the file ends with the last segment
```

Every byte is bound: the manifest by its digest in the head, the segments by their digests in the manifest, the rest
must be zero. The segment `chunks:weights` lists the sha256 of each CHUNK of `weights`, so that several threads can
check them (a hash tree of depth two, as in dm-verity, but without salt).
"""

import struct
from dataclasses import dataclass
from hashlib import sha256

from cuvil_core.contract import Manifest, Segment
from cuvil_core.errors import ArtifactError

MAGIC = b"CUVIL\x00\x01\n"
PAGE = 4096
CHUNK = 1 << 20
HEAD = struct.Struct("<8sQ32s")
MAX_MANIFEST = 16 << 20
"""Bytes; a manifest is some kilobytes."""
MAX_SEGMENTS = 64
LIBRARY = "lib:"
WEIGHTS = "weights"
CHUNKS = "chunks:weights"


@dataclass(frozen=True, slots=True)
class Head:
    """The checked start of an artifact file."""

    manifest: Manifest
    text: bytes
    """The manifest as it lies in the file."""


def pages(size: int) -> int:
    """Round up to whole pages."""
    return -(-size // PAGE) * PAGE


def encode_head(manifest: Manifest) -> bytes:
    """Give the head and the zeros after it."""
    text = manifest.to_json().encode()
    raw = HEAD.pack(MAGIC, len(text), sha256(text).digest()) + text
    return raw.ljust(pages(len(raw)), b"\0")


def decode_head(data: memoryview, where: str) -> Head:
    """Check magic, length, digest and manifest; raises ArtifactError by cause."""
    if len(data) < HEAD.size:
        raise ArtifactError(f"{where} is truncated: {len(data)} bytes are no artifact; compile or fetch it again")
    magic, length, digest = HEAD.unpack(data[: HEAD.size])
    if magic != MAGIC:
        raise ArtifactError(f"{where} is no Cuvil artifact of this version; compile it with this version of Cuvil")
    if length > MAX_MANIFEST or HEAD.size + length > len(data):
        raise ArtifactError(f"{where} is truncated inside its manifest; compile or fetch it again")
    text = bytes(data[HEAD.size : HEAD.size + length])
    if sha256(text).digest() != digest:
        raise ArtifactError(f"{where} has an altered manifest; compile or fetch it again")
    try:
        manifest = Manifest.from_json(text.decode())
    except (ValueError, RecursionError) as fault:
        raise ArtifactError(f"{where} cannot be read: {fault}; compile it with this version of Cuvil") from fault
    check_segments(manifest.segments, HEAD.size + length, len(data), where)
    return Head(manifest, text)


def check_segments(segments: tuple[Segment, ...], start: int, end: int, where: str) -> None:
    """Raise ArtifactError unless the segments tile the file from `start` to `end` in order, each on its page."""
    if len(segments) > MAX_SEGMENTS or len({part.name for part in segments}) != len(segments):
        raise ArtifactError(f"{where} names a segment twice or more than {MAX_SEGMENTS}; compile it again")
    for part in segments:
        if part.offset != pages(start) or part.size < 0:
            raise ArtifactError(f"{where} has segment {part.name!r} at a wrong place; compile or fetch it again")
        start = part.offset + part.size
    if segments and start != end:
        raise ArtifactError(f"{where} has {end} bytes where its manifest says {start}; compile or fetch it again")
    if not segments:
        raise ArtifactError(f"{where} holds no library; compile it again")
