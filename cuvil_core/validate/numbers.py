"""How far two tensors lie apart."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import OutputError

Array = NDArray[Any]


def magnitude(wants: Iterable[Array]) -> float:
    """Give the largest finite magnitude of an output over all cases, 1 where that is 0."""
    return max((_largest(want) for want in wants), default=0.0) or 1.0


def compare(name: str, got: Array, want: Array, rtol: float, atol: float, scale: float | None = None) -> OutputError:
    """Compare an output with its reference.

    A float is within when |got − want| ≤ atol · M + rtol · |want|, M being `scale`, by default the largest magnitude of
    `want`: a bound that means the same for an output of 1e-3 and one of 1e3. NaN matches NaN, an infinity matches
    itself only. Integers and booleans must be equal. `max_abs` and `max_rel` (max_abs / M) are infinite where shapes,
    dtypes, NaN or infinities differ.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return OutputError(name, float("inf"), float("inf"), False)
    if not want.size:
        return OutputError(name, 0.0, 0.0, True)
    wide, true = got.astype(np.float64), want.astype(np.float64)
    finite, unit = np.isfinite(true), magnitude([want]) if scale is None else scale
    if not np.array_equal(wide[~finite], true[~finite], equal_nan=True) or not np.isfinite(wide[finite]).all():
        return OutputError(name, float("inf"), float("inf"), False)
    apart = np.abs(wide[finite] - true[finite])
    worst = float(np.max(apart, initial=0.0))
    if want.dtype.name.startswith(("float", "bfloat")):
        within = bool((apart <= atol * unit + rtol * np.abs(true[finite])).all())
    else:
        within = bool(np.array_equal(got, want))
    return OutputError(name, worst, worst / unit, within)


def worse(one: OutputError, other: OutputError) -> OutputError:
    """Give the greater error of one output over two cases."""
    return OutputError(
        one.name, max(one.max_abs, other.max_abs), max(one.max_rel, other.max_rel), one.within and other.within
    )


def _largest(array: Array) -> float:
    wide = np.abs(array.astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0.0))
