"""The published simulation, in short: the promise of falseRollback and the power of the test."""

import math

from benchmarks.analysis_simulation import Gate, latest_refuting, simulate, summed
from cuvil_operator.decide import bound

SEEDS = 2_000
GATES = (Gate("errors", 0.005, 0.005), Gate("latency", 0.05, 0.005))


def test_a_healthy_canary_at_its_limits_is_rolled_back_at_most_so_often() -> None:
    """With both gates exactly at their limits, looked at after each request, 1 % is kept (3 sigma of 2,000 runs)."""
    false = None
    for gate in GATES:
        failed, _ = simulate(gate, latest_refuting(gate, 300), gate.limit, SEEDS, 1)
        false = failed > 0 if false is None else false | (failed > 0)
    assert false is not None
    assert false.mean() <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / SEEDS)


def test_a_canary_above_its_limit_is_caught() -> None:
    """Twice the limit is always caught, and ten times the limit within about as many requests as 1/limit."""
    for gate in GATES:
        latest = latest_refuting(gate, 400)
        double = summed(*simulate(gate, latest, 2 * gate.limit, SEEDS, 2))
        tenfold = summed(*simulate(gate, latest, 10 * gate.limit, SEEDS, 3))
        assert double.caught > 0.99
        assert tenfold.caught == 1
        assert tenfold.ninth <= 1.2 / gate.limit


def test_the_simulated_boundary_is_the_products() -> None:
    """For each number of breaches the boundary is the last refuting count: one request more refutes no longer."""
    gate = GATES[1]
    for k, n in enumerate(latest_refuting(gate, 40), start=1):
        if n:
            assert bound.refuted(k, int(n), gate.limit, gate.alpha)
        assert not bound.refuted(k, max(int(n) + 1, k), gate.limit, gate.alpha)
