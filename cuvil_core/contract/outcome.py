"""The one JSON line that a Job leaves in its termination message (at most 4,096 bytes, a limit of the kubelet)."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from cuvil_core.contract.exit_codes import ExitCode

TERMINATION_LIMIT = 4096
"""Bytes that the kubelet keeps of a termination message."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """What `cuvil resolve` found behind a URI."""

    sha256: str
    size: int
    """Bytes."""
    format: str


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """Where `cuvil compile --push` put an artifact."""

    reference: str
    """`HOST/REPOSITORY@sha256:…` of the OCI manifest."""
    sha256: str
    """Digest of the artifact file itself, hex."""
    size: int
    """Bytes of the artifact file."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended: the exit code, a constant reason, one sentence, and what it made."""

    code: ExitCode
    reason: str
    """CamelCase constant, such as `UnsupportedOp`."""
    message: str
    """One sentence: what, where, how to fix."""
    result: dict[str, Any] = field(default_factory=dict)
    """`asdict` of ResolvedModel, StoredArtifact or a digest of ValidationReport."""

    def to_json(self) -> str:
        """Give one line within TERMINATION_LIMIT; an overlong message is cut, the result never."""
        whole = asdict(self) | {"code": int(self.code)}
        text = json.dumps(whole, separators=(",", ":"), sort_keys=True)
        over = len(text.encode()) - TERMINATION_LIMIT
        if over <= 0:
            return text
        kept = self.message.encode()[: max(0, len(self.message.encode()) - over - 64)].decode(errors="ignore")
        whole["message"] = kept + " …"
        return json.dumps(whole, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Outcome":
        """Read a termination message; raises ValueError on anything else."""
        raw = json.loads(text)
        if not isinstance(raw, dict):
            raise ValueError("a termination message is a JSON object")
        try:
            code = ExitCode(int(raw["code"]))
            return cls(code, str(raw["reason"]), str(raw["message"]), dict(raw.get("result") or {}))
        except (KeyError, TypeError) as fault:
            raise ValueError(f"a termination message lacks {fault}") from fault
