"""The CuvilModel as types.

Holds: frozen dataclasses of spec and status, and the exact values that their texts stand for.
Takes dicts of the Kubernetes API and gives dataclasses, and the way back; every fault is a SpecError that names the
path and the cure. Must not decide, render, or know any other room.
"""

from cuvil_operator.api.codec import SpecError
from cuvil_operator.api.model import CuvilModel
from cuvil_operator.api.spec import (
    Accuracy,
    AnalysisOptions,
    Bounds,
    CompileOptions,
    CuvilModelSpec,
    GatewayRef,
    LatencyObjective,
    ModelFormat,
    ModelInput,
    ModelSource,
    OnNoData,
    Precision,
    Resources,
    Rollout,
    SecretRef,
    Serving,
    Slo,
    Step,
    Toleration,
    Traffic,
)
from cuvil_operator.api.status import (
    AnalysisStatus,
    Condition,
    CounterSample,
    CuvilModelStatus,
    GateStatus,
    HistoryEntry,
    LastCommand,
    QuarantineEntry,
    Retry,
    RevisionStatus,
    Rollback,
    StepStatus,
    TimelineEntry,
)

__all__ = [
    "Accuracy",
    "AnalysisOptions",
    "AnalysisStatus",
    "Bounds",
    "CompileOptions",
    "Condition",
    "CounterSample",
    "CuvilModel",
    "CuvilModelSpec",
    "CuvilModelStatus",
    "GateStatus",
    "GatewayRef",
    "HistoryEntry",
    "LastCommand",
    "LatencyObjective",
    "ModelFormat",
    "ModelInput",
    "ModelSource",
    "OnNoData",
    "Precision",
    "QuarantineEntry",
    "Resources",
    "Retry",
    "RevisionStatus",
    "Rollback",
    "Rollout",
    "SecretRef",
    "Serving",
    "Slo",
    "SpecError",
    "Step",
    "StepStatus",
    "TimelineEntry",
    "Toleration",
    "Traffic",
]
