"""What a serving pod reads from its revision's immutable ConfigMap (key `serving.json`)."""

import json
from dataclasses import MISSING, asdict, dataclass, fields

LONGEST = 10**10
"""Seconds."""


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """One model, one revision, one artifact."""

    model: str
    """The CuvilModel's name: the `{m}` of the Open Inference Protocol."""
    revision: str
    """12 hex digits: the `{v}` of the protocol and the `revision` label of every metric."""
    artifact: str
    """OCI reference by digest, or an absolute path."""
    sha256: str
    """Digest of the artifact file, checked before it is mapped."""
    threshold_seconds: float
    """The SLO's latency threshold: always one of the histogram's buckets."""
    reject_non_finite: bool = False
    queue: int = 64
    """Requests that may wait; one more is answered with 429."""
    max_artifact_bytes: int = 4 << 30
    insecure_registry: bool = False
    """Plain HTTP, for registries inside the cluster."""

    def to_json(self) -> str:
        """Give a canonical text."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ServingSettings":
        """Read settings; raises ValueError that says what is wrong."""
        raw = json.loads(text)
        if not isinstance(raw, dict):
            raise ValueError("serving settings are a JSON object")
        for name in raw:
            if name not in _KINDS:
                raise ValueError(
                    f"there is no serving setting {name!r}; remove it, or write one of {', '.join(_KINDS)}"
                )
        absent = [one.name for one in fields(cls) if one.default is MISSING and one.name not in raw]
        if absent:
            raise ValueError(f"the serving settings lack {', '.join(absent)}; add {'them' if absent[1:] else 'it'}")
        made = cls(**raw)
        for name, kind in _KINDS.items():
            if type(getattr(made, name)) not in kind:
                raise ValueError(f"the serving setting {name!r} is {getattr(made, name)!r}, wanted {kind[-1].__name__}")
        # NaN fails this comparison, infinities and huge whole numbers the upper one.
        if not 0 < made.threshold_seconds <= LONGEST or made.queue < 0:
            raise ValueError(f"the serving settings need 0 < threshold_seconds <= {LONGEST} and a queue of at least 0")
        return made


_KINDS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "revision": (str,),
    "artifact": (str,),
    "sha256": (str,),
    "threshold_seconds": (int, float),
    "reject_non_finite": (bool,),
    "queue": (int,),
    "max_artifact_bytes": (int,),
    "insecure_registry": (bool,),
}
"""JSON's booleans are no numbers here, hence `type` and not `isinstance`."""
