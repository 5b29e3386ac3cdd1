"""Builds one shared object from C texts."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cuvil_core.errors import InfrastructureError, SizeError
from cuvil_core.toolchain.process import Compiler, Running, find_compiler
from cuvil_core.toolchain.targets import TargetSpec

COMPILE_FLAGS = (
    "-std=gnu11", "-O2", "-fPIC", "-g0", "-fno-sanitize=all", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-fno-math-errno", "-fno-trapping-math", "-fno-stack-protector", "-fvisibility=hidden",
    "-Wno-unused-command-line-argument", "-Wno-unknown-pragmas", "-Wno-pass-failed",
    "-Werror=implicit-function-declaration", "-I.",
)  # fmt: skip
"""No flag among these lets the compiler reorder, contract or drop floating-point operations: NaN and infinity count."""
LINK_FLAGS = ("-shared", "-s", "-Wl,-z,defs", "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-lpthread")
MAX_SOURCE_BYTES = 256 << 20
MAX_OUTPUT_BYTES = 1 << 30


def build(
    sources: Mapping[str, str],
    headers: Mapping[str, str],
    target: TargetSpec,
    *,
    cache_dir: Path,
    jobs: int | None = None,
    time_limit: float = 600.0,
) -> bytes:
    """The shared object of all sources; file names are plain (no directories), headers are found by `#include "name"`.

    Files are compiled at the same time, `jobs` at once (by default one a processor of this process). `cache_dir` keeps
    what the compiler builds once a machine (runtime pieces) unless ZIG_GLOBAL_CACHE_DIR names another place; nothing
    else stays there. Equal inputs give equal bytes.

    Raises InternalError when the C is wrong, TimeLimitError beyond `time_limit` seconds, SizeError when the source is
    too large, InfrastructureError when disk or memory is short or a directory cannot be written.
    """
    if sum(map(len, (*sources.values(), *headers.values()))) > MAX_SOURCE_BYTES:
        raise SizeError(f"The generated C exceeds {MAX_SOURCE_BYTES >> 20} MiB; compile a smaller model.")
    deadline = time.monotonic() + time_limit
    try:
        with tempfile.TemporaryDirectory(prefix="build-", dir=_writable(cache_dir)) as room:
            compiler = find_compiler(cache_dir)
            compiler.check_folders()
            return _build_in(Path(room), sources, headers, target, compiler, jobs, deadline)
    except OSError as error:
        raise InfrastructureError(
            f"Compiling needs to write below {cache_dir}: {error.strerror or error}; free some space or set "
            "CUVIL_CACHE_DIR to a directory that can be written."
        ) from error


def compiler_version() -> str:
    """The compiler's version, for cache keys and manifests."""
    return find_compiler(None).version


def _build_in(
    room: Path,
    sources: Mapping[str, str],
    headers: Mapping[str, str],
    target: TargetSpec,
    compiler: Compiler,
    jobs: int | None,
    deadline: float,
) -> bytes:
    for name, text in {**headers, **sources}.items():
        if Path(name).name != name:
            raise ValueError(f"a source file's name is plain, not {name!r}")
        (room / name).write_text(text, encoding="utf-8")
    machine = ("-target", target.triple, f"-mcpu={target.cpu}", *target.flags)
    names = sorted(sources)

    running = Running()

    def call(*arguments: str) -> None:
        compiler.run(arguments, room, deadline, running)

    def compile_one(name: str) -> str:
        call("-c", *COMPILE_FLAGS, *machine, name, "-o", f"{name}.o")
        return f"{name}.o"

    with ThreadPoolExecutor(max_workers=jobs or len(os.sched_getaffinity(0))) as workers:
        try:
            objects = list(workers.map(compile_one, names))
            # Without the processor: the runtime pieces are built once for every set of flags, which takes seconds.
            workers.submit(call, "-target", target.triple, *objects, *LINK_FLAGS, "-o", "out.so").result()
        except BaseException:  # a signal too: leaving the block waits for the workers, and these for their processes
            workers.shutdown(wait=False, cancel_futures=True)
            running.stop()
            raise
    built = room / "out.so"
    if built.stat().st_size > MAX_OUTPUT_BYTES:
        raise SizeError(f"The compiled code exceeds {MAX_OUTPUT_BYTES >> 30} GiB; compile a smaller model.")
    return built.read_bytes()


def _writable(cache_dir: Path) -> Path:
    cache_dir.mkdir(parents=True, exist_ok=True)
    return cache_dir
