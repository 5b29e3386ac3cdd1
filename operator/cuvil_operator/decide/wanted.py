"""Which revision the present spec stands for."""

from dataclasses import dataclass

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.decide import hashing
from cuvil_operator.facts import Images, Observed, RevisionRecord


@dataclass(frozen=True, slots=True)
class Wanted:
    """The revision to run, and how far it is proved."""

    revision: str
    fingerprint: str
    compile_key: str
    model_sha256: str
    images: Images
    record: RevisionRecord | None
    """There once the revision is proved: its immutable ConfigMap."""


def wanted(seen: Observed, spec: CuvilModelSpec) -> Wanted | None:
    """Give the revision of the spec; None until the model's digest is known.

    A proved revision of the same fingerprint is taken with the images that it was proved with, so that an upgrade of
    the operator's images changes nothing that runs. Of several, stable comes first, then canary, then the newest.
    """
    model = model_sha256(seen, spec)
    if model is None:
        return None
    mark = hashing.fingerprint(spec, model)
    record = _proved(seen, mark)
    images = record.images if record else seen.platform.images
    return Wanted(
        revision=record.revision if record else hashing.revision(mark, images),
        fingerprint=mark,
        compile_key=hashing.compile_key(spec, model, images.compiler),
        model_sha256=model,
        images=images,
        record=record,
    )


def model_sha256(seen: Observed, spec: CuvilModelSpec) -> str | None:
    """Give the pinned digest, or the one that was resolved for this generation."""
    if spec.model.sha256:
        return spec.model.sha256
    return seen.status.model_digest if seen.status.resolved_generation == seen.generation else None


def record_of(seen: Observed, revision: str | None) -> RevisionRecord | None:
    """Give this model's record of a revision."""
    return next((one for one in seen.records if one.revision == revision), None)


def _proved(seen: Observed, mark: str) -> RevisionRecord | None:
    status = seen.status
    running = [one.revision for one in (status.stable, status.canary) if one]
    order = running + [one.revision for one in status.history]
    found = [one for one in seen.records if one.fingerprint == mark]
    rank = {revision: place for place, revision in reversed(list(enumerate(order)))}
    return min(found, key=lambda one: (rank.get(one.revision, len(order)), one.revision), default=None)
