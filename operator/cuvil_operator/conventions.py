"""Names that rules, dashboards, charts and tests share: kinds, labels, reasons, phases, metric names.

A name is written here once; a reason constant is the same word in a condition, an Event, a log line and a metric.
"""

from enum import Enum, StrEnum

GROUP = "cuvil.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "CuvilModel"
PLURAL = "cuvilmodels"
FIELD_MANAGER = "cuvil-operator"

NAME_LIMIT = 40
"""Greatest length of a CuvilModel's name: `NAME-validate-xxxxxxxxxxxx` must fit a label value (63)."""
REVISION_DIGITS = 12
KEY_DIGITS = 12
"""Hex digits of a compile, resolve or validation key that stand in names and labels."""

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_NAME = "app.kubernetes.io/name"
LABEL_INSTANCE = "app.kubernetes.io/instance"
LABEL_MODEL = f"{GROUP}/model"
LABEL_REVISION = f"{GROUP}/revision"
LABEL_STAGE = f"{GROUP}/stage"
"""Of Jobs: resolve, compile, validate. Of the immutable ConfigMaps: revision."""
LABEL_KEY = f"{GROUP}/key"
"""First KEY_DIGITS of the key of a Job, or of the compile key of a ConfigMap."""
MANAGED_BY = "cuvil-operator"
APP_NAME = "cuvil"

ANNOTATION_COMMAND = f"{GROUP}/command"
"""`VERB@REVISION#NONCE`, written by people and tools, read by the operator, echoed in status.lastCommand."""
ANNOTATION_KEY = f"{GROUP}/full-key"
"""The whole key of a Job, of which the label holds the head."""
ANNOTATION_RESTARTED_AT = f"{GROUP}/restarted-at"

RECORD_KEY = "revision.json"
"""Key of a revision's ConfigMap: RevisionRecord as JSON."""
SERVING_KEY = "serving.json"
"""Key of a revision's ConfigMap: ServingSettings as JSON."""

CONTAINER_PORT = 8080
SERVICE_PORT = 80


class Stage(StrEnum):
    """What a Job does."""

    RESOLVE = "resolve"
    COMPILE = "compile"
    VALIDATE = "validate"


STAGE_REVISION = "revision"
"""LABEL_STAGE of a revision's ConfigMap."""


def revision_name(model: str, revision: str) -> str:
    """Give the name of everything that belongs to one revision: ConfigMap, Deployment, Service, PodDisruptionBudget."""
    return f"{model}-{revision}"


def job_name(stage: Stage, model: str, key: str) -> str:
    """Give a Job's name; a compile Job is the namespace's, so that equal keys meet in one Job."""
    head = key[:KEY_DIGITS]
    return f"cuvil-compile-{head}" if stage is Stage.COMPILE else f"{model}-{stage.value}-{head}"


class Phase(StrEnum):
    """Where a CuvilModel stands, in one word for `kubectl get`."""

    PENDING = "Pending"
    RESOLVING = "Resolving"
    COMPILING = "Compiling"
    VALIDATING = "Validating"
    DEPLOYING = "Deploying"
    """The first revision: all replicas become ready, then it takes all traffic."""
    PROGRESSING = "Progressing"
    """A canary is under way."""
    PAUSED = "Paused"
    PROMOTING = "Promoting"
    STABLE = "Stable"
    ROLLING_BACK = "RollingBack"
    ROLLED_BACK = "RolledBack"
    """Stable serves; the spec asks for a quarantined revision."""
    SUSPENDED = "Suspended"
    BLOCKED = "Blocked"
    """Only a change of the spec (or a command) helps; stable is untouched."""
    STALLED = "Stalled"
    """Something outside must come back: nodes, Prometheus, registry, traffic; goes on by itself then."""
    DELETING = "Deleting"


class ConditionType(StrEnum):
    """The conditions of a CuvilModel, in the order in which status lists them."""

    READY = "Ready"
    COMPILED = "Compiled"
    VALIDATED = "Validated"
    PROGRESSING = "Progressing"
    ANALYSIS = "Analysis"
    ROLLED_BACK = "RolledBack"
    STALLED = "Stalled"


class Reason(StrEnum):
    """Why; the constant beside every message."""

    # the way to a proved revision
    RESOLVING = "Resolving"
    RESOLVED = "Resolved"
    COMPILING = "Compiling"
    COMPILED = "Compiled"
    VALIDATING = "Validating"
    VALIDATED = "Validated"
    WAITING_FOR_NODE = "WaitingForNode"
    RECORDING_REVISION = "RecordingRevision"
    RETRY_LATER = "RetryLater"
    RETRYING = "Retrying"
    # how a Job ended; one for each exit code
    BAD_COMMAND = "BadCommand"
    BAD_MODEL = "BadModel"
    UNSUPPORTED_OP = "UnsupportedOp"
    WRONG_NUMBERS = "WrongNumbers"
    TOO_SLOW = "TooSlow"
    TOO_LARGE = "TooLarge"
    TIMEOUT = "Timeout"
    BAD_ARTIFACT = "BadArtifact"
    UNSUPPORTED_TARGET = "UnsupportedTarget"
    DIGEST_MISMATCH = "DigestMismatch"
    NOT_FOUND = "NotFound"
    INFRASTRUCTURE = "Infrastructure"
    INTERNAL = "Internal"
    # rollout
    INVALID_SPEC = "InvalidSpec"
    WEIGHT_UNREACHABLE = "WeightUnreachable"
    FIRST_DEPLOY = "FirstDeploy"
    WAITING_FOR_PODS = "WaitingForPods"
    SETTING_WEIGHTS = "SettingWeights"
    CANARY_STARTED = "CanaryStarted"
    STEP_HOLDING = "StepHolding"
    STEP_REACHED = "StepReached"
    STEP_PASSED = "StepPassed"
    PAUSED = "Paused"
    PROMOTING = "Promoting"
    PROMOTED = "Promoted"
    UP_TO_DATE = "UpToDate"
    SUPERSEDED = "Superseded"
    REVERTED = "Reverted"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    ACT_FAILED = "ActFailed"
    # analysis
    WITHIN_OBJECTIVES = "WithinObjectives"
    NOT_ENOUGH_REQUESTS = "NotEnoughRequests"
    UNDECIDED = "Undecided"
    ERROR_RATE_BREACHED = "ErrorRateBreached"
    LATENCY_BREACHED = "LatencyBreached"
    NO_DATA = "NoData"
    NO_DATA_TOO_LONG = "NoDataTooLong"
    SOURCE_UNREACHABLE = "SourceUnreachable"
    SOURCE_TIMEOUT = "SourceTimeout"
    SOURCE_ERROR = "SourceError"
    SOURCE_MALFORMED = "SourceMalformed"
    BAD_QUERY = "BadQuery"
    NOT_A_NUMBER = "NotANumber"
    UNUSABLE_SERIES = "UnusableSeries"
    # rollback
    STABLE_CAPACITY_FIRST = "StableCapacityFirst"
    WEIGHT_TO_ZERO = "WeightToZero"
    CANARY_DOWN = "CanaryDown"
    ROLLED_BACK = "RolledBack"
    QUARANTINED = "Quarantined"
    CANARY_CRASHED = "CanaryCrashed"
    ABORTED = "Aborted"
    # commands
    COMMAND_DONE = "CommandDone"
    COMMAND_REFUSED = "CommandRefused"
    COMMAND_NO_OP = "CommandNoOp"
    COMMAND_MALFORMED = "CommandMalformed"


class Verb(StrEnum):
    """What people may order by the command annotation."""

    PROMOTE = "promote"
    PROMOTE_FULL = "promote-full"
    ABORT = "abort"
    RETRY = "retry"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    CLEAR_QUARANTINE = "clear-quarantine"


class Gate(StrEnum):
    """What a canary is judged by; the name in status.analysis.gates."""

    ERROR_RATE = "errorRate"
    LATENCY = "latency"


class Metric(StrEnum):
    """Time series that the controller writes; those of serving pods are the contract's ServingMetric."""

    MODEL_WEIGHT = "cuvil_model_weight"
    """Gauge {namespace, model, revision, role}: actual share of the traffic, percent."""
    MODEL_PHASE = "cuvil_model_phase"
    """Gauge {namespace, model, phase}: 1 for the present phase."""
    MODEL_QUARANTINED = "cuvil_model_quarantined"
    """Gauge {namespace, model, revision, reason}: 1 while the revision is quarantined."""
    ROLLBACKS = "cuvil_operator_rollbacks_total"
    """Counter {namespace, model, reason}."""
    ROLLOUTS = "cuvil_operator_rollouts_total"
    """Counter {namespace, model, outcome}: promoted, rolled_back, superseded."""
    DETECTION = "cuvil_operator_detection_seconds"
    """Histogram: from the samples that crossed the bound to weight 0."""
    RECONCILE = "cuvil_operator_reconcile_seconds"
    WRITES = "cuvil_operator_api_writes_total"
    QUEUE_DEPTH = "cuvil_operator_queue_depth"
    LEADER = "cuvil_operator_leader"
    WATCH_LAG = "cuvil_operator_watch_lag_seconds"
    INFO = "cuvil_operator_info"


class EventKind(Enum):
    """TYPE of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


GPU_RESOURCES = {"cuda": "nvidia.com/gpu", "rocm": "amd.com/gpu"}
"""Family of a target (text before the first `-`) → resource that a node must advertise."""


def gpu_resource(target: str) -> str | None:
    """Give the extended resource that a target needs, None for CPU targets."""
    return GPU_RESOURCES.get(target.partition("-")[0])
