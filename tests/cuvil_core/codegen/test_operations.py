"""Every scalar operation and cast, on every element type it takes, equals NumPy, special values included."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from compiled_kernels import Array, Compiled, compile_kernels, targets
from cuvil_core.ir import DType
from cuvil_core.kernel_ir import Binary, Bitcast, Cast, Fma, Index, Literal, Select, Unary
from cuvil_core.kernel_ir.expressions import (
    BINARY_COMPARE,
    BINARY_LOGIC,
    BINARY_NUMBER,
    BINARY_SHIFT,
    UNARY_FLOAT,
    UNARY_NUMBER,
    UNARY_TEST,
)
from cuvil_core.kernel_ir.interpreter import interpret, memory_dtype
from cuvil_core.toolchain import TargetSpec
from sample_kernels import Case, elementwise, load

HERE = Index.axis("i")
INTEGERS = [DType.INT8, DType.UINT8, DType.INT32, DType.INT64, DType.UINT64]
"""Both signs, narrow and wide; conversions meet all the others too."""
FLOATS = [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64]
NUMBERS = [*INTEGERS, *FLOATS]
SIZE = 501


def unary(name: str, dtype: DType) -> Case:
    """y = name(x)."""
    value = Unary(name, load("x", HERE, dtype))
    return elementwise(f"u_{name}_{dtype}", value, value.dtype, {"x": dtype})


def binary(name: str, dtype: DType) -> Case:
    """y = name(x, z)."""
    value = Binary(name, load("x", HERE, dtype), load("z", HERE, dtype))
    return elementwise(f"b_{name}_{dtype}", value, value.dtype, {"x": dtype, "z": dtype})


def conversion(source: DType, target: DType) -> Case:
    """y = cast(x)."""
    return elementwise(f"c_{source}_{target}", Cast(load("x", HERE, source), target), target, {"x": source})


def reread(source: DType, target: DType) -> Case:
    """y = the bits of x as another dtype."""
    return elementwise(f"r_{source}_{target}", Bitcast(load("x", HERE, source), target), target, {"x": source})


def chosen(dtype: DType) -> Case:
    """y = z where x < z, else x."""
    x, z = load("x", HERE, dtype), load("z", HERE, dtype)
    return elementwise(f"s_{dtype}", Select(Binary("lt", x, z), z, x), dtype, {"x": dtype, "z": dtype})


def unaries() -> list[Case]:
    """All functions of one operand."""
    cases = [unary(n, d) for n in sorted(UNARY_FLOAT) for d in FLOATS]
    cases += [unary(name, d) for name in sorted(UNARY_NUMBER) for d in NUMBERS if name != "neg" or d.is_signed]
    cases += [unary(name, d) for name in sorted(UNARY_TEST) for d in FLOATS]
    return cases + [unary("not", d) for d in (*INTEGERS, DType.BOOL)]


def arithmetic() -> list[Case]:
    """Numbers of two operands, choices, multiply-add."""
    cases = [binary(n, d) for n in sorted(BINARY_NUMBER) for d in NUMBERS]
    cases += [chosen(d) for d in (*NUMBERS, DType.BOOL)]
    x = load("x", HERE)
    half = Binary("mul", Fma(x, x, Literal(0.25, DType.FLOAT32)), Literal(0.5, DType.FLOAT32))
    return [*cases, elementwise("fma_f32", half, DType.FLOAT32, {"x": DType.FLOAT32})]


def comparisons() -> list[Case]:
    """Truth values of two operands."""
    cases = [binary(name, d) for name in sorted(BINARY_COMPARE) for d in (*NUMBERS, DType.BOOL)]
    cases += [binary(name, d) for name in sorted(BINARY_LOGIC) for d in (*INTEGERS, DType.BOOL)]
    unsigned = [dtype for dtype in DType if dtype.is_integer and not dtype.is_signed]
    return cases + [binary(name, dtype) for name in sorted(BINARY_SHIFT) for dtype in unsigned]


def conversions() -> list[Case]:
    """Every type to every other."""
    cases = [conversion(a, b) for a in DType for b in DType if a is not b]
    wide = [dtype for dtype in DType if dtype is not DType.BOOL]
    return cases + [reread(a, b) for a in wide for b in wide if a is not b and a.itemsize == b.itemsize]


GROUPS = {group.__name__: group for group in (unaries, arithmetic, comparisons, conversions)}


@cache
def library(group: str, target: TargetSpec) -> Compiled:
    """All operations of a group in one library."""
    return compile_kernels(GROUPS[group](), target)


def operand(dtype: DType, seed: int) -> Array:
    """Seeded values with every special one of the type, in an order that meets each with each."""
    rng = np.random.default_rng(seed)
    kind = memory_dtype(dtype)
    if dtype is DType.BOOL:
        return rng.integers(0, 2, SIZE).astype(kind)
    if dtype is DType.BFLOAT16:
        return (operand(DType.FLOAT32, seed).view(np.uint32) >> 16).astype(np.uint16)
    if dtype.is_integer:
        info = np.iinfo(kind)
        low, high = max(info.min, -40), min(info.max, 40)
        special: list[float] = [info.min, info.max, info.min + 1, 0, 1, 2, high]
        values = rng.integers(low, high, SIZE).astype(kind)
    else:
        limit = np.finfo(kind)
        special = [
            0.0,
            -0.0,
            math.inf,
            -math.inf,
            math.nan,
            1.0,
            -1.0,
            0.5,
            -2.5,
            limit.max,
            limit.tiny / 2,
            3e9,
            -300.5,
        ]
        with np.errstate(all="ignore"):
            values = (rng.standard_normal(SIZE) * rng.choice([0.1, 1, 10], SIZE)).astype(kind)
            special = [np.float64(s).astype(kind) for s in special]
    grid = np.array([special] * len(special), kind)
    values[: grid.size] = (grid if seed % 2 else grid.T).ravel()
    return values


@pytest.mark.slow
@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
@pytest.mark.parametrize("group", GROUPS)
def test_every_operation_equals_numpy(group: str, target: TargetSpec) -> None:
    """Results are equal for integers and bools, and within 4 units in the last place for floats."""
    failures = []
    for kernel, _ in GROUPS[group]():
        name = kernel.name
        buffers = {b.name: operand(b.dtype, seed) for seed, b in enumerate(kernel.buffers)}
        buffers["y"] = np.zeros(SIZE, memory_dtype(kernel.buffers[-1].dtype))
        mine, theirs = ({k: v.copy() for k, v in buffers.items()} for _ in range(2))
        library(group, target).run(name, mine, {"N": SIZE})
        interpret(kernel, theirs, {"N": SIZE})
        wrong = differing(mine["y"], theirs["y"], kernel.buffers[-1].dtype)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            shown = {k: v[at] for k, v in mine.items()}
            failures.append(f"{name}: {shown}, NumPy {theirs['y'][at]} ({int(wrong.sum())} of {SIZE})")
    assert not failures, "\n".join(failures)


def differing(got: Array, wanted: Array, dtype: DType) -> Array:
    """Where two results differ by more than 4 units in the last place; any NaN equals any NaN."""
    if dtype is DType.BFLOAT16:
        got, wanted = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, wanted))
        return np.asarray(~((got == wanted) | (np.isnan(got) & np.isnan(wanted))))
    if got.dtype.kind != "f":
        return np.asarray(got != wanted)
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(np.float64) - wanted.astype(np.float64)) <= 4 * np.spacing(np.abs(wanted)).astype(
            np.float64
        )
    return np.asarray(~((got == wanted) | near | (np.isnan(got) & np.isnan(wanted))))
