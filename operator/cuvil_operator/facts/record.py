"""What a revision is: the content of its immutable ConfigMap, enough to start it on an empty node at any time."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from cuvil_operator.api import Resources, Toleration


@dataclass(frozen=True, slots=True)
class Images:
    """Images by digest; part of a revision, so that an upgrade of the operator changes no running revision."""

    compiler: str
    runtime: str


@dataclass(frozen=True, slots=True)
class ServingRecord:
    """serving of the spec as it was proved, without replicas."""

    reject_non_finite: bool = False
    service_account_name: str | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class RevisionRecord:
    """One proved revision of one CuvilModel."""

    model: str
    """The CuvilModel's name."""
    revision: str
    """12 hex digits."""
    fingerprint: str
    """sha256 of all that a revision is, but for the images: equal fingerprints need no new compile."""
    target: str
    model_sha256: str
    compile_key: str
    validation_key: str
    artifact: str
    """`HOST/REPOSITORY@sha256:…` of the OCI manifest."""
    artifact_sha256: str
    artifact_size: int
    """Bytes of the artifact file."""
    threshold_seconds: float
    """The SLO's latency threshold: a bucket bound of the serving histogram."""
    images: Images
    serving: ServingRecord
    facts: dict[str, Any] = field(default_factory=dict)
    """Of the artifact's manifest and validation report: inputs, outputs, memory, p50, p90, worst output."""

    def to_json(self) -> str:
        """Give a canonical text: equal records give equal bytes."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "RevisionRecord":
        """Read a record; raises ValueError that says what is wrong."""
        try:
            raw = dict(json.loads(text))
            raw["images"] = Images(**raw["images"])
            raw["serving"] = _serving(dict(raw["serving"]))
            return cls(**raw)
        except (TypeError, KeyError, ValueError) as fault:
            raise ValueError(f"the revision record is not whole: {fault}") from fault


def _serving(raw: dict[str, Any]) -> ServingRecord:
    tolerations = tuple(Toleration(**one) for one in raw.pop("tolerations"))
    return ServingRecord(**raw | {"tolerations": tolerations, "resources": Resources(**raw["resources"])})
