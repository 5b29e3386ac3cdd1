"""One gate's judgement, and both gates' together, as tables keyed by sentence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus, RevisionStatus, StepStatus
from cuvil_operator.conventions import Gate, Phase, Reason
from cuvil_operator.decide import analysis
from cuvil_operator.decide.evidence import Evidence
from cuvil_operator.decide.look import Look
from cuvil_operator.decide.verdict import HOLD_REASONS, Verdict, judge, least_requests, reason_of
from cuvil_operator.facts import Images, Observed, Platform, Samples
from cuvil_operator.promql import PodCounts, Reading, SourceState

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
OK = Reading("q", SourceState.OK, NOON)
LIMIT, ALPHA = Decimal("0.01"), Decimal("0.005")

TABLE = {
    "no requests are not enough": (0, 0, Verdict.NOT_ENOUGH, Reason.NOT_ENOUGH_REQUESTS),
    "few good requests are not enough": (99, 0, Verdict.NOT_ENOUGH, Reason.NOT_ENOUGH_REQUESTS),
    "1/limit good requests pass": (100, 0, Verdict.PASS, Reason.WITHIN_OBJECTIVES),
    "a share exactly at the limit passes": (1000, 10, Verdict.PASS, Reason.WITHIN_OBJECTIVES),
    "a share just above the limit is undecided": (1000, 11, Verdict.NOT_ENOUGH, Reason.UNDECIDED),
    "one failed request of the first is not enough": (1, 1, Verdict.NOT_ENOUGH, Reason.NOT_ENOUGH_REQUESTS),
    "three failed of three refute 1%": (3, 3, Verdict.FAIL, Reason.ERROR_RATE_BREACHED),
    "ten times the limit is refuted": (100, 10, Verdict.FAIL, Reason.ERROR_RATE_BREACHED),
    "all failed": (50, 50, Verdict.FAIL, Reason.ERROR_RATE_BREACHED),
}


@pytest.mark.parametrize("sentence", TABLE)
def test_verdict(sentence: str) -> None:
    """The verdict and its reason follow from the counts alone."""
    requests, breaches, verdict, reason = TABLE[sentence]
    told = judge(Gate.ERROR_RATE, Evidence(requests, breaches), OK, LIMIT, ALPHA)
    assert (told.verdict, told.reason) == (verdict, reason)


@pytest.mark.parametrize("state", [one for one in SourceState if one is not SourceState.OK])
def test_every_fault_of_the_source_holds(state: SourceState) -> None:
    """No fault of the source is a pass or, by itself, a fail; each has its own reason."""
    told = judge(Gate.LATENCY, Evidence(5000, 0), Reading("q", state, NOON, "why"), LIMIT, ALPHA)
    assert (told.verdict, told.reason, told.message) == (Verdict.HOLD, HOLD_REASONS[state], "why")
    assert len(set(HOLD_REASONS.values())) == len(SourceState) - 1


def test_evidence_that_refutes_outlives_a_source_that_is_down() -> None:
    """A breach that was seen is not forgotten because nobody can look just now."""
    told = judge(Gate.ERROR_RATE, Evidence(50, 50), Reading("q", SourceState.TIMEOUT, NOON), LIMIT, ALPHA)
    assert told.verdict == Verdict.FAIL


def test_a_limit_of_zero_allows_no_breach() -> None:
    """One error refutes "no errors"; without one a thousand requests are needed."""
    assert judge(Gate.ERROR_RATE, Evidence(10, 1), OK, Decimal(0), ALPHA).verdict == Verdict.FAIL
    assert judge(Gate.ERROR_RATE, Evidence(999, 0), OK, Decimal(0), ALPHA).verdict == Verdict.NOT_ENOUGH
    assert judge(Gate.ERROR_RATE, Evidence(1000, 0), OK, Decimal(0), ALPHA).verdict == Verdict.PASS


def test_least_requests() -> None:
    """0.5% asks for 200 requests, 5% for 20."""
    assert (least_requests(Decimal("0.005")), least_requests(Decimal("0.05"))) == (200, 20)


def test_a_reason_of_another_version_is_undecided() -> None:
    """A status written by another version is read, not crashed on."""
    assert reason_of("SomethingNew") is Reason.UNDECIDED


def observed(samples: Samples | None, second: int = 0, status: CuvilModelStatus | None = None) -> Observed:
    """Give a canary at its first step."""
    known = status or CuvilModelStatus(
        stable=RevisionStatus("a" * 12),
        canary=RevisionStatus("b" * 12),
        step=StepStatus(0, 2, 10, entered_at=NOON, started_at=NOON),
    )
    platform = Platform(Images("c", "r"), "registry/x")
    now = NOON + timedelta(seconds=second)
    return Observed(now, "m", "ns", "u", 1, SPEC, known, platform, canary_samples=samples)


SPEC = CuvilModelSpec.from_dict(
    {
        "model": {"uri": "https://h/m.onnx", "sha256": "0" * 64},
        "target": "x86_64-cpu",
        "slo": {"errorRate": "1%", "latency": {"percentile": 95, "threshold": "800ms"}},
        "rollout": {"analysis": {"interval": "10s"}},
    }
)


def samples(errors: tuple[int, int], slow: tuple[int, int]) -> Samples:
    """Give counts of one pod."""
    return Samples(
        Reading("qe", SourceState.OK, NOON, pods=(PodCounts("p", *errors),)),
        Reading("ql", SourceState.OK, NOON, pods=(PodCounts("p", *slow),)),
    )


DOWN = Reading("q", SourceState.UNREACHABLE, NOON, "down")

WHOLE = {
    "both pass": (samples((500, 0), (500, 5)), Verdict.PASS),
    "errors fail": (samples((500, 50), (500, 0)), Verdict.FAIL),
    "latency fails: a quarter slower than the threshold": (samples((500, 0), (500, 125)), Verdict.FAIL),
    "six percent slow is undecided at p95": (samples((500, 0), (500, 30)), Verdict.NOT_ENOUGH),
    "one gate fails while the other's source is down": (
        replace(samples((500, 50), (0, 0)), latency=DOWN),
        Verdict.FAIL,
    ),
    "one gate passes while the other's source is down": (
        replace(samples((500, 0), (0, 0)), latency=DOWN),
        Verdict.HOLD,
    ),
    "one gate lacks requests": (samples((500, 0), (5, 0)), Verdict.NOT_ENOUGH),
    "Prometheus was not asked": (None, Verdict.HOLD),
}


@pytest.mark.parametrize("sentence", WHOLE)
def test_both_gates_together(sentence: str) -> None:
    """The gravest verdict leads: Fail, then Hold, then NotEnough, then Pass."""
    seen, verdict = WHOLE[sentence]
    told = analysis.look(observed(seen), SPEC)
    assert told is not None and told.verdict == verdict


def test_false_rollback_is_split_between_the_gates() -> None:
    """Each gate may use up half of falseRollback."""
    told = analysis.look(observed(samples((500, 0), (500, 0))), SPEC)
    assert told is not None
    assert [one.confidence for one in told.gates] == ["0.005", "0.005"]
    assert [one.limit for one in told.gates] == ["0.01", "0.05"]


def test_evidence_is_kept_over_looks_and_taken_once_an_interval() -> None:
    """A look within the interval changes nothing; the next one adds the difference."""
    first = analysis.look(observed(samples((50, 0), (50, 0))), SPEC)
    status = replace(observed(None).status, analysis=first)
    assert analysis.look(observed(samples((90, 0), (90, 0)), 5, status), SPEC) == first
    second = analysis.look(observed(samples((150, 1), (150, 0)), 10, status), SPEC)
    assert second is not None
    assert [(one.requests, one.breaches) for one in second.gates] == [(150, 1), (150, 0)]


def test_a_hold_keeps_its_start() -> None:
    """hold_since is the first of the present run of Holds, and goes away with it."""
    first = analysis.look(observed(Samples(DOWN, DOWN)), SPEC)
    status = replace(observed(None).status, analysis=first)
    second = analysis.look(observed(Samples(DOWN, DOWN), 10, status), SPEC)
    assert first is not None and second is not None
    assert second.hold_since == first.hold_since == NOON
    back = analysis.look(observed(samples((10, 0), (10, 0)), 20, replace(status, analysis=second)), SPEC)
    assert back is not None and back.hold_since is None


def test_a_fail_stays_a_fail() -> None:
    """After a refutation no later look changes the verdict: the record of the rollback must find it."""
    first = analysis.look(observed(samples((500, 50), (500, 0))), SPEC)
    status = replace(observed(None).status, analysis=first)
    assert analysis.look(observed(samples((90_000, 50), (90_000, 0)), 60, status), SPEC) == first


def test_evidence_of_another_canary_is_not_taken_over() -> None:
    """A new canary begins with no evidence."""
    first = analysis.look(observed(samples((500, 0), (500, 0))), SPEC)
    status = replace(observed(None).status, analysis=first, canary=RevisionStatus("c" * 12))
    second = analysis.look(observed(samples((7, 0), (7, 0)), 60, status), SPEC)
    assert second is not None and second.gates[0].requests == 7


def test_the_next_look_is_not_put_off_by_other_turns() -> None:
    """A turn between two looks, woken by an event, asks to be woken when the look is due, not an interval later."""
    first = analysis.look(observed(samples((50, 0), (50, 0))), SPEC)
    status = replace(observed(None).status, analysis=first)
    between = Look.at(observed(None, 7, status), SPEC)
    say = between.say("r", Phase.PROGRESSING, Reason.STEP_HOLDING, "m")
    assert say.requeue_after == timedelta(seconds=3)
    sooner = between.say("r", Phase.PROGRESSING, Reason.STEP_HOLDING, "m", after=timedelta(seconds=1))
    assert sooner.requeue_after == timedelta(seconds=1)
