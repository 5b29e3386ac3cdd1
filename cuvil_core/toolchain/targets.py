"""What the compiler is told of each target."""

from dataclasses import dataclass

GLIBC = "x86_64-linux-gnu.2.17"
"""Oldest C library that artifacts run on: RHEL 7, Debian 8 and everything since."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """One instruction-set variant."""

    name: str
    triple: str
    cpu: str
    """The compiler's name of the processor or feature level."""
    flags: tuple[str, ...] = ()


AVX2 = TargetSpec("avx2", GLIBC, "x86_64_v3")
"""Haswell and later: AVX2, FMA, F16C."""
AVX512 = TargetSpec("avx512", GLIBC, "x86_64_v4", ("-mprefer-vector-width=512",))
"""Skylake-X, Zen 4 and later: AVX-512 F, BW, CD, DQ, VL."""


def native() -> TargetSpec:
    """This machine's processor; its artifacts are for this machine only."""
    return TargetSpec("native", GLIBC, "native", ("-mprefer-vector-width=512",))
