"""`cuvil doctor`: one finding a line, and what to do about each that is not good."""

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cuvil_core.cache import Cache
from cuvil_core.cli.console import Console, Failed, Result, size_text
from cuvil_core.errors import CuvilError, TargetError
from cuvil_core.runtime import available_cpus, cpu_features, thread_count
from cuvil_core.runtime.threads import affinity_cpus, cpu_quota
from cuvil_core.runtime.variants import KNOWN, choose
from cuvil_core.version import VERSION

LEAST_SPACE = 1 << 30
"""Bytes that a compilation and its cache entry may take."""
PACKAGES = (
    ("numpy", True, "pip install numpy"),
    ("onnx", True, "pip install onnx: no model can be read without it"),
    ("ziglang", True, "pip install ziglang: nothing can be compiled without it"),
    ("onnxruntime", False, "pip install onnxruntime: `cuvil verify` compares with it"),
    ("aiohttp", False, "pip install aiohttp prometheus-client: serving needs them"),
    ("torch", False, "no need: torch tensors are taken where torch is installed"),
)
C_SOURCE = '#include <stdint.h>\n__attribute__((visibility("default"))) int32_t cuvil_abi_version(void) { return 1; }\n'


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact, and its cure where it is not good."""

    name: str
    state: str
    """`ok`, `note` or `bad`."""
    fact: str
    cure: str = ""

    def __str__(self) -> str:
        """Give one line."""
        return f"{self.state:<4} {self.name:<12} {self.fact}{f' → {self.cure}' if self.cure else ''}"


def doctor_command(given: argparse.Namespace, console: Console) -> Result:
    """Check all; raises TargetError with what was found when something needs a cure. Notes need none."""
    checks = [_versions, _processor, _threads, _memory, _loading, _cache, _space]
    if given.compile:
        checks.append(_compiling)
    findings = [finding for one in checks for finding in _guarded(one)]
    bad = sum(finding.state == "bad" for finding in findings)
    notes = sum(finding.state == "note" for finding in findings)
    data = {"findings": [asdict(one) for one in findings], "bad": bad, "notes": notes}
    text = "\n".join(map(str, findings))
    if bad:
        sentence = f"{bad} of {len(findings)} findings need the cure named beside each of them"
        raise Failed(TargetError(sentence), Result(text, data))
    last = f"none of {len(findings)} findings needs a cure; notes: {notes}"
    return Result(f"{text}\n{last}", data)


def _guarded(one: Callable[[], Iterator[Finding]]) -> list[Finding]:
    name = one.__name__.strip("_")
    try:
        return list(one())
    except CuvilError as fault:
        return [Finding(name, "bad", str(fault), "see the sentence")]
    except Exception as fault:
        return [Finding(name, "bad", f"{type(fault).__name__}: {fault}", "report it with `cuvil doctor --debug`")]


def _versions() -> Iterator[Finding]:
    yield Finding("cuvil", "ok", f"{VERSION} at {Path(__file__).parents[2]}")
    python = platform.python_version()
    yield Finding("python", "ok", f"{python} at {sys.executable}")
    for name, needed, cure in PACKAGES:
        try:
            yield Finding(name, "ok", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "bad" if needed else "note", "not installed", cure)


def _processor() -> Iterator[Finding]:
    features = cpu_features()
    system = f"{platform.system()} {platform.machine()}"
    if not features:
        yield Finding("cpu", "bad", f"{system}, no flags in /proc/cpuinfo", "use Linux on x86-64")
        return
    shown = [one for one in ("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "amx_tile") if one in features]
    yield Finding("cpu", "ok", f"{system} with {', '.join(shown) or 'none of the vector extensions'}")
    try:
        yield Finding("variant", "ok", f"{choose(KNOWN, {}, features)} runs here")
    except CuvilError:
        missing = sorted(set(KNOWN["x86_64-avx2"]) - features)
        yield Finding("variant", "bad", f"the CPU lacks {', '.join(missing)}", "use a CPU with AVX2 (2013 or later)")


def _threads() -> Iterator[Finding]:
    quota, affinity = cpu_quota(), affinity_cpus()
    limit = "no quota" if quota is None else f"quota of {quota:g} CPUs"
    fact = f"{thread_count()} threads; {affinity} CPUs by affinity of {os.cpu_count()}, {limit}"
    if thread_count() > available_cpus():
        cure = f"CUVIL_NUM_THREADS asks for more than the {available_cpus()} available: unset it"
        yield Finding("threads", "bad", fact, cure)
    elif quota is not None and quota < 1:
        yield Finding("threads", "bad", fact, "a quota below one CPU stalls every call: give at least 1")
    elif quota is not None and quota % 1 and quota < affinity:
        yield Finding("threads", "note", fact, "whole CPUs as limit leave none of the quota unused")
    else:
        yield Finding("threads", "ok", fact)


def _memory() -> Iterator[Finding]:
    for path in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 60:
            few = int(text) < 512 << 20
            cure = "a model of 50 MB compiles in about 512 MiB: raise the limit" if few else ""
            yield Finding("memory", "note" if few else "ok", f"limit of {size_text(int(text))}", cure)
            return
    yield Finding("memory", "ok", "no limit by control group")


def _loading() -> Iterator[Finding]:
    try:
        os.close(os.memfd_create("cuvil", os.MFD_CLOEXEC))
        yield Finding("loading", "ok", "code is loaded from memory files, no writable folder is needed")
    except (OSError, AttributeError) as fault:
        yield Finding("loading", "note", f"no memory files ({fault}): code goes by TMPDIR", "keep TMPDIR writable")


def _cache() -> Iterator[Finding]:
    cache = Cache()
    entries = cache.entries()
    fact = f"{cache.folder}: {len(entries)} entries, {size_text(sum(entry.size for entry in entries))}"
    fact += f" of at most {size_text(cache.limit)}"
    try:
        cache.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache.folder):
            pass
        yield Finding("cache", "ok", fact)
    except OSError as fault:
        cure = "nothing compiled is kept: set CUVIL_CACHE_DIR to a writable folder"
        yield Finding("cache", "bad", f"{fact}, cannot be written ({fault.strerror})", cure)


def _space() -> Iterator[Finding]:
    for name, folder in (("cache disk", Cache().folder), ("temp disk", Path(tempfile.gettempdir()))):
        there = next((one for one in (folder, *folder.parents) if one.is_dir()), Path("/"))
        free = shutil.disk_usage(there).free
        few = free < LEAST_SPACE
        cure = "free some or set CUVIL_CACHE_DIR and TMPDIR elsewhere" if few else ""
        yield Finding(name, "bad" if few else "ok", f"{size_text(free)} free at {there}", cure)


def _compiling() -> Iterator[Finding]:
    from cuvil_core.toolchain import AVX2, build, compiler_version

    code = build({"probe.c": C_SOURCE}, {}, AVX2, cache_dir=Cache().folder / "toolchain", time_limit=120)
    yield Finding("compiling", "ok", f"zig {compiler_version()} gives {size_text(len(code))} of code")
