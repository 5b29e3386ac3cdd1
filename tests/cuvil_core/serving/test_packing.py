"""Packed bodies, without a server."""

import gzip
import zlib

import pytest

from cuvil_core.errors import InputError
from cuvil_core.serving.packing import TooLargeError, UnknownCodingError, coding_for, coding_of, deflate, inflate

TEXT = b"0123456789" * 400_000


def test_both_codings_go_both_ways() -> None:
    """What is packed is unpacked again; a stream of several gzip members is one body."""
    for coding in ("gzip", "deflate", None):
        assert inflate(deflate(TEXT, coding), coding, len(TEXT)) == TEXT
    assert inflate(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", 2) == b"ab"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_inflation_stops_at_the_limit(coding: str) -> None:
    """One byte over the limit is too large, and of a bomb only a piece beyond the limit is ever made."""
    with pytest.raises(TooLargeError):
        inflate(deflate(TEXT, coding), coding, len(TEXT) - 1)
    bomb = deflate(bytes(200 << 20), coding)
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(TooLargeError):
        inflate(bomb, coding, 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_broken_streams_are_the_clients_fault() -> None:
    """Garbage, cut streams and a tail are InputErrors."""
    whole = gzip.compress(TEXT)
    for bad in (b"x", whole[:-9], whole[:20], whole + b"xx"):
        with pytest.raises(InputError, match="gzip stream"):
            inflate(bad, "gzip", 1 << 30)


def test_codings_by_name() -> None:
    """Known codings are read in any case; others are refused for bodies and ignored for answers."""
    assert [coding_of(one) for one in ("", "identity", "GZIP", " deflate ")] == [None, None, "gzip", "deflate"]
    assert [coding_for(one) for one in ("", "gzip", "gzip, deflate", "br")] == [None, "gzip", None, None]
    assert zlib.decompress(deflate(b"a", "deflate")) == b"a"
    for bad in ("br", "gzip, gzip", "x"):
        with pytest.raises(UnknownCodingError, match="gzip or deflate"):
            coding_of(bad)
