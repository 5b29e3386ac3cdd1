"""All that the controller can do, as data."""

from dataclasses import dataclass
from datetime import datetime

from cuvil_operator.conventions import EventKind, Reason
from cuvil_operator.facts.record import RevisionRecord


@dataclass(frozen=True, slots=True)
class RunResolve:
    """Have a Job `job_name(Stage.RESOLVE, model, key)` that finds the sha256 behind spec.model.uri."""

    key: str


@dataclass(frozen=True, slots=True)
class RunCompile:
    """Have the namespace's one compile Job of this key, owned by this model besides its other owners.

    act adds this model to the ownerReferences of a Job that is there already and leaves the others in.
    """

    key: str
    model_sha256: str
    """64 hex digits."""
    image: str
    gpu_resource: str | None = None
    """Extended resource that the pod asks one of."""


@dataclass(frozen=True, slots=True)
class RunValidate:
    """Have a Job that proves an artifact on the serving node type."""

    key: str
    model_sha256: str
    artifact: str
    """OCI reference by digest."""
    artifact_sha256: str
    image: str
    """The compiler image, which holds the reference interpreter."""
    baseline: str | None = None
    """Reference of the stable artifact, where it was made from the same model: at most 1.05 times its time."""
    baseline_sha256: str | None = None
    gpu_resource: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a Job of exactly this uid with its pods; nobody else owns it."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DisownJob:
    """Take this model out of the owners of a Job that others want."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EnsureRevision:
    """Have the immutable ConfigMap `NAME-REVISION`; one with other content is a CorruptError."""

    record: RevisionRecord


@dataclass(frozen=True, slots=True)
class DeleteRevision:
    """Delete the ConfigMap of a revision that is neither live nor in history."""

    revision: str


@dataclass(frozen=True, slots=True)
class EnsureWorkload:
    """Have Deployment, Service and PodDisruptionBudget `NAME-REVISION`."""

    record: RevisionRecord
    replicas: int
    restarted_at: datetime | None = None
    """Written into the pod template: a later time restarts the pods one by one."""


@dataclass(frozen=True, slots=True)
class DeleteWorkload:
    """Delete Deployment, Service and PodDisruptionBudget `NAME-REVISION`; the ConfigMap stays."""

    revision: str


@dataclass(frozen=True, slots=True)
class EnsureRouting:
    """Have the Service NAME and, with spec.rollout.traffic, the HTTPRoute NAME, with these weights.

    By pod count: one revision at 100 pins the Service's selector to it; two open the selector to both.
    """

    weights: tuple[tuple[str, int], ...]
    """(revision, percent) in order stable, canary; sums to 100; zero weights are left out."""


@dataclass(frozen=True, slots=True)
class EnsureMonitoring:
    """Have the PodMonitor and the PrometheusRule of the model, from spec.slo."""


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Tell of something that just happened; never repeated for the same decision."""

    kind: EventKind
    reason: Reason
    message: str


Action = (
    RunResolve
    | RunCompile
    | RunValidate
    | DeleteJob
    | DisownJob
    | EnsureRevision
    | DeleteRevision
    | EnsureWorkload
    | DeleteWorkload
    | EnsureRouting
    | EnsureMonitoring
    | EmitEvent
)
"""The closed set; act handles each by its type, in the order in which the decision lists them."""
