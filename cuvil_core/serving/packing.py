"""Packed bodies: gzip and deflate in both directions, bounded. Slow: for the engine's threads, never the event loop."""

import zlib

from cuvil_core.errors import InputError

PIECE = 1 << 20
"""Bytes of inflated text made at a time."""
WINDOWS = {"gzip": 31, "deflate": 15}
"""zlib's `wbits` of each coding."""


class TooLargeError(Exception):
    """A body inflates beyond the limit."""


class UnknownCodingError(Exception):
    """A body is packed in a way that nobody here unpacks."""


def coding_of(stated: str) -> str | None:
    """Give a request's coding, None for a plain body; raises UnknownCodingError."""
    coding = stated.strip().lower()
    if coding in ("", "identity"):
        return None
    if coding not in WINDOWS:
        raise UnknownCodingError(f"Content-Encoding is {stated!r}: send the body plain, or packed by gzip or deflate")
    return coding


def coding_for(accepted: str) -> str | None:
    """Give gzip or deflate when the client asks for that alone.

    Tensors hardly shrink and packing them costs more than a local network: a list of codings, which HTTP libraries send
    by themselves, is no wish for it; tritonclient sends the single one that its caller chose.
    """
    wish = accepted.strip().lower()
    return wish if wish in WINDOWS else None


def inflate(body: bytes, coding: str | None, limit: int) -> bytes:
    """Give the plain body; stops at the first byte over `limit`. Raises TooLargeError, InputError."""
    if coding is None:
        return body
    plain, rest = bytearray(), body
    try:
        while rest:
            unpacker = zlib.decompressobj(WINDOWS[coding])
            while rest and not unpacker.eof:
                plain += unpacker.decompress(rest, PIECE)
                if len(plain) > limit:
                    raise TooLargeError
                rest = unpacker.unconsumed_tail
            if not unpacker.eof:
                plain += unpacker.flush(PIECE)
            if not unpacker.eof:
                raise InputError(f"the body is no whole {coding} stream; send it again")
            # gzip allows several members in a row.
            rest = unpacker.unused_data
    except zlib.error as fault:
        raise InputError(f"the body is no {coding} stream ({fault}); pack it again or send it plain") from fault
    if len(plain) > limit:
        raise TooLargeError
    return bytes(plain)


def deflate(data: bytes, coding: str | None) -> bytes:
    """Pack an answer, fast rather than small."""
    if coding is None:
        return data
    packer = zlib.compressobj(1, zlib.DEFLATED, WINDOWS[coding])
    return packer.compress(data) + packer.flush()
