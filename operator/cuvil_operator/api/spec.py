"""What a user asks for: `spec` of a CuvilModel. Defaults here equal those of crds/cuvilmodel.yaml (a test compares)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from cuvil_operator.api import codec
from cuvil_operator.api.values import Days, Duration, Number, Percent


class Precision(Enum):
    """How exact the arithmetic is."""

    FP32_STRICT = "fp32_strict"
    FP32 = "fp32"


class ModelFormat(Enum):
    """What the model file is."""

    ONNX = "onnx"


class OnNoData(Enum):
    """What an interval without usable samples means for a canary."""

    HOLD = "Hold"
    FAIL = "Fail"
    PASS = "Pass"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A Secret of the model's own namespace."""

    name: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and greatest extent of a symbolic dim, both included."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A user's word on one input of the model."""

    name: str
    shape: tuple[int | str, ...]
    """A number for a fixed extent, a name for a symbolic one."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where the model file lies and what it is."""

    uri: str
    """http(s)://…, oci://HOST/REPO@sha256:… (or :tag), configmap://NAME/KEY."""
    secret_ref: SecretRef | None = None
    sha256: str | None = None
    """64 hex digits; without it the digest is resolved once a generation."""
    format: ModelFormat = ModelFormat.ONNX
    inputs: tuple[ModelInput, ...] = ()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How near the artifact's outputs must lie to the source model's."""

    rtol: Number = Decimal("1e-3")
    atol: Number = Decimal("1e-4")
    """Scaled by the output's magnitude."""
    golden_uri: str | None = None
    """An .npz of inputs; without it seeded inputs on which the outputs vary."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests and limits of one container, quantities as Kubernetes writes them."""

    requests: Mapping[str, int | str] = field(default_factory=dict)
    limits: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Toleration:
    """A node taint that pods may run under."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How and where the compile Job runs."""

    opt_level: int = 2
    timeout: Duration = timedelta(minutes=30)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class Serving:
    """How and where the model's pods run."""

    replicas: int = 1
    reject_non_finite: bool = False
    """Answer a request whose outputs hold NaN or Inf with an error."""
    service_account_name: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """`percentile` of the requests must be answered within `threshold`."""

    threshold: Duration
    percentile: int = 95


@dataclass(frozen=True, slots=True)
class Slo:
    """The one promise that drives alerts and the canary gate."""

    latency: LatencyObjective
    error_rate: Percent = Decimal("0.01")
    """Share of requests that may fail."""
    window: Days = timedelta(days=30)
    """Of the error budget."""


@dataclass(frozen=True, slots=True)
class Step:
    """A share of the traffic and how long the canary keeps it at least."""

    weight: int
    hold: Duration


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """How a canary is judged."""

    interval: Duration = timedelta(seconds=15)
    on_no_data: OnNoData = OnNoData.HOLD
    false_rollback: Percent = Decimal("0.01")
    """Greatest chance that a healthy canary is rolled back."""


@dataclass(frozen=True, slots=True)
class GatewayRef:
    """A Gateway that HTTPRoutes attach to."""

    name: str
    namespace: str | None = None
    """The model's own namespace when absent."""
    section_name: str | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Weights by an HTTPRoute."""

    gateway: GatewayRef
    hostnames: tuple[str, ...] = ()


# Reachable by pod count with one replica, so that the least spec is never refused (docs/decisions/0050).
DEFAULT_STEPS = (
    Step(25, timedelta(minutes=5)),
    Step(50, timedelta(minutes=5)),
)


@dataclass(frozen=True, slots=True)
class Rollout:
    """How a new revision takes over."""

    steps: tuple[Step, ...] = DEFAULT_STEPS
    """Ascending weights below 100; after the last one the revision takes everything."""
    analysis: AnalysisOptions = field(default_factory=AnalysisOptions)
    progress_deadline: Duration = timedelta(minutes=15)
    history_limit: int = 3
    allow_coarse_weights: bool = False
    """Without a gateway: accept steps that pod counts cannot reach within twice their weight."""
    traffic: Traffic | None = None
    """Absent: the split is by pod count behind one Service."""


@dataclass(frozen=True, slots=True)
class CuvilModelSpec:
    """The whole spec."""

    model: ModelSource
    target: str
    slo: Slo
    precision: Precision = Precision.FP32
    accuracy: Accuracy = field(default_factory=Accuracy)
    compile: CompileOptions = field(default_factory=CompileOptions)
    serving: Serving = field(default_factory=Serving)
    rollout: Rollout = field(default_factory=Rollout)
    suspend: bool = False
    """The operator leaves the model as it is until this is false again."""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "CuvilModelSpec":
        """Read `spec`; raises SpecError that names the path."""
        return codec.read(cls, raw, "spec")

    def to_dict(self) -> dict[str, Any]:
        """Give the dict that from_dict reads as an equal spec."""
        return codec.write(self)
