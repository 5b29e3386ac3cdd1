"""The facts that the controller's rooms hand to each other.

Holds: Observed (what is), Action (what to do), Decision (what was decided and why), Outcome (how it went),
RevisionRecord (what a revision's immutable ConfigMap says): frozen, without logic.
Takes nothing and gives types. Must not decide, render or reach the network.

Actions are levels, not edges: each turn lists all that should be; act writes only what differs from what is there.
"""

from cuvil_operator.facts.actions import (
    Action,
    DeleteJob,
    DeleteRevision,
    DeleteWorkload,
    DisownJob,
    EmitEvent,
    EnsureMonitoring,
    EnsureRevision,
    EnsureRouting,
    EnsureWorkload,
    RunCompile,
    RunResolve,
    RunValidate,
)
from cuvil_operator.facts.decision import Decision, Outcome, OutcomeKind, Said
from cuvil_operator.facts.key import ModelKey
from cuvil_operator.facts.observed import (
    GpuNodes,
    JobPhase,
    JobSeen,
    Observed,
    Platform,
    RouteSeen,
    Samples,
    WorkloadSeen,
)
from cuvil_operator.facts.record import Images, RevisionRecord, ServingRecord

__all__ = [
    "Action",
    "Decision",
    "DeleteJob",
    "DeleteRevision",
    "DeleteWorkload",
    "DisownJob",
    "EmitEvent",
    "EnsureMonitoring",
    "EnsureRevision",
    "EnsureRouting",
    "EnsureWorkload",
    "GpuNodes",
    "Images",
    "JobPhase",
    "JobSeen",
    "ModelKey",
    "Observed",
    "Outcome",
    "OutcomeKind",
    "Platform",
    "RevisionRecord",
    "RouteSeen",
    "RunCompile",
    "RunResolve",
    "RunValidate",
    "Said",
    "Samples",
    "ServingRecord",
    "WorkloadSeen",
]
