"""The proof that travels with an artifact: numbers, speed, memory."""

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OutputError:
    """How far one output lies from the source model's."""

    name: str
    max_abs: float
    max_rel: float
    """Relative to the largest magnitude of the reference output."""
    within: bool


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """Single-stream latency in milliseconds after warm-up."""

    p50_ms: float
    p90_ms: float
    runs: int
    baseline_p50_ms: float | None = None
    """The stable artifact in the same process, interleaved."""
    limit_ms: float | None = None
    within: bool = True


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes."""

    weights: int
    peak_activations: int


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The three steps of `cuvil verify`."""

    artifact_sha256: str
    model_sha256: str
    rtol: float
    atol: float
    outputs: tuple[OutputError, ...]
    latency: LatencyReport
    memory: MemoryReport

    @property
    def passed(self) -> bool:
        """True when every output and the latency are within their bounds."""
        return all(one.within for one in self.outputs) and self.latency.within

    def to_json(self) -> str:
        """Give a canonical text."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ValidationReport":
        """Read a report; raises ValueError that says what is wrong."""
        raw: dict[str, Any] = json.loads(text)
        try:
            return cls(
                raw["artifact_sha256"],
                raw["model_sha256"],
                raw["rtol"],
                raw["atol"],
                tuple(OutputError(**one) for one in raw["outputs"]),
                LatencyReport(**raw["latency"]),
                MemoryReport(**raw["memory"]),
            )
        except (KeyError, TypeError) as fault:
            raise ValueError(f"the report is not whole: {fault}") from fault
