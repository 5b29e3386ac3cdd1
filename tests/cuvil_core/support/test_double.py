"""Elementary functions on float64 keep their bounds, special cases, and equal bits in every variant."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from compiled_kernels import Array, Compiled, compile_kernels, targets
from cuvil_core.ir import DType
from cuvil_core.kernel_ir import Binary, Index, Kernel, Schedule, Unary
from cuvil_core.toolchain import TargetSpec
from sample_kernels import Case, elementwise, load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SIZE = 1 << 15
HERE = Index.axis("i")
F64 = DType.FLOAT64
Wide = np.ndarray[Any, np.dtype[np.longdouble]]


def _sigmoid(x: Wide) -> Wide:
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, decay, 1) / (1 + decay))


UNARY: dict[str, tuple[Callable[[Any], Any], float]] = {
    "exp": (np.exp, 1.1),
    "log": (np.log, 1.1),
    "sigmoid": (_sigmoid, 2.5),
    "tanh": (np.tanh, 3.0),
    "erf": (np.vectorize(math.erf, otypes=[np.longdouble]), 3.0),
    "sin": (np.sin, 2.5),
    "cos": (np.cos, 2.5),
    "tan": (np.tan, 4.0),
    "asin": (np.arcsin, 4.0),
    "acos": (np.arccos, 4.0),
    "atan": (np.arctan, 2.0),
    "sinh": (np.sinh, 3.0),
    "cosh": (np.cosh, 3.0),
    "asinh": (np.arcsinh, 3.0),
    "acosh": (np.arccosh, 3.0),
    "atanh": (np.arctanh, 3.0),
}
"""Name → the exact function in 64 digits (the C library's for erf), and the bound that cuvil_double.h states."""
BINARY: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "pow": (np.power, 1.1),
    "fmod": (np.fmod, 0.0),
    "mod": (np.mod, 0.51),
}
RANGES = {"all doubles": None, "wide": (-750.0, 720.0), "near zero": (-1.6, 1.6), "positive": (0.0, 8.0)}
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 5e-324, -5e-324, 2.3e-308, 1.7e308, -1.7e308, 709.78,
           709.79, 710.4, -745.1, -745.2, 0.5, -0.5, 2.0, -2.0, 3.0, 1e-9, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 0.93, 6.0,
           1048576.5, 1e22, 2.0**53 + 1)  # fmt: skip


def cases() -> list[Case]:
    """Each function by eight lanes and lane by lane."""
    made = []
    for name in (*UNARY, *BINARY):
        x, z = load("x", HERE, F64), load("z", HERE, F64)
        value = Unary(name, x) if name in UNARY else Binary(name, x, z)
        kernel, schedule = elementwise(name, value, F64, {"x": F64} if name in UNARY else {"x": F64, "z": F64})
        made.append((Kernel(f"m_{name}", kernel.buffers, kernel.body), schedule))
        made.append((Kernel(f"one_{name}", kernel.buffers, kernel.body), Schedule(("i",), vector=None)))
    return made


@cache
def library(target: TargetSpec) -> Compiled:
    """All functions."""
    return compile_kernels(cases(), target)


def inputs(bounds: tuple[float, float] | None, seed: int) -> Array:
    """Seeded doubles; without bounds of every bit pattern."""
    rng = np.random.default_rng(seed)
    if bounds is None:
        values = rng.integers(0, (1 << 64) - 1, SIZE, dtype=np.uint64, endpoint=True).view(np.float64)
    else:
        values = rng.uniform(*bounds, SIZE)
    grid = np.array([SPECIAL] * len(SPECIAL))
    values[: grid.size] = (grid if seed % 2 else grid.T).ravel()
    return values


def computed(target: TargetSpec, kernel: str, x: Array, z: Array) -> Array:
    """The kernel's results."""
    y = np.empty_like(x)
    library(target).run(kernel, {"x": x, "z": z, "y": y}, {"N": SIZE})
    return y


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_error_bounds_hold(name: str, bounds: str) -> None:
    """No result is further from the exact one than stated; infinities, NaN, zeros and denormals are right."""
    x, z = inputs(RANGES[bounds], 1), inputs(RANGES[bounds], 2)
    y = computed(targets()[-1], f"m_{name}", x, z)
    with np.errstate(all="ignore"):
        if name in UNARY:
            exact, bound = UNARY[name]
            wanted = exact(x.astype(np.longdouble))
        else:
            pair, bound = BINARY[name]
            wanted = pair(x.astype(np.longdouble), z.astype(np.longdouble))
        rounded = wanted.astype(np.float64)
        same = (np.isnan(y) & np.isnan(rounded)) | (y == rounded)
        size = np.abs(y.astype(np.longdouble) - wanted) / np.spacing(np.abs(rounded))
        finite = np.isfinite(rounded) & np.isfinite(y)
    bad = np.flatnonzero(~same & ~(finite & (size <= bound)))
    assert not bad.size, [(x[i], z[i], y[i], rounded[i], float(size[i])) for i in bad[:5]] + [bad.size]


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_lanes_and_variants_give_equal_bits(name: str) -> None:
    """One lane or eight, AVX2 or AVX-512: the same bits."""
    x, z = inputs(None, 3), inputs(None, 4)
    found = [computed(target, f"{kind}_{name}", x, z) for target in targets() for kind in ("m", "one")]
    assert len({np.where(np.isnan(y), math.nan, y).tobytes() for y in found}) == 1


def test_whole_powers_are_exact() -> None:
    """Where a double holds the power of two whole numbers, that is the result: integers may be cut off behind it."""
    pairs = [(a, b) for a in range(2, 200) for b in range(1, 53) if a**b < 2**53]
    x, z = np.ones(SIZE), np.ones(SIZE)
    x[: len(pairs)], z[: len(pairs)] = np.array(pairs, np.float64).T
    got = computed(targets()[-1], "m_pow", x, z)[: len(pairs)]
    np.testing.assert_array_equal(got, np.array([float(a**b) for a, b in pairs]))
