"""What is known of the wanted revision's artifact before its record is written."""

import re
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from cuvil_operator.api import CuvilModelSpec, QuarantineEntry
from cuvil_operator.conventions import Stage
from cuvil_operator.decide import hashing, jobs
from cuvil_operator.decide.wanted import Wanted, record_of
from cuvil_operator.facts import Observed, RevisionRecord


@dataclass(frozen=True, slots=True)
class Artifact:
    """A compiled artifact in the store."""

    reference: str
    sha256: str
    size: int
    reused: bool
    """Made for another revision or another CuvilModel of the namespace."""
    facts: dict[str, Any] = field(default_factory=dict)


def artifact(seen: Observed, wanted: Wanted) -> Artifact | None:
    """Give the artifact of the compile key: of a proved revision in the namespace, else of the compile Job."""
    known = next((one for one in (*seen.records, *seen.siblings) if one.compile_key == wanted.compile_key), None)
    if known:
        return Artifact(known.artifact, known.artifact_sha256, known.artifact_size, True, _manifest_facts(known))
    job = jobs.find(seen, Stage.COMPILE, wanted.compile_key)
    end = jobs.ended(job) if job else None
    return read_artifact(end) if end else None


def read_artifact(end: jobs.Ended) -> Artifact | None:
    """Read a compile Job's result; None where it failed or says something else."""
    reference, sha256, size = (end.result.get(key) for key in ("reference", "sha256", "size"))
    if end.code != 0 or not isinstance(reference, str) or not isinstance(size, int):
        return None
    if not is_sha256(sha256) or not is_sha256(reference.rpartition("@sha256:")[2]):
        return None
    facts = end.result.get("facts")
    return Artifact(reference, sha256, size, False, {"manifest": facts if isinstance(facts, dict) else {}})


def is_sha256(text: object) -> TypeGuard[str]:
    """True for 64 lower-case hex digits."""
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None


def baseline(seen: Observed, wanted: Wanted) -> RevisionRecord | None:
    """Give stable's record where it was made from the same model: then the speeds can be compared."""
    stable = record_of(seen, seen.status.stable.revision) if seen.status.stable else None
    return stable if stable and stable.model_sha256 == wanted.model_sha256 else None


def validation_key(seen: Observed, spec: CuvilModelSpec, wanted: Wanted, made: Artifact) -> str:
    """Name the proof that the wanted revision needs."""
    base = baseline(seen, wanted)
    return hashing.validation_key(spec, wanted.model_sha256, made.sha256, base.artifact_sha256 if base else None)


def quarantined(seen: Observed, spec: CuvilModelSpec, wanted: Wanted) -> QuarantineEntry | None:
    """Give the entry that keeps a revision from being tried: its own, or that of its artifact.

    Numbers that were outside one bound may be inside a wider one: there the artifact's entry holds for its bound alone.
    """
    made = artifact(seen, wanted)
    asked = bound(spec)

    def holds(entry: QuarantineEntry) -> bool:
        intrinsic = made is not None and entry.artifact_sha256 == made.sha256 and entry.bound in (None, asked)
        return entry.revision == wanted.revision or intrinsic

    return next((entry for entry in seen.status.quarantine if holds(entry)), None)


def bound(spec: CuvilModelSpec) -> str:
    """Give what is asked of the numbers, in one text."""
    accuracy = spec.accuracy
    golden = f" on {accuracy.golden_uri}" if accuracy.golden_uri else ""
    return f"rtol={accuracy.rtol.normalize():f} atol={accuracy.atol.normalize():f}{golden}"


def _manifest_facts(record: RevisionRecord) -> dict[str, Any]:
    return {"manifest": record.facts.get("manifest", {})}
