"""Which of an artifact's libraries this machine can run.

The kernel lists an instruction-set flag in /proc/cpuinfo only when CPUID has it and the operating system saves its
registers (XCR0), which is what a program must ask before it uses AVX.
"""

import functools
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cuvil_core.errors import TargetError

AVX2 = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma")
AVX512 = (*AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
KNOWN: Mapping[str, tuple[str, ...]] = {"x86_64-avx2": AVX2, "x86_64-avx512": AVX512}


@functools.cache
def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Give the flags that CPU and operating system offer; empty where /proc is missing."""
    try:
        with open(cpuinfo, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() in ("flags", "Features"):
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def needs(variant: str, facts: Mapping[str, Any]) -> frozenset[str] | None:
    """Give the flags that a variant needs, None for a variant that nobody describes."""
    stated = facts.get("variants")
    if isinstance(stated, Mapping) and isinstance(stated.get(variant), list | tuple):
        return frozenset(map(str, stated[variant]))
    known = KNOWN.get(variant)
    return None if known is None else frozenset(known)


def choose(variants: Iterable[str], facts: Mapping[str, Any], features: frozenset[str]) -> str:
    """Give the variant that needs most of what this machine has; raises TargetError when it can run none."""
    names = sorted(variants)
    runnable = [(len(wanted), name) for name in names if (wanted := _fits(name, facts, features)) is not None]
    if runnable:
        return max(runnable)[1]
    lacks = "; ".join(f"{_plain(name)} {_obstacle(name, facts, features)}" for name in names) or "it holds no library"
    raise TargetError(f"no variant of this artifact runs here: {lacks}; use another machine or compile for this one")


def _fits(name: str, facts: Mapping[str, Any], features: frozenset[str]) -> frozenset[str] | None:
    wanted = needs(name, facts)
    return wanted if wanted is not None and wanted <= features and _same_machine(name) else None


def _same_machine(name: str) -> bool:
    machine = name.partition("-")[0]
    return machine == "native" or machine == platform.machine()


def _obstacle(name: str, facts: Mapping[str, Any], features: frozenset[str]) -> str:
    wanted = needs(name, facts)
    if wanted is None:
        return "is unknown to this version of Cuvil"
    if not _same_machine(name):
        return f"is not for {platform.machine()}"
    return "needs " + ", ".join(_plain(one) for one in sorted(wanted - features))


def _plain(name: str) -> str:
    return name if name.isprintable() else repr(name)
