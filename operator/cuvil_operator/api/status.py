"""What the operator says of a CuvilModel: `status`. What must outlive the controller is here or in owned objects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuvil_operator.api import codec
from cuvil_operator.api.values import Time


@dataclass(frozen=True, slots=True)
class Condition:
    """One fact by type (Ready, Compiled, Validated, Progressing, Analysis, RolledBack, Stalled)."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str
    """CamelCase constant."""
    message: str
    last_transition_time: Time
    observed_generation: int | None = None


@dataclass(frozen=True, slots=True)
class RevisionStatus:
    """A revision that runs or is about to."""

    revision: str
    """12 hex digits."""
    weight: int = 0
    """Actual share of the traffic, percent."""
    replicas: int = 0
    ready_replicas: int = 0
    artifact: str | None = None
    """`HOST/REPOSITORY@sha256:…` in the store."""
    artifact_sha256: str | None = None
    model_sha256: str | None = None
    compile_key: str | None = None
    validation_key: str | None = None
    since: Time | None = None
    """When it took this role."""
    restarted_at: Time | None = None
    """Of the last `restart` command; stands in the pod template."""


@dataclass(frozen=True, slots=True)
class StepStatus:
    """Where the canary stands."""

    index: int
    """0-based, into rollout.steps."""
    total: int
    weight: int
    """Wanted share, percent."""
    entered_at: Time | None = None
    """When this step became the wanted one: the progress deadline runs from here until started_at."""
    started_at: Time | None = None
    """When the wanted weight was actual."""
    display: str | None = None
    """`2/3`, for kubectl."""


@dataclass(frozen=True, slots=True)
class CounterSample:
    """The last counters seen of one pod, from which the next interval's difference is taken."""

    pod: str
    requests: int
    breaches: int
    at: Time


@dataclass(frozen=True, slots=True)
class GateStatus:
    """What one gate has seen of the canary since the rollout began."""

    name: str
    """errorRate or latency."""
    verdict: str
    """Pass, Fail, NotEnough or Hold."""
    requests: int = 0
    breaches: int = 0
    limit: str | None = None
    """The share of breaches that the SLO allows, decimal."""
    bound: str | None = None
    """One-sided lower confidence bound of the true share, decimal; above the limit means Fail."""
    confidence: str | None = None
    """Chance of a false Fail that this gate may use up, decimal."""
    threshold: str | None = None
    """Of latency: the duration that a breach exceeds."""
    query: str | None = None
    """As sent to Prometheus."""
    reason: str | None = None
    message: str | None = None
    counters: tuple[CounterSample, ...] = ()


@dataclass(frozen=True, slots=True)
class AnalysisStatus:
    """The last verdict on the canary."""

    verdict: str
    reason: str
    message: str
    revision: str
    at: Time
    """Time of the evaluation."""
    since: Time | None = None
    """Start of the evidence."""
    hold_since: Time | None = None
    """Start of the present run of Holds."""
    gates: tuple[GateStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened."""

    at: Time
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """The dossier of the last rollback."""

    revision: str
    """Rolled back."""
    reason: str
    message: str
    started_at: Time
    stable: str | None = None
    """Rolled back to; none when the first revision failed."""
    gate: GateStatus | None = None
    crossed_at: Time | None = None
    """Scrape time of the samples that first crossed the bound."""
    weight_zero_at: Time | None = None
    finished_at: Time | None = None
    timeline: tuple[TimelineEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A revision that was promoted; its ConfigMap and artifact are kept."""

    revision: str
    promoted_at: Time
    artifact: str | None = None
    artifact_sha256: str | None = None
    model_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """A revision, or an artifact, that is not tried again until someone clears it."""

    revision: str
    reason: str
    message: str
    at: Time
    artifact_sha256: str | None = None
    """Set when the fault is the artifact's own: every revision with it is refused."""
    bound: str | None = None
    """Of wrong numbers: the accuracy that was asked for; under another one the artifact may be tried."""


@dataclass(frozen=True, slots=True)
class LastCommand:
    """Echo of the annotation `cuvil.dev/command`, so that it is not replayed."""

    text: str
    """`VERB@REVISION#NONCE` as read."""
    outcome: str
    """Done, Refused or NoOp."""
    message: str
    at: Time


@dataclass(frozen=True, slots=True)
class Retry:
    """A Job that ended for want of infrastructure and is tried again later."""

    job: str
    attempts: int
    next_at: Time
    uid: str | None = None
    """Of the failed Job that was counted last."""
    message: str | None = None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class CuvilModelStatus:
    """The whole status."""

    observed_generation: int | None = None
    phase: str | None = None
    revision: str | None = None
    """That the present spec stands for, once known."""
    weight: int | None = None
    """Actual share of the canary, percent."""
    message: str | None = None
    model_digest: str | None = None
    """sha256 of the model file of `resolvedGeneration`."""
    resolved_generation: int | None = None
    paused: bool | None = None
    retried_at: Time | None = None
    """Of the last `retry` command: Jobs that failed before it are made anew."""
    stable: RevisionStatus | None = None
    canary: RevisionStatus | None = None
    step: StepStatus | None = None
    analysis: AnalysisStatus | None = None
    rollback: Rollback | None = None
    retry: Retry | None = None
    last_command: LastCommand | None = None
    conditions: tuple[Condition, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    """Newest first."""
    quarantine: tuple[QuarantineEntry, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    """Of the present rollout, oldest first."""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "CuvilModelStatus":
        """Read `status`; unknown keys are left alone. Raises SpecError that names the path."""
        return codec.read(cls, raw, "status", strict=False)

    def to_dict(self) -> dict[str, Any]:
        """Give the dict that from_dict reads as an equal status, without nulls and empty lists."""
        return codec.write(self)
