"""The elementary functions keep their stated error bounds, special cases, and equal bits in every variant."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from compiled_kernels import Array, Compiled, compile_kernels, targets
from cuvil_core.kernel_ir import Binary, Index, Kernel, Schedule, Unary
from cuvil_core.toolchain import TargetSpec
from sample_kernels import F32, Case, elementwise, load

SIZE = 1 << 17
HERE = Index.axis("i")


def _sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, decay, 1) / (1 + decay))


EXACT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
BOUNDS = {"exp": 1.1, "log": 1.5, "tanh": 2.0, "sigmoid": 2.5, "erf": 2.0, "sin": 1.6, "cos": 1.6, "pow": 0.51} | {
    name: 0.51 for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
}
BOUNDS["tan"] = 0.6
"""Units in the last place, as cuvil_math.h, cuvil_pow.h and cuvil_trig.h state them."""
RANGES = {"all floats": None, "wide": (-104.0, 89.0), "near zero": (-1.5, 1.5), "positive": (0.0, 3.0)}
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 88.7228, 88.73,
           -103.9, -104.1, 89.4, 89.42, 1e-4, -1e-3, 1.0000001,
           0.9999999, -0.9999999, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0)  # fmt: skip


def cases() -> list[Case]:
    """Each function by 16 lanes and lane by lane."""
    made = []
    for name in (*EXACT, "pow"):
        x = load("x", HERE)
        value = Binary("pow", x, load("z", HERE)) if name == "pow" else Unary(name, x)
        operands = {"x": F32, "z": F32} if name == "pow" else {"x": F32}
        kernel, schedule = elementwise(name, value, F32, operands)
        made.append((Kernel(f"m_{name}", kernel.buffers, kernel.body), schedule))
        made.append((Kernel(f"one_{name}", kernel.buffers, kernel.body), Schedule(("i",), vector=None)))
    return made


@cache
def library(target: TargetSpec) -> Compiled:
    """All functions."""
    return compile_kernels(cases(), target)


def inputs(bounds: tuple[float, float] | None, seed: int) -> Array:
    """Seeded floats; without bounds of every bit pattern."""
    rng = np.random.default_rng(seed)
    if bounds is None:
        values = rng.integers(0, 1 << 32, SIZE, dtype=np.uint32).view(np.float32)
    else:
        values = rng.uniform(*bounds, SIZE).astype(np.float32)
    grid = np.array([SPECIAL] * len(SPECIAL), np.float32)
    values[: grid.size] = (grid if seed % 2 else grid.T).ravel()
    return values


def errors(got: Array, wanted: Array) -> tuple[Array, Array]:
    """(units in the last place, where the kind of result is wrong)."""
    rounded = wanted.astype(np.float32)
    finite = np.isfinite(wanted) & np.isfinite(rounded) & np.isfinite(got)
    size = np.zeros(got.shape)
    size[finite] = np.abs(got[finite].astype(np.float64) - wanted[finite]) / np.spacing(np.abs(rounded[finite]))
    same = (np.isnan(got) & np.isnan(wanted)) | (got == rounded)
    return size, ~finite & ~same


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("name", BOUNDS)
def test_error_bounds_hold(name: str, bounds: str) -> None:
    """No result is further from the exact one than stated; infinities, NaN, zeros and denormals are right."""
    x, z = inputs(RANGES[bounds], 1), inputs(RANGES[bounds], 2)
    y = np.empty_like(x)
    library(targets()[-1]).run(f"m_{name}", {"x": x, "z": z, "y": y}, {"N": SIZE})
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wanted = np.power(wide, z.astype(np.float64)) if name == "pow" else EXACT[name](wide)
        size, wrong = errors(y, wanted)
    assert not wrong.any(), [(x[i], z[i], y[i], wanted[i]) for i in np.flatnonzero(wrong)[:5]]
    worst = int(size.argmax())
    assert size[worst] <= BOUNDS[name], (x[worst], y[worst], wanted[worst], size[worst])


@pytest.mark.parametrize("name", BOUNDS)
def test_lanes_and_variants_give_equal_bits(name: str) -> None:
    """One lane or sixteen, AVX2 or AVX-512: the same bits."""
    x, z = inputs(None, 3), inputs(None, 4)
    results = []
    for target in targets():
        for kernel in (f"m_{name}", f"one_{name}"):
            y = np.empty_like(x)
            library(target).run(kernel, {"x": x, "z": z, "y": y}, {"N": SIZE})
            results.append(np.where(np.isnan(y), np.float32(math.nan), y).tobytes())
    assert len(set(results)) == 1
