"""C of kernels equals the kernel interpreter, on every variant that this processor runs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from compiled_kernels import Compiled, check, compile_kernels, fresh_buffers, targets
from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import (
    Access,
    Axis,
    Binary,
    Buffer,
    Combine,
    Index,
    Kernel,
    Map,
    Schedule,
    Store,
    Tail,
    Use,
)
from cuvil_core.toolchain import TargetSpec
from sample_kernels import (
    F32,
    Case,
    N,
    convolution,
    depthwise,
    gather,
    load,
    matmul,
    nearest,
    padded_copy,
    pooling,
    positions,
    row_fold,
    softmax,
    to_blocked,
)

W = Dim.symbol("W")
SHAPES: list[dict[str, int]] = [{"N": 1, "W": 5}, {"N": 3, "W": 33}, {"N": 2, "W": 14}]

CASES: dict[str, Case] = {
    "a 3×3 convolution with residual, tiles and a smaller last one": convolution("c0"),
    "an overlapping last tile": convolution("c1", tail=Tail.OVERLAP, residual=False),
    "stride 2": convolution("c2", stride=2, size=(4, 9), points=7),
    "a 1×1 convolution, one panel": convolution("c3", taps=(1, 1), panel=1, size=(1, 49), points=7),
    "a symbolic width": convolution("c4", size=(3, W), points=6),
    "a symbolic width with overlapping tiles": convolution(
        "c5", size=(3, W), points=6, tail=Tail.OVERLAP, residual=False
    ),
    "vectors of 8 lanes in two steps": convolution("c6", width=8, points=4, panel=1, size=(2, 10)),
    "depthwise with all taps in one block": depthwise("d0"),
    "depthwise of stride 2 and symbolic width": depthwise("d1", wide=W, stride=2, points=4),
    "a product with partial last vectors": matmul("m0"),
    "a product with symbolic sizes": matmul("m1", n=W, k=W),
    "a batched product, unrolled": matmul("m2", batch=3, m=7, n=32, k=N * 3, unroll=4),
    "a product by 8 lanes": matmul("m3", n=27, width=8),
    "softmax as a sequence": softmax("s0"),
    "softmax of a symbolic row": softmax("s1", W),
    "maximum pooling with conditions": pooling("p0"),
    "sum pooling of symbolic width": pooling("p1", Combine.SUM, W),
    "a gather by loaded rows": gather("g0"),
    "a padded copy": padded_copy("pad0"),
    "a padded copy of symbolic width": padded_copy("pad1", W),
    "row-major to blocked": to_blocked("b0"),
    "a quotient along the lanes": nearest("q0"),
    "values of axes": positions("i0"),
}
FOLDS = {
    f"rows by {combine.value} of {dtype}, lanes along the row": row_fold(f"f{number}_{dtype}", combine, dtype, row)
    for number, combine in enumerate(Combine)
    for dtype, row in ((F32, 53), (DType.INT32, W))
}


@cache
def library(target: TargetSpec) -> Compiled:
    """All cases in one library."""
    return compile_kernels([*CASES.values(), *FOLDS.values()], target)


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
@pytest.mark.parametrize("case", [*CASES, *FOLDS])
def test_c_equals_the_interpreter(case: str, target: TargetSpec) -> None:
    """The C of each kernel gives the interpreter's results for several sizes."""
    kernel, _ = {**CASES, **FOLDS}[case]
    for symbols in SHAPES:
        check(library(target), kernel, symbols, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_threads_change_no_bit(target: TargetSpec) -> None:
    """Any number of threads gives the same bits."""
    compiled = library(target)
    pools = [None, compiled.pool(2), compiled.pool(5)]
    for kernel, _ in CASES.values():
        start = fresh_buffers(kernel, {"N": 3, "W": 33})
        results = []
        for pool in pools:
            buffers = {name: data.copy() for name, data in start.items()}
            compiled.run(kernel.name, buffers, {"N": 3, "W": 33}, pool)
            results.append(buffers)
        for other in results[1:]:
            for name, data in results[0].items():
                assert data.tobytes() == other[name].tobytes(), f"{kernel.name}.{name}"
    for pool in pools[1:]:
        compiled.library.cuvil_pool_destroy(__import__("ctypes").c_void_p(pool))


def test_variants_agree_bit_for_bit() -> None:
    """AVX2 and AVX-512 builds of one schedule give the same bits: no contraction, own functions."""
    libraries = [library(target) for target in targets()]
    for kernel, _ in [*CASES.values(), *FOLDS.values()]:
        start = fresh_buffers(kernel, {"N": 2, "W": 17})
        results = []
        for compiled in libraries:
            buffers = {name: data.copy() for name, data in start.items()}
            compiled.run(kernel.name, buffers, {"N": 2, "W": 17})
            results.append(buffers)
        for other in results[1:]:
            for name, data in results[0].items():
                assert data.tobytes() == other[name].tobytes(), f"{kernel.name}.{name}"


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_nothing_beyond_a_row_is_written(target: TargetSpec) -> None:
    """Partial vectors leave the bytes after their last lane alone."""
    i = Index.axis("i")
    kernel = Kernel(
        "guarded",
        (Buffer.of("x", F32, N), Buffer.of("y", F32, N, Use.WRITE)),
        (Map((Axis("i", N),), (Store(Access("y", i), Binary("add", load("x", i), load("x", i))),)),),
    )
    compiled = compile_kernels([(kernel, Schedule(("i",), vector="i"))], target)
    for size in range(1, 40):
        x, y = np.arange(size, dtype=np.float32), np.full(size + 32, 5, np.float32)
        compiled.run("guarded", {"x": x, "y": y}, {"N": size})
        assert (y[:size] == 2 * x).all() and (y[size:] == 5).all()
