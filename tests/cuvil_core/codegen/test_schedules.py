"""No schedule changes a result: seeded random ones of every kernel agree with the interpreter."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from compiled_kernels import Compiled, check, compile_kernels, targets
from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Combine, Contraction, Map, Schedule, Tail, verify, verify_schedule
from cuvil_core.toolchain import TargetSpec
from sample_kernels import Case, convolution, depthwise, matmul, pooling, row_fold, to_blocked

W = Dim.symbol("W")
BASES = (
    convolution("conv", size=(5, 11)),
    convolution("conv_any", size=(W, W), residual=False),
    depthwise("dw", wide=W),
    matmul("mm", m=W, n=45, k=19, batch=2),
    matmul("mm_any", n=W, k=W),
    pooling("pool", Combine.MAX, W),
    to_blocked("block"),
    row_fold("rows", Combine.SUM, row=W),
)
SIZES = ({"N": 1, "W": 3}, {"N": 2, "W": 13}, {"N": 3, "W": 20})
VARIANTS = 6


def shuffled(case: Case, number: int) -> Case:
    """The kernel under a random schedule: order, threads, tiles, registers, unrolling, lanes and tails."""
    kernel, base = case
    rng = random.Random(f"{kernel.name} {number}")
    statement = kernel.body[0]
    kept, reduced = [a.name for a in statement.axes], [a.name for a in statement.reduce_axes]
    rng.shuffle(kept)
    rng.shuffle(reduced)
    tiled = rng.choice(kept)
    vector = rng.choice([base.vector, base.vector, None])
    tiles: tuple[tuple[str, int], ...] = ()
    if rng.random() < 0.5:
        kept.insert(rng.randrange(kept.index(tiled) + 1), tiled)
        tiles = ((tiled, rng.choice([16, 32, 48]) if tiled == vector else rng.choice([1, 2, 3, 5])),)
    registers = tuple((a, rng.choice([1, 2, 3])) for a in dict.fromkeys(kept) if rng.random() < 0.5)
    schedule = Schedule(
        order=(*kept, *reduced),
        parallel=rng.randrange(len(kept) + 1),
        tiles=tiles,
        vector=vector,
        width=rng.choice([8, 16]),
        registers=registers,
        unroll=tuple((a, rng.choice([1, 2, 3])) for a in reduced),
        tail=rng.choice(list(Tail)),
        flush_denormals=isinstance(statement, Contraction),
        prefetch_right=rng.choice([0, 64]),
    )
    return replace(kernel, name=f"{kernel.name}_{number}"), schedule


CASES = {
    kernel.name: (kernel, schedule)
    for base in BASES
    for n in range(VARIANTS)
    for kernel, schedule in [shuffled(base, n)]
}


@cache
def library(target: TargetSpec) -> Compiled:
    """All cases in one library."""
    return compile_kernels(list(CASES.values()), target)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_random_schedules_change_nothing(case: str) -> None:
    """Kernel and schedule are legal, and the C equals the interpreter on one thread and on three."""
    kernel, schedule = CASES[case]
    verify(kernel)
    verify_schedule(kernel, schedule)
    compiled = library(targets()[-1])
    for symbols in SIZES:
        check(compiled, kernel, symbols, rtol=2e-5, atol=2e-5)


def test_maps_are_among_the_cases() -> None:
    """All three kinds of statement are scheduled at random."""
    assert {type(kernel.body[0]).__name__ for kernel, _ in BASES} == {"Contraction", "Fold", Map.__name__}
