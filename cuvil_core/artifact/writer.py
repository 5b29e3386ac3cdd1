"""Manifest, libraries and weights → one file."""

import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cuvil_core.artifact.digests import chunk_table
from cuvil_core.artifact.layout import CHUNKS, HEAD, LIBRARY, WEIGHTS, encode_head, pages
from cuvil_core.contract import Manifest, Segment
from cuvil_core.errors import InfrastructureError, InputError


def pack(manifest: Manifest, libraries: Mapping[str, bytes], weights: bytes | bytearray | memoryview) -> bytes:
    """Give the artifact's bytes; equal arguments give equal bytes.

    `libraries` maps a variant such as `x86_64-avx2` to its shared object. The segments that `manifest` names are
    replaced by those that are written. The instruction-set flags that a variant needs (names as in /proc/cpuinfo)
    stand in `manifest.facts["variants"][variant]`; see `cuvil_core.runtime.variants` for the defaults.
    """
    parts = dict(_parts(libraries, memoryview(weights)))
    placed = _place(manifest, parts)
    out = bytearray(encode_head(placed))
    for segment in placed.segments:
        out.extend(bytes(segment.offset - len(out)))
        out.extend(parts[segment.name])
    return bytes(out)


def check_target(path: Path) -> None:
    """Raise InputError where a file that takes its name by renaming would destroy what is no plain file."""
    try:
        if "\0" in str(path):
            raise ValueError("a zero byte is in it")
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file in it")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is a device, a pipe or a socket; name a plain file")
        folder = path.parent.resolve()
        # /dev/stdout may well lead to a plain file: it is the link that would be replaced.
        if os.path.lexists(path) and (folder == Path("/dev") or folder.is_relative_to("/proc")):
            raise InputError(f"{path} stands for a device; name a plain file")
    except (OSError, ValueError, RuntimeError) as fault:
        cause = getattr(fault, "strerror", None) or fault
        raise InputError(f"{str(path)[:60]!r} can name no file: {cause}; name another") from fault


_NAME_BYTES = 200
"""Of a file's name that its partial file bears: names end at 255 bytes, and the rest has to fit too."""


def publish(data: bytes | memoryview, path: Path) -> None:
    """Write `data` to `path` so that no reader ever sees a part of it, even after a power cut.

    Raises InputError for a path that is no plain file, InfrastructureError where the disk refuses.
    """
    check_target(path)
    start = os.fsdecode(os.fsencode(path.name)[:_NAME_BYTES])
    partial = path.with_name(f".{start}.{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        _sync_folder(path.parent)
    except OSError as fault:
        partial.unlink(missing_ok=True)
        cause = "the disk is full" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else fault.strerror
        raise InfrastructureError(f"cannot write {path}: {cause}; free space or choose another folder") from fault
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _parts(libraries: Mapping[str, bytes], weights: memoryview) -> Iterator[tuple[str, bytes | memoryview]]:
    for variant in sorted(libraries):
        yield LIBRARY + variant, libraries[variant]
    yield CHUNKS, chunk_table(weights)
    yield WEIGHTS, weights


def _place(manifest: Manifest, parts: Mapping[str, bytes | memoryview]) -> Manifest:
    """Fix the offsets: they stand in the manifest, whose length moves them, so repeat until they rest."""
    bare = [Segment(name, 0, len(data), sha256(data).hexdigest()) for name, data in parts.items()]
    placed = replace(manifest, segments=tuple(bare))
    while True:
        end = HEAD.size + len(placed.to_json().encode())
        segments = []
        for part in bare:
            segments.append(replace(part, offset=pages(end)))
            end = segments[-1].offset + part.size
        if tuple(segments) == placed.segments:
            return placed
        placed = replace(manifest, segments=tuple(segments))
