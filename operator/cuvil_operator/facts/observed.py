"""One frozen look at everything that a decision about one CuvilModel rests on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from cuvil_core.contract import Outcome as JobOutcome
from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus
from cuvil_operator.conventions import Stage
from cuvil_operator.facts.record import Images, RevisionRecord
from cuvil_operator.promql import Reading


class JobPhase(Enum):
    """How far a Job is."""

    PENDING = "Pending"
    """No pod runs yet."""
    RUNNING = "Running"
    FINISHING = "Finishing"
    """Its container has ended; Kubernetes has not said yet how the Job has."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A Job of this model's stages (compile Jobs: any of the namespace whose key the model may want)."""

    name: str
    uid: str
    stage: Stage
    key: str
    """The whole key, from ANNOTATION_KEY."""
    phase: JobPhase
    owners: tuple[str, ...] = ()
    """uids of the CuvilModels in its ownerReferences."""
    created_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    """Of the container; None where no container ended (a lost pod)."""
    oom_killed: bool = False
    deadline_exceeded: bool = False
    """The Job's activeDeadlineSeconds passed."""
    outcome: JobOutcome | None = None
    """The termination message; None where there is none or it cannot be read."""
    waiting: str = ""
    """Why its pod does not run: the scheduler's or the kubelet's sentence."""
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadSeen:
    """The Deployment of one revision."""

    revision: str
    replicas: int
    """Wanted by its spec."""
    ready: int
    """Pods of the newest template that are ready."""
    pods: int
    """All pods that still exist, terminating ones included."""
    crashing: bool = False
    """A pod is in CrashLoopBackOff."""
    message: str = ""
    """Why pods are not ready, one sentence."""


@dataclass(frozen=True, slots=True)
class RouteSeen:
    """Where traffic goes now: the HTTPRoute's weights, or the Service's selector and the ready pods behind it."""

    exists: bool = False
    weights: Mapping[str, int] = field(default_factory=dict)
    """Revision → percent; sums to 100 when anything serves. By pod count: shares of ready pods, rounded."""
    accepted: bool = True
    """False where the Gateway refuses the route."""
    message: str = ""
    open: bool = False
    """By pod count: the Service selects all revisions, not one."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What Prometheus says of one revision."""

    errors: Reading
    latency: Reading


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """Extended resource → number of ready, schedulable nodes that advertise it."""

    by_resource: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Platform:
    """What the operator's settings add to a spec."""

    images: Images
    repository: str
    """`HOST/REPOSITORY` that compile Jobs push to."""
    insecure_registry: bool = False
    max_model_bytes: int = 2 << 30
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that models may come from; empty allows all."""
    share_across_namespaces: bool = False
    registry_secret: str = ""
    """Name of a `kubernetes.io/dockerconfigjson` Secret in each namespace with models; empty: none is mounted."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The world as of `now`, for one CuvilModel."""

    now: datetime
    """UTC, aware."""
    name: str
    namespace: str
    uid: str
    generation: int
    spec: CuvilModelSpec | None
    """None where it cannot be read; spec_error says why."""
    status: CuvilModelStatus
    platform: Platform
    deleting: bool = False
    spec_error: str = ""
    command: str = ""
    """The raw text of ANNOTATION_COMMAND."""
    jobs: tuple[JobSeen, ...] = ()
    records: tuple[RevisionRecord, ...] = ()
    """From this model's own revision ConfigMaps."""
    siblings: tuple[RevisionRecord, ...] = ()
    """From other models' revision ConfigMaps in the namespace: an artifact of an equal compile key is not made anew."""
    workloads: tuple[WorkloadSeen, ...] = ()
    route: RouteSeen = field(default_factory=RouteSeen)
    canary_samples: Samples | None = None
    """Asked for while status names a canary."""
    nodes: GpuNodes = field(default_factory=GpuNodes)
