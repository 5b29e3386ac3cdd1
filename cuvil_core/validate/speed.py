"""The stopwatch: single-stream latency after warm-up, alone or interleaved with another."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WARM_UP = 100
RUNS = 500


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50_ms: float
    p90_ms: float
    least_ms: float
    runs: int


def measure(work: Callable[[], object], runs: int = RUNS, warm_up: int = WARM_UP) -> Latency:
    """Time `work`."""
    return measure_pair(work, None, runs, warm_up)[0]


def measure_pair(
    work: Callable[[], object], other: Callable[[], object] | None, runs: int = RUNS, warm_up: int = WARM_UP
) -> tuple[Latency, Latency | None]:
    """Time two works in turn, so that a busy neighbour or a hot CPU harms both alike."""
    works = [work] if other is None else [work, other]
    for _ in range(warm_up):
        for one in works:
            one()
    taken = np.empty((len(works), runs))
    for turn in range(runs):
        # Who goes first changes with each turn: the second finds other caches than the first.
        for which in range(len(works)) if turn % 2 == 0 else reversed(range(len(works))):
            started = time.perf_counter()
            works[which]()
            taken[which, turn] = time.perf_counter() - started
    found = [_summary(row * 1e3, runs) for row in taken]
    return found[0], found[1] if other is not None else None


def _summary(times: "np.ndarray[tuple[int], np.dtype[np.float64]]", runs: int) -> Latency:
    middle, high = np.percentile(times, [50, 90])
    return Latency(float(middle), float(high), float(times.min()), runs)
