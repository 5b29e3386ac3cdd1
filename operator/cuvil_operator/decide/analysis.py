"""The canary's analysis: both gates over one look, and what it means for the whole.

falseRollback is split evenly between the gates: by the union bound a healthy canary is rolled back with at most that
chance. Evidence is kept from the first traffic of a rollout to its end, over all steps.
"""

from datetime import datetime, timedelta
from decimal import Decimal

from cuvil_operator.api import AnalysisStatus, CuvilModelSpec, CuvilModelStatus, GateStatus
from cuvil_operator.conventions import Gate, Reason
from cuvil_operator.decide.evidence import Evidence, advance, baseline
from cuvil_operator.decide.verdict import Verdict, judge
from cuvil_operator.facts import Observed, Samples
from cuvil_operator.promql import Reading, SourceState

EARLY = timedelta(milliseconds=500)
"""A look this much before the interval's end counts as due: a timer that wakes a moment early must not skip a turn."""


def look(seen: Observed, spec: CuvilModelSpec) -> AnalysisStatus | None:
    """Give the analysis after this look: a new one when an interval has passed, else the one kept in status."""
    status = seen.status
    if status.canary is None or status.stable is None or _undone(status):
        return status.analysis
    before = status.analysis if status.analysis and status.analysis.revision == status.canary.revision else None
    if before and seen.now - before.at < spec.rollout.analysis.interval - EARLY:
        return before
    if before and before.verdict == Verdict.FAIL:
        return before
    gates = _gates(seen, spec, before, seen.canary_samples or _unasked(seen.now))
    return _whole(seen, before, gates)


def _undone(status: CuvilModelStatus) -> bool:
    return status.rollback is not None and status.rollback.finished_at is None


def _gates(
    seen: Observed, spec: CuvilModelSpec, before: AnalysisStatus | None, samples: Samples
) -> tuple[GateStatus, ...]:
    alpha = spec.rollout.analysis.false_rollback / 2
    latency = spec.slo.latency
    step = seen.status.step
    counted_none = before is None or all(one.requests == 0 for one in before.gates)
    untouched = step is None or (step.index == 0 and step.started_at is None and counted_none)

    def counted(gate: Gate, reading: Reading) -> Evidence:
        if untouched:
            return baseline(reading)
        return advance(_evidence(before, gate), reading)

    slow_limit = Decimal(100 - latency.percentile) / 100
    return (
        judge(Gate.ERROR_RATE, counted(Gate.ERROR_RATE, samples.errors), samples.errors, spec.slo.error_rate, alpha),
        judge(
            Gate.LATENCY,
            counted(Gate.LATENCY, samples.latency),
            samples.latency,
            slow_limit,
            alpha,
            latency.threshold,
        ),
    )


def _evidence(before: AnalysisStatus | None, gate: Gate) -> Evidence:
    kept = next((one for one in before.gates if one.name == gate), None) if before else None
    return Evidence(kept.requests, kept.breaches, kept.counters) if kept else Evidence()


def _whole(seen: Observed, before: AnalysisStatus | None, gates: tuple[GateStatus, ...]) -> AnalysisStatus:
    assert seen.status.canary is not None
    leading = next(one for verdict in _GRAVEST_FIRST for one in gates if one.verdict == verdict)
    held = leading.verdict == Verdict.HOLD
    return AnalysisStatus(
        verdict=leading.verdict,
        reason=leading.reason or Reason.UNDECIDED.value,
        message="; ".join(dict.fromkeys(one.message or "" for one in gates if one.verdict == leading.verdict)),
        revision=seen.status.canary.revision,
        at=seen.now,
        since=before.since if before and before.since else seen.now,
        hold_since=((before.hold_since if before else None) or seen.now) if held else None,
        gates=gates,
    )


_GRAVEST_FIRST = (Verdict.FAIL, Verdict.HOLD, Verdict.NOT_ENOUGH, Verdict.PASS)


def _unasked(now: datetime) -> Samples:
    nothing = Reading("", SourceState.NO_DATA, now, "Prometheus was not asked about this canary yet")
    return Samples(nothing, nothing)
