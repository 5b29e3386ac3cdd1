"""Counters count occurrences once, gauges show what is now."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from cuvil_operator.api import (
    CuvilModelStatus,
    HistoryEntry,
    QuarantineEntry,
    RevisionStatus,
    Rollback,
    TimelineEntry,
)
from cuvil_operator.facts import ModelKey
from cuvil_operator.metrics import Metrics
from cuvil_operator.rollout_metrics import RolloutMetrics
from fake_clock import START

KEY = ModelKey("ns", "m")
OF = {"namespace": "ns", "model": "m"}
AT_REST = CuvilModelStatus(phase="Stable", stable=RevisionStatus("a" * 12, weight=100))
CANARY = replace(
    AT_REST,
    phase="Progressing",
    stable=RevisionStatus("a" * 12, weight=90),
    canary=RevisionStatus("b" * 12, weight=10),
)
ROLLBACK = Rollback(
    revision="b" * 12,
    stable="a" * 12,
    reason="LatencyBreached",
    message="",
    started_at=START,
    crossed_at=START - timedelta(seconds=3),
)


class Told:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.told = RolloutMetrics(self.metrics)

    def tell(self, *statuses: CuvilModelStatus) -> "Told":
        for before, after in pairwise(statuses):
            self.told.tell(KEY, before, after)
        return self

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


def test_a_rollback_is_counted_once_with_its_reason_and_its_time() -> None:
    """Over all its turns: one rollback, one rolled-back rollout, one detection time, from crossing to weight 0."""
    at_zero = replace(ROLLBACK, weight_zero_at=START + timedelta(seconds=5))
    begun = replace(CANARY, rollback=ROLLBACK)
    zero = replace(CANARY, rollback=at_zero)
    done = replace(AT_REST, rollback=replace(at_zero, finished_at=START + timedelta(seconds=9)))
    told = Told().tell(CANARY, begun, begun, zero, zero, done, done)
    assert told.value("cuvil_operator_rollbacks_total", **OF, reason="LatencyBreached") == 1
    assert told.value("cuvil_operator_rollouts_total", **OF, outcome="rolled_back") == 1
    assert told.value("cuvil_operator_detection_seconds_count") == 1
    assert told.value("cuvil_operator_detection_seconds_sum") == 8


def test_a_rollback_that_was_at_zero_at_once_is_timed_too() -> None:
    """A rollback that begins with weight 0 in the same turn has its detection time."""
    at_zero = replace(ROLLBACK, weight_zero_at=START + timedelta(seconds=1))
    told = Told().tell(CANARY, replace(CANARY, rollback=at_zero), replace(AT_REST, rollback=at_zero))
    assert told.value("cuvil_operator_detection_seconds_count") == 1


def test_a_second_rollback_is_another_one() -> None:
    """Two rollbacks of one model are two, also where the first one is still in status."""
    at_zero = replace(ROLLBACK, weight_zero_at=START)
    first = replace(AT_REST, rollback=at_zero)
    later = replace(ROLLBACK, started_at=START + timedelta(hours=1), crossed_at=START + timedelta(minutes=59))
    second = replace(CANARY, rollback=later)
    zero = replace(CANARY, rollback=replace(later, weight_zero_at=START + timedelta(hours=1)))
    told = Told().tell(CANARY, first, second, zero)
    assert told.value("cuvil_operator_rollbacks_total", **OF, reason="LatencyBreached") == 2
    assert told.value("cuvil_operator_detection_seconds_count") == 2


def test_a_promotion_is_counted_once() -> None:
    """A new head of the history is one promoted rollout."""
    promoted = replace(AT_REST, history=(HistoryEntry("a" * 12, START),))
    told = Told().tell(CANARY, promoted, promoted)
    assert told.value("cuvil_operator_rollouts_total", **OF, outcome="promoted") == 1


def test_a_superseded_rollout_is_counted_once() -> None:
    """Its entry in the timeline is counted when it is new."""
    entry = TimelineEntry(START, "Superseded", "a newer spec")
    over = replace(CANARY, timeline=(entry,))
    told = Told().tell(CANARY, over, over)
    assert told.value("cuvil_operator_rollouts_total", **OF, outcome="superseded") == 1


def test_gauges_follow_the_status() -> None:
    """Weights, phase and quarantine are as of now; what no longer is has no series."""
    entry = QuarantineEntry("b" * 12, "LatencyBreached", "", START)
    told = Told().tell(CANARY, CANARY)
    canary = {**OF, "revision": "b" * 12, "role": "canary"}
    assert told.value("cuvil_model_weight", **canary) == 10
    assert told.value("cuvil_model_phase", **OF, phase="Progressing") == 1
    told.tell(CANARY, replace(AT_REST, quarantine=(entry,)))
    assert told.value("cuvil_model_weight", **canary) is None
    assert told.value("cuvil_model_weight", **OF, revision="a" * 12, role="stable") == 100
    assert told.value("cuvil_model_phase", **OF, phase="Progressing") is None
    assert told.value("cuvil_model_quarantined", **OF, revision="b" * 12, reason="LatencyBreached") == 1
    told.told.forget(KEY)
    assert told.value("cuvil_model_phase", **OF, phase="Stable") is None
