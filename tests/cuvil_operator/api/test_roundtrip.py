"""Spec and status: dict → dataclass → dict, and the sentences of what cannot be read."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuvil_operator.api import (
    AnalysisStatus,
    Bounds,
    Condition,
    CounterSample,
    CuvilModel,
    CuvilModelSpec,
    CuvilModelStatus,
    GateStatus,
    HistoryEntry,
    LastCommand,
    QuarantineEntry,
    Retry,
    RevisionStatus,
    Rollback,
    SpecError,
    Step,
    StepStatus,
    TimelineEntry,
)
from cuvil_operator.api.values import (
    format_decimal,
    format_duration,
    format_percent,
    parse_decimal,
    parse_duration,
    parse_percent,
)

NOON = datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=UTC)
LEAST = {
    "model": {"uri": "https://models.example.com/a.onnx"},
    "target": "x86_64-cpu",
    "slo": {"latency": {"threshold": "800ms"}},
}
FULL = {
    "model": {
        "uri": "oci://registry.example.com/models/a@sha256:" + "a" * 64,
        "secretRef": {"name": "models-reader"},
        "sha256": "b" * 64,
        "format": "onnx",
        "inputs": [{"name": "x", "shape": ["N", 3, 224, 224], "bounds": {"N": {"min": 1, "max": 32}}}],
    },
    "target": "x86_64-cpu",
    "precision": "fp32_strict",
    "accuracy": {"rtol": "2e-3", "atol": "1e-7", "goldenUri": "https://models.example.com/golden.npz"},
    "compile": {
        "optLevel": 3,
        "timeout": "1h30m",
        "nodeSelector": {"pool": "build"},
        "tolerations": [{"key": "build", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
        "resources": {"requests": {"cpu": 2, "memory": "4Gi"}, "limits": {"memory": "4Gi"}},
    },
    "serving": {
        "replicas": 2,
        "rejectNonFinite": True,
        "serviceAccountName": "vision",
        "nodeSelector": {"pool": "serve"},
        "tolerations": [{"operator": "Exists"}],
        "resources": {"requests": {"cpu": "500m"}},
    },
    "slo": {"errorRate": "0.5%", "latency": {"percentile": 99, "threshold": "250ms"}, "window": "28d"},
    "rollout": {
        "steps": [{"weight": 10, "hold": "30s"}, {"weight": 60, "hold": "1m"}],
        "analysis": {"interval": "5s", "onNoData": "Fail", "falseRollback": "0.1%"},
        "progressDeadline": "10m",
        "historyLimit": 5,
        "allowCoarseWeights": True,
        "traffic": {
            "gateway": {"name": "public", "namespace": "infra", "sectionName": "web"},
            "hostnames": ["a.example.com"],
        },
    },
    "suspend": True,
}
GATE = GateStatus(
    "latency",
    "Fail",
    900,
    81,
    "0.05",
    "0.071",
    "0.005",
    "800ms",
    "sum(x)",
    "BoundCrossed",
    "9 % took longer",
    (CounterSample("a-0", 10, 1, NOON),),
)
STATUS = CuvilModelStatus(
    observed_generation=3,
    phase="RollingBack",
    revision="0123456789ab",
    weight=25,
    message="rolled back",
    model_digest="c" * 64,
    resolved_generation=3,
    paused=False,
    stable=RevisionStatus("ba9876543210", 75, 2, 2, "r/x@sha256:1", "d" * 64, since=NOON),
    canary=RevisionStatus("0123456789ab", 25),
    step=StepStatus(1, 3, 25, entered_at=NOON, started_at=NOON, display="2/3"),
    analysis=AnalysisStatus("Fail", "BoundCrossed", "p95", "0123456789ab", NOON, NOON, None, (GATE,)),
    rollback=Rollback(
        revision="0123456789ab",
        stable="ba9876543210",
        reason="BoundCrossed",
        message="p95",
        started_at=NOON,
        gate=GATE,
        crossed_at=NOON,
        weight_zero_at=NOON,
        finished_at=NOON,
        timeline=(TimelineEntry(NOON, "WeightSet", "0 %"),),
    ),
    retry=Retry("a-compile-1", 2, NOON, "uid-1", "no answer"),
    last_command=LastCommand("promote@0123456789ab#1", "Done", "promoted", NOON),
    conditions=(Condition("Ready", "True", "Serving", "2 of 2 pods", NOON, 3),),
    history=(HistoryEntry("ba9876543210", NOON, "r/x@sha256:1"),),
    quarantine=(QuarantineEntry("0123456789ab", "BoundCrossed", "p95", NOON, "e" * 64),),
    timeline=(TimelineEntry(NOON, "StepStarted", "25 %"),),
)


def test_least_spec_takes_the_defaults() -> None:
    """A spec of three fields reads with every default filled in."""
    spec = CuvilModelSpec.from_dict(LEAST)
    assert spec.slo.error_rate == Decimal("0.01") and spec.slo.latency.percentile == 95
    assert spec.rollout.steps[0] == Step(25, timedelta(minutes=5))
    assert spec.rollout.analysis.interval == timedelta(seconds=15)


def test_full_spec_round_trips() -> None:
    """A spec with every field set comes back as the same dict, so no field is lost in between."""
    spec = CuvilModelSpec.from_dict(FULL)
    assert spec.to_dict() == FULL
    assert spec.model.inputs[0].bounds == {"N": Bounds(1, 32)}
    assert spec.slo.error_rate == Decimal("0.005")


def test_full_status_round_trips() -> None:
    """A status with every field set survives the way to the API server and back."""
    assert CuvilModelStatus.from_dict(STATUS.to_dict()) == STATUS


def test_status_of_a_newer_operator_is_readable() -> None:
    """Unknown status keys are left alone, so that a downgrade does not stop every model."""
    assert CuvilModelStatus.from_dict({"phase": "Ready", "ofTheFuture": 1}).phase == "Ready"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": None}, "spec.target: is missing; set it"),
        ({"colour": "red"}, "spec.colour: no such field; spec has model, target,"),
        ({"serving": {"replicas": True}}, "spec.serving.replicas: expected int, found bool True"),
        ({"slo": {"latency": {"threshold": "0.8s"}}}, "spec.slo.latency.threshold: '0.8s' is no duration; write"),
        ({"slo": {"latency": {"threshold": "1s"}, "errorRate": "100%"}}, "spec.slo.errorRate: '100%' is no percent"),
        ({"precision": "int4"}, "spec.precision: 'int4' is none of fp32_strict, fp32; take one of them"),
        ({"rollout": {"steps": [{"weight": 5}]}}, "spec.rollout.steps[0].hold: is missing; set it"),
        ({"model": "a.onnx"}, "spec.model: expected an object, found str"),
        ({"accuracy": {"rtol": "a bit"}}, "spec.accuracy.rtol: 'a bit' is no decimal; write"),
    ],
)
def test_what_cannot_be_read_is_named(change: dict[str, object], sentence: str) -> None:
    """Each fault names the path, what was found and the cure."""
    with pytest.raises(SpecError) as fault:
        CuvilModelSpec.from_dict({**LEAST, **change})
    assert sentence in str(fault.value)


def test_model_reads_identity() -> None:
    """The object's metadata becomes the model's identity; a deleted one carries the moment."""
    meta = {
        "name": "a",
        "namespace": "vision",
        "uid": "1",
        "generation": 4,
        "resourceVersion": "77",
        "annotations": {"cuvil.dev/command": "abort@x#1"},
        "deletionTimestamp": "2026-01-31T12:00:00Z",
    }
    model = CuvilModel.from_dict({"metadata": meta, "spec": LEAST})
    assert (model.name, model.generation, model.resource_version) == ("a", 4, "77")
    assert model.deleted_at == NOON.replace(microsecond=0)
    with pytest.raises(SpecError, match=r"metadata\.uid: is missing"):
        CuvilModel.from_dict({"metadata": {"name": "a", "namespace": "b"}, "spec": LEAST})


@given(st.integers(0, 999_999))
def test_percents_are_exact(parts: int) -> None:
    """Every percent of four decimals reads as an exact share and comes back as an equal text."""
    share = Decimal(parts).scaleb(-6)
    assert parse_percent(format_percent(share)) == share


@given(st.integers(0, 99_999 * 3_600_000))
def test_durations_are_exact(ms: int) -> None:
    """Every whole number of milliseconds reads back exactly."""
    span = timedelta(milliseconds=ms)
    assert parse_duration(format_duration(span)) == span


@given(st.integers(1, 999_999), st.integers(-9, 0))
def test_decimals_are_exact(digits: int, exponent: int) -> None:
    """Tolerances survive formatting without a float in between."""
    number = Decimal(digits).scaleb(exponent)
    assert parse_decimal(format_decimal(number)) == number
