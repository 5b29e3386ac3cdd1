"""Hashing many megabytes with several threads (hashlib lets go of the interpreter lock)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

from cuvil_core.artifact.layout import CHUNK

PARALLEL = 4 << 20
"""Bytes from which threads pay."""


def chunk_table(data: memoryview | bytes) -> bytes:
    """Give the concatenated sha256 of each CHUNK of `data`."""
    view = memoryview(data)
    return b"".join(sha256(view[at : at + CHUNK]).digest() for at in range(0, len(view), CHUNK))


def first_altered(data: memoryview, table: memoryview, threads: int) -> int | None:
    """Give the offset of a chunk that differs from the table, None when all agree."""
    starts = range(0, len(data), CHUNK)

    def altered(mine: range) -> int | None:
        return next((at for at in mine if sha256(data[at : at + CHUNK]).digest() != _row(table, at)), None)

    if threads < 2 or len(data) < PARALLEL:
        return altered(starts)
    with ThreadPoolExecutor(threads) as crew:
        return next((at for at in crew.map(altered, _shares(starts, threads)) if at is not None), None)


def _row(table: memoryview, at: int) -> memoryview:
    return table[at // CHUNK * 32 : at // CHUNK * 32 + 32]


def _shares(whole: range, count: int) -> Iterator[range]:
    for first in range(count):
        yield whole[first::count]
