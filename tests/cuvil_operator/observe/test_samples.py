"""When Prometheus is asked, and what its answers become."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from cuvil_operator.api import AnalysisStatus, CuvilModelSpec, CuvilModelStatus, RevisionStatus, Rollback
from cuvil_operator.facts import ModelKey
from cuvil_operator.gateways.protocols import QueryAnswer, QueryFailure, Series, SourceFault
from cuvil_operator.observe.samples import is_due, read_samples
from cuvil_operator.promql import SourceState
from fake_clock import START, FakeClock

SPEC = CuvilModelSpec.from_dict(
    {
        "model": {"uri": "https://models.example/m.onnx"},
        "target": "x86_64-cpu",
        "slo": {"latency": {"threshold": "800ms"}},
        "rollout": {"analysis": {"interval": "10s"}},
    }
)
CANARY = CuvilModelStatus(stable=RevisionStatus("a" * 12), canary=RevisionStatus("b" * 12))
LAST = AnalysisStatus(verdict="Pass", reason="WithinObjectives", message="", revision="b" * 12, at=START)
ROLLBACK = Rollback(revision="b" * 12, stable="a" * 12, reason="LatencyBreached", message="", started_at=START)

DUE = {
    "no canary": (replace(CANARY, canary=None), 0, False),
    "never asked": (CANARY, 0, True),
    "asked a moment ago": (replace(CANARY, analysis=LAST), 5, False),
    "asked an interval ago": (replace(CANARY, analysis=LAST), 10, True),
    "half a second early": (replace(CANARY, analysis=LAST), 9.5, True),
    "asked about another canary": (replace(CANARY, analysis=replace(LAST, revision="c" * 12)), 1, True),
    "rolling back": (replace(CANARY, rollback=ROLLBACK), 60, False),
    "an old rollback": (replace(CANARY, rollback=replace(ROLLBACK, finished_at=START)), 60, True),
}


@pytest.mark.parametrize(("status", "seconds", "due"), DUE.values(), ids=DUE.keys())
def test_prometheus_is_asked_only_when_a_look_is_due(status: CuvilModelStatus, seconds: float, due: bool) -> None:
    """Once an interval, while a canary is under way and not rolling back."""
    assert is_due(status, SPEC, START + timedelta(seconds=seconds)) is due


class Source:
    """Gives one answer to everything, and keeps the limits it was given."""

    def __init__(self, fault: SourceFault | None = None) -> None:
        self.fault = fault
        self.limits: list[float | None] = []

    async def query(self, expression: str, timeout: float | None = None) -> QueryAnswer | QueryFailure:
        self.limits.append(timeout)
        if self.fault is not None:
            return QueryFailure(expression, self.fault, "no answer")
        if "bucket" in expression:
            pairs = (({"pod": "p", "le": "0.8"}, "90"), ({"pod": "p", "le": "+Inf"}, "100"))
        else:
            pairs = (({"pod": "p", "outcome": "ok"}, "97"), ({"pod": "p", "outcome": "error"}, "3"))
        return QueryAnswer(expression, tuple(Series(labels, 0.0, value) for labels, value in pairs))


def test_both_questions_become_counts() -> None:
    """Requests with errors, and answered requests with slow ones, each within half an interval."""
    source = Source()
    samples = asyncio.run(read_samples(source, FakeClock(), ModelKey("ns", "m"), "b" * 12, SPEC))
    assert [(one.requests, one.breaches) for one in samples.errors.pods] == [(100, 3)]
    assert [(one.requests, one.breaches) for one in samples.latency.pods] == [(100, 10)]
    assert source.limits == [5.0, 5.0]


@pytest.mark.parametrize("fault", SourceFault)
def test_each_fault_of_the_source_has_its_state(fault: SourceFault) -> None:
    """No fault of the gateway is lost or read as another on its way to the decision."""
    samples = asyncio.run(read_samples(Source(fault), FakeClock(), ModelKey("ns", "m"), "b" * 12, SPEC))
    assert samples.errors.state is samples.latency.state is SourceState(fault.value)
    assert samples.errors.pods == ()
