"""Counting requests from counters that restart, vanish and come back."""

from datetime import UTC, datetime, timedelta

from cuvil_operator.decide.evidence import KEPT_PODS, Evidence, advance, baseline
from cuvil_operator.promql import PodCounts, Reading, SourceState

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def reading(second: int, *pods: tuple[str, int, int]) -> Reading:
    """Give a usable reading."""
    counts = tuple(PodCounts(*one) for one in pods)
    return Reading("q", SourceState.OK, NOON + timedelta(seconds=second), pods=counts)


def counted(*readings: Reading) -> tuple[int, int]:
    """Give requests and breaches after a row of readings."""
    evidence = Evidence()
    for one in readings:
        evidence = advance(evidence, one)
    return evidence.requests, evidence.breaches


def test_a_new_pod_counts_from_zero() -> None:
    """All that a pod's counters show happened in this rollout."""
    assert counted(reading(0, ("a", 10, 2))) == (10, 2)


def test_growth_is_the_difference() -> None:
    """Two looks count each request once."""
    assert counted(reading(0, ("a", 10, 2)), reading(5, ("a", 25, 3))) == (25, 3)


def test_the_same_look_twice_counts_once() -> None:
    """A stale answer adds nothing."""
    assert counted(reading(0, ("a", 10, 2)), reading(5, ("a", 10, 2))) == (10, 2)


def test_a_reset_counts_what_is_shown_now() -> None:
    """A restarted process begins at 0: what it shows is new."""
    assert counted(reading(0, ("a", 100, 5)), reading(5, ("a", 7, 1))) == (107, 6)


def test_a_reset_seen_only_in_breaches() -> None:
    """A counter that fell betrays a restart even when the other one has grown past its old value."""
    assert counted(reading(0, ("a", 10, 5)), reading(5, ("a", 12, 1))) == (22, 6)


def test_a_gap_is_not_counted_twice() -> None:
    """A pod that is missing from one answer goes on from its last value."""
    assert counted(reading(0, ("a", 10, 0), ("b", 4, 0)), reading(5, ("b", 6, 0)), reading(9, ("a", 15, 0))) == (21, 0)


def test_a_vanished_pod_keeps_its_count() -> None:
    """What a deleted pod has answered stays evidence."""
    assert counted(reading(0, ("a", 10, 3)), reading(5, ("b", 5, 0))) == (15, 3)


def test_an_unusable_reading_changes_nothing() -> None:
    """Hold means: as if nobody had looked."""
    before = advance(Evidence(), reading(0, ("a", 10, 2)))
    assert advance(before, Reading("q", SourceState.UNREACHABLE, NOON)) == before


def test_a_baseline_counts_nothing() -> None:
    """What a pod did before it had traffic of this rollout is no evidence."""
    begun = baseline(reading(0, ("a", 10, 2)))
    assert (begun.requests, begun.breaches) == (0, 0)
    after = advance(begun, reading(5, ("a", 13, 2)))
    assert (after.requests, after.breaches) == (3, 0)


def test_memory_of_pods_is_bounded() -> None:
    """However many pods come and go, status keeps KEPT_PODS of them, the newest ones."""
    evidence = Evidence()
    for second in range(3 * KEPT_PODS):
        evidence = advance(evidence, reading(second, (f"p{second:03d}", 1, 0)))
    assert len(evidence.counters) == KEPT_PODS
    assert evidence.requests == 3 * KEPT_PODS
    assert evidence.counters[-1].pod == f"p{3 * KEPT_PODS - 1:03d}"
