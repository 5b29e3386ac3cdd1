"""How often the canary's verdict is wrong, and how many requests it takes to be right: 10,000 simulated rollouts a row.

    PYTHONPATH=operator python -m benchmarks.analysis_simulation [--seeds 10000] [--breaches 3000]

A rollout is a row of requests that each breach with the true share p, looked at after every single request: the most
looks that anybody could take, so the worst case for a false rollback. Only breaches can cross the bound, so only the
gaps between them are drawn (geometric), and for each number of breaches k the greatest number of requests that still
refutes the limit is computed once, by the product's own function.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuvil_operator.decide import bound

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Gate:
    """One objective."""

    name: str
    limit: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Row:
    """What one true share came to."""

    caught: float
    """Share of rollouts that were failed within the simulated breaches."""
    mean: float
    """Requests until then, over the caught ones."""
    median: float
    ninth: float
    """Nine of ten rollouts were failed by this many."""
    requests: float
    """Mean number of requests simulated."""


def latest_refuting(gate: Gate, breaches: int) -> Counts:
    """Give for k = 1 … breaches the greatest n at which k of n still refutes the limit; 0 where none does."""
    found = np.zeros(breaches, dtype=np.int64)
    least = 1
    for k in range(1, breaches + 1):
        # with one breach more the bound is crossed at more requests still: the search goes on from the last one
        low, high = least - 1, int(k / gate.limit) + 1
        while high - low > 1:
            middle = (low + high) // 2
            refuted = middle >= k and bound.refuted(k, middle, gate.limit, gate.alpha)
            low, high = (middle, high) if refuted or middle < k else (low, middle)
        found[k - 1] = low if low >= k and bound.refuted(k, low, gate.limit, gate.alpha) else 0
        least = max(1, int(found[k - 1]))
    return found


def simulate(gate: Gate, latest: Counts, share: float, seeds: int, seed: int) -> tuple[Counts, Counts]:
    """Give for each rollout the request at which it was failed (0: never), and how many requests were simulated."""
    failed = np.zeros(seeds, dtype=np.int64)
    seen = np.zeros(seeds, dtype=np.int64)
    for begin in range(0, seeds, 1000):
        many = min(1000, seeds - begin)
        dice = np.random.default_rng([seed, begin, *gate.name.encode()])
        at = dice.geometric(share, size=(many, len(latest))).cumsum(axis=1)
        crossed = at <= latest
        first = crossed.argmax(axis=1)
        hit = crossed.any(axis=1)
        failed[begin : begin + many] = np.where(hit, at[np.arange(many), first], 0)
        seen[begin : begin + many] = at[:, -1]
    return failed, seen


def summed(failed: Counts, seen: Counts) -> Row:
    """Give the figures of one row."""
    caught = failed[failed > 0]
    if not caught.size:
        return Row(0.0, float("nan"), float("nan"), float("nan"), float(seen.mean()))
    middle, ninth = np.percentile(caught, [50, 90])
    return Row(float((failed > 0).mean()), float(caught.mean()), float(middle), float(ninth), float(seen.mean()))


def main() -> None:
    """Print both tables as Markdown."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seeds", type=int, default=10_000, help="rollouts a row")
    options.add_argument("--breaches", type=int, default=3_000, help="breaches after which a rollout is given up")
    options.add_argument("--false-rollback", type=float, default=0.01, help="spec.rollout.analysis.falseRollback")
    wanted = options.parse_args()
    begun = time.monotonic()
    alpha = wanted.false_rollback / 2
    gates = (
        Gate("errorRate 0.5 %", 0.005, alpha),
        Gate("errorRate 1 %", 0.01, alpha),
        Gate("latency p95", 0.05, alpha),
    )
    latest = {gate.name: latest_refuting(gate, wanted.breaches) for gate in gates}
    print(f"{wanted.seeds} rollouts a row, falseRollback {wanted.false_rollback:.2%}, a look after every request\n")
    print("| gate | true share | failed | mean requests | median | 9 of 10 by |\n|---|---|---|---|---|---|")
    false: dict[str, NDArray[np.bool_]] = {}
    for gate in gates:
        for times in (0.5, 1, 2, 3, 10):
            failed, seen = simulate(gate, latest[gate.name], gate.limit * times, wanted.seeds, int(times * 10))
            if times == 1:
                false[gate.name] = failed > 0
            row = summed(failed, seen)
            figures = (
                f"{row.mean:,.0f} | {row.median:,.0f} | {row.ninth:,.0f}"
                if times > 1
                else f"of {row.requests:,.0f} | |"
            )
            print(f"| {gate.name} | {times:g} × limit | {row.caught:.2%} | {figures} |")
    both = false[gates[0].name] | false[gates[2].name]
    print(f"\nBoth gates exactly at their limits (0.5 % and 5 %): {both.mean():.2%} rolled back falsely.")
    print(f"({time.monotonic() - begun:.0f} s)")


if __name__ == "__main__":
    main()
