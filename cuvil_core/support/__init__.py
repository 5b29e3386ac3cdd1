"""The small C library that every artifact shares, as source text.

Holds: `cuvil.h` (the C ABI), the thread pool, sorting and choosing, vector types and casts, mathematical functions, the
kernel prelude.
Takes nothing → gives `headers()` and `sources()`: file name → text.
Must not hold generated code, nor need more of the machine than libc and pthreads.
"""

from importlib.resources import files

_HEADERS = (
    "cuvil.h",
    "cuvil_kernel.h",
    "cuvil_double.h",
    "cuvil_lanes.h",
    "cuvil_math.h",
    "cuvil_pow.h",
    "cuvil_trig.h",
)
_SOURCES = ("cuvil_pool.c",)
_CALLED = ("cuvil_ordering.c",)


def headers() -> dict[str, str]:
    """Every header, by the name that generated code includes."""
    return _read(_HEADERS)


def sources(calls: bool = False) -> dict[str, str]:
    """Every C file that is compiled into an artifact; those of library functions where its program calls any."""
    return _read((*_SOURCES, *_CALLED) if calls else _SOURCES)


def _read(names: tuple[str, ...]) -> dict[str, str]:
    room = files(__name__)
    return {name: (room / name).read_text(encoding="utf-8") for name in names}
