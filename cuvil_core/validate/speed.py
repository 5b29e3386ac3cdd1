"""The stopwatch: single-stream latency after warm-up, alone or interleaved with another."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WARM_UP = 100
RUNS = 500
LEAST_RUNS = 20
BUDGET_SECONDS = 45.0
Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50_ms: float
    p90_ms: float
    least_ms: float
    runs: int


def measure(work: Work, runs: int = RUNS, warm_up: int = WARM_UP) -> Latency:
    """Time `work`."""
    return measure_pair(work, None, runs, warm_up)[0]


def measure_pair(
    work: Work,
    other: Work | None,
    runs: int = RUNS,
    warm_up: int = WARM_UP,
    budget: float = BUDGET_SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Latency, Latency | None]:
    """Time two works in turn, so that a busy neighbour or a hot CPU harms both alike.

    Where all runs would take longer than `budget` seconds, there are fewer: at least LEAST_RUNS, and a fifth of the
    time for the warm-up; `runs` of the result says how many.
    """
    works = [work] if other is None else [work, other]
    began = clock()
    for _ in range(warm_up):
        for one in works:
            one()
        if clock() - began > budget / 5:
            break
    taken: list[list[float]] = [[] for _ in works]
    began = clock()
    for turn in range(runs):
        # Who goes first changes with each turn: the second finds other caches than the first.
        for which in range(len(works)) if turn % 2 == 0 else reversed(range(len(works))):
            started = clock()
            works[which]()
            taken[which].append(clock() - started)
        if turn + 1 >= LEAST_RUNS and clock() - began > budget:
            break
    found = [_summary(times) for times in taken]
    return found[0], found[1] if other is not None else None


def _summary(seconds: list[float]) -> Latency:
    times = np.array(seconds) * 1e3
    middle, high = np.percentile(times, [50, 90])
    return Latency(float(middle), float(high), float(times.min()), len(times))
