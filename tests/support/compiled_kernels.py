"""Compiles kernels for tests and benchmarks, runs them on NumPy buffers, and compares them with the interpreter."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuvil_core import support
from cuvil_core.codegen.c import PRELUDE, emit_kernel
from cuvil_core.kernel_ir import Kernel, Schedule, Use
from cuvil_core.kernel_ir.interpreter import interpret, memory_dtype
from cuvil_core.toolchain import AVX2, AVX512, TargetSpec, build

Array = npt.NDArray[Any]
CACHE = Path(tempfile.gettempdir()) / "cuvil-test-compiler"
FILES = 4
"""Into which kernels are dealt out, so that all processors compile."""
_FEATURES = Path("/proc/cpuinfo")


def targets() -> list[TargetSpec]:
    """The variants that this processor runs."""
    flags = _FEATURES.read_text(encoding="utf-8") if _FEATURES.exists() else ""
    return [AVX2, AVX512] if "avx512vl" in flags and "avx512dq" in flags else [AVX2]


@dataclass(slots=True)
class Compiled:
    """A loaded library of kernels."""

    library: ctypes.CDLL
    kernels: dict[str, Kernel]

    def pool(self, threads: int) -> int:
        """A new thread pool, as a pointer."""
        self.library.cuvil_pool_create.restype = ctypes.c_void_p
        return int(self.library.cuvil_pool_create(threads))

    def run(self, name: str, buffers: Mapping[str, Array], symbols: Mapping[str, int], pool: int | None = None) -> None:
        """Runs one kernel in place."""
        call = self.prepared(name, buffers, symbols, pool)
        call()

    def prepared(
        self, name: str, buffers: Mapping[str, Array], symbols: Mapping[str, int], pool: int | None = None
    ) -> Any:
        """A call without arguments that runs the kernel, for timing."""
        kernel = self.kernels[name]
        pointers = (ctypes.c_void_p * len(kernel.buffers))(*(buffers[b.name].ctypes.data for b in kernel.buffers))
        values = (ctypes.c_int64 * max(1, len(kernel.symbols)))(*(symbols[s] for s in kernel.symbols))
        function = getattr(self.library, f"run_{name}")
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        function.restype = None
        return lambda: function(pointers, values, pool)


def compile_kernels(kernels: Sequence[tuple[Kernel, Schedule]], target: TargetSpec) -> Compiled:
    """One library with all kernels; their names differ."""
    files = [[PRELUDE] for _ in range(min(FILES, len(kernels)))]
    for number, (kernel, schedule) in enumerate(kernels):
        texts = files[number % len(files)]
        texts.append(emit_kernel(kernel, schedule, target.name))
        texts.append(
            f"CUVIL_EXPORT void run_{kernel.name}(void *const *buffers, const int64_t *symbols, cuvil_pool *pool)\n"
            "{\n"
            "    if (pool) pool->enter(pool);\n"
            f"    int64_t units = {kernel.name}_units(symbols);\n"
            f"    cuvil_launch_kernel(pool, {kernel.name}, buffers, symbols, units, INT64_MAX);\n"
            "    if (pool) pool->leave(pool);\n"
            "}\n"
        )
    sources = {f"kernels{number}.c": "\n".join(texts) for number, texts in enumerate(files)}
    binary = build({**sources, **support.sources()}, support.headers(), target, cache_dir=CACHE)
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(binary)
        file.flush()
        return Compiled(ctypes.CDLL(file.name), {kernel.name: kernel for kernel, _ in kernels})


def fresh_buffers(kernel: Kernel, symbols: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Seeded contents for read buffers; a recognizable filling for written ones."""
    rng = np.random.default_rng(seed)
    buffers: dict[str, Array] = {}
    for buffer in kernel.buffers:
        size, dtype = buffer.extent.evaluate(symbols), memory_dtype(buffer.dtype)
        if buffer.use is Use.WRITE:
            buffers[buffer.name] = np.full(size, 77, dtype)
        elif buffer.dtype.is_float and dtype.kind == "f":
            buffers[buffer.name] = rng.standard_normal(size).astype(dtype)
        elif buffer.dtype.value == "bfloat16":
            buffers[buffer.name] = (rng.standard_normal(size).astype(np.float32).view(np.uint32) >> 16).astype(
                np.uint16
            )
        else:
            high = 2 if buffer.dtype.value == "bool" else 100
            low = 0 if dtype.kind == "u" else -100
            buffers[buffer.name] = rng.integers(low, high, size).astype(dtype)
    return buffers


def check(
    compiled: Compiled,
    kernel: Kernel,
    symbols: Mapping[str, int],
    *,
    buffers: Mapping[str, Array] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    pool: int | None = None,
) -> dict[str, Array]:
    """Runs C and interpreter on equal buffers and compares every written one; gives the C results."""
    mine = {k: v.copy() for k, v in (buffers or fresh_buffers(kernel, symbols)).items()}
    theirs = {k: v.copy() for k, v in mine.items()}
    compiled.run(kernel.name, mine, symbols, pool)
    interpret(kernel, theirs, symbols)
    for buffer in kernel.buffers:
        got, wanted = mine[buffer.name], theirs[buffer.name]
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=f"{kernel.name}.{buffer.name}")
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=f"{kernel.name}.{buffer.name}")
    return mine
