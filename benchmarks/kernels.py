"""Speed of generated contractions beside this machine's own FMA peak.

`PYTHONPATH=.:tests/support python -m benchmarks.kernels [--threads N] [--isa avx2] [--unroll 2]`

Prints milliseconds (least tenth of the runs) and the share of the peak that a register-only FMA loop reaches.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from compiled_kernels import compile_kernels, fresh_buffers, targets
from cuvil_core import support
from cuvil_core.ir import DType
from cuvil_core.kernel_ir import (
    Access,
    Accumulator,
    Axis,
    Binary,
    Buffer,
    Contraction,
    Index,
    Kernel,
    Literal,
    Load,
    Schedule,
    Store,
    Use,
)
from cuvil_core.toolchain import TargetSpec, build

F32 = DType.FLOAT32
PEAK = """
#include "cuvil_kernel.h"
CUVIL_EXPORT float peak(int64_t rounds)
{
    f32xW a[COUNT];
    f32xW x = (f32xW)1.0000001f, y = (f32xW)1e-9f;
    __asm__("" : "+v"(x), "+v"(y));
    for (int i = 0; i < COUNT; ++i) a[i] = (f32xW)(float)i;
    for (int64_t r = 0; r < rounds; ++r)
        for (int i = 0; i < COUNT; ++i) a[i] = __builtin_elementwise_fma(a[i], x, y);
    f32xW sum = a[0];
    for (int i = 1; i < COUNT; ++i) sum += a[i];
    return sum[0];
}
"""


def least_tenth(
    call: Callable[[], object], seconds: float = 0.25, clock: Callable[[], float] = time.thread_time
) -> float:
    """Seconds of a call: the tenth percentile of as many runs as fit. The default clock leaves out other processes."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 10:
        begin = clock()
        call()
        times.append(clock() - begin)
    return sorted(times)[len(times) // 10]


def peak_flops(target: TargetSpec) -> float:
    """FMA operations a second and core, times 2, from registers only."""
    width = 16 if target.name == "avx512" else 8
    text = PEAK.replace("f32xW", f"f32x{width}").replace("COUNT", "12")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "peak.so"
        file.write_bytes(build({"peak.c": text}, support.headers(), target, cache_dir=Path(scratch)))
        library = ctypes.CDLL(str(file))
    library.peak.argtypes = [ctypes.c_int64]
    rounds = 1 << 18
    return rounds * 12 * width * 2 / least_tenth(lambda: library.peak(rounds))


def contraction(
    name: str, channels: tuple[int, int], size: int, taps: int, stride: int, panel: int, points: int, order: str,
    parallel: int, width: int, tiles: tuple[tuple[str, int], ...] = (), unroll: int = 1,
) -> tuple[Kernel, Schedule, float]:  # fmt: skip
    """A square blocked convolution with residual and ReLU; FLOPs of one image."""
    ib_count, ob_count = channels[0] // 16, channels[1] // 16
    wide = (size - 1) * stride + taps
    op, oj, oh, ow, oc, ib, kh, kw, ic = (Index.axis(a) for a in ("op", "oj", "oh", "ow", "oc", "ib", "kh", "kw", "ic"))
    x = Load(Access("x", ((ib * wide + oh * stride + kh) * wide + ow * stride + kw) * 16 + ic), F32)
    w = Load(Access("w", (((((op * ib_count + ib) * taps + kh) * taps + kw) * 16 + ic) * panel + oj) * 16 + oc), F32)
    target = (((op * panel + oj) * size + oh) * size + ow) * 16 + oc
    bias, residual = Load(Access("b", (op * panel + oj) * 16 + oc), F32), Load(Access("r", target), F32)
    value = Binary("max", Binary("add", Binary("add", Accumulator(F32), bias), residual), Literal(0.0, F32))
    statement = Contraction(
        (Axis.of("op", ob_count // panel), Axis.of("oj", panel), Axis.of("oh", size), Axis.of("ow", size),
         Axis.of("oc", 16)),
        (Axis.of("ib", ib_count), Axis.of("kh", taps), Axis.of("kw", taps), Axis.of("ic", 16)),
        x, w, (Store(Access("y", target), value),),
    )  # fmt: skip
    outputs = channels[1] * size * size
    buffers = (
        Buffer.of("x", F32, channels[0] * wide * wide), Buffer.of("w", F32, channels[0] * channels[1] * taps * taps),
        Buffer.of("b", F32, channels[1]), Buffer.of("r", F32, outputs), Buffer.of("y", F32, outputs, Use.WRITE),
    )  # fmt: skip
    schedule = Schedule(
        order=tuple(order.split()), parallel=parallel, vector="oc", width=width, tiles=tiles,
        registers=(("oj", panel), ("ow", points)), unroll=(("ic", unroll),), flush_denormals=True,
    )  # fmt: skip
    return Kernel(name, buffers, (statement,)), schedule, 2.0 * channels[0] * taps * taps * outputs


ROWS = "op oh oj ow oc ib kh kw ic"
CASES = (
    # name, channels, size, taps, stride, (panel, points) avx512, (panel, points) avx2
    ("3x3 64 56", (64, 64), 56, 3, 1, (2, 14), (1, 6)),
    ("3x3 128 28", (128, 128), 28, 3, 1, (2, 14), (1, 6)),
    ("3x3 256 14", (256, 256), 14, 3, 1, (2, 14), (1, 5)),
    ("3x3 512 7", (512, 512), 7, 3, 1, (2, 7), (1, 4)),
    ("3x3 s2 64-128 28", (64, 128), 28, 3, 2, (2, 14), (1, 6)),
    ("1x1 64-256 56", (64, 256), 56, 1, 1, (2, 14), (1, 6)),
    ("1x1 256-64 56", (256, 64), 56, 1, 1, (2, 14), (1, 6)),
    ("1x1 512-2048 7", (512, 2048), 7, 1, 1, (2, 7), (1, 4)),
    ("1x1 2048-512 7", (2048, 512), 7, 1, 1, (2, 7), (1, 4)),
)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", default=targets()[-1].name)
    parser.add_argument("--unroll", type=int, default=1)
    parser.add_argument("--points", type=int)
    parser.add_argument("--panel", type=int)
    parser.add_argument("--width", type=int, default=16)
    arguments = parser.parse_args()
    target = next(t for t in targets() if t.name == arguments.isa)
    peak = peak_flops(target)
    print(f"{target.name}: {peak / 1e9:.0f} GFLOP/s a core from registers")
    made = []
    for label, channels, size, taps, stride, wide, narrow in CASES:
        panel, points = wide if target.name == "avx512" else narrow
        panel, points = arguments.panel or panel, min(size, arguments.points or points)
        name = "k_" + label.replace(" ", "_").replace("-", "_")
        made.append(
            (
                label,
                *contraction(
                    name, channels, size, taps, stride, panel, points, ROWS, 2, arguments.width, unroll=arguments.unroll
                ),
            )
        )
    compiled = compile_kernels([(kernel, schedule) for _, kernel, schedule, _ in made], target)
    pool = compiled.pool(arguments.threads) if arguments.threads > 1 else None
    for label, kernel, _, flops in made:
        buffers = {name: _aligned(data) for name, data in fresh_buffers(kernel, {}).items()}
        clock = time.perf_counter if pool else time.thread_time
        seconds = least_tenth(compiled.prepared(kernel.name, buffers, {}, pool), clock=clock)
        share = flops / seconds / peak / arguments.threads
        print(f"{label:20} {seconds * 1e3:8.3f} ms {flops / seconds / 1e9:7.0f} GFLOP/s {share:6.1%}")


def _aligned(data: np.ndarray) -> np.ndarray:
    room = np.zeros(data.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    held = room[start : start + data.nbytes].view(data.dtype)
    held[:] = data
    return held


if __name__ == "__main__":
    main()
