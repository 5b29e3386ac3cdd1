"""Names by content: fingerprint, revision and the keys of Jobs.

All are sha256 over canonical JSON (sorted keys, no spaces) of exactly what may change the thing named:

    compile key    = H(model, format, inputs, target, precision, optLevel, compiler image)
    fingerprint    = H(model, format, inputs, target, precision, optLevel, compile nodeSelector,
                       accuracy, serving without replicas, latency threshold)
    revision       = H(fingerprint, compiler image, runtime image), 12 digits
    validation key = H(artifact, model, accuracy, serving placement and resources, latency threshold, baseline)

A compile's timeout, tolerations and resources, and serving.replicas, change neither an answer nor its speed: they are
in none of them.
"""

import hashlib
import json
from typing import Any

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.api.codec import write
from cuvil_operator.conventions import REVISION_DIGITS
from cuvil_operator.facts import Images


def digest(content: object) -> str:
    """Give 64 hex digits of the canonical JSON of `content`; equal contents give equal digits."""
    text = json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def compile_key(spec: CuvilModelSpec, model_sha256: str, compiler_image: str) -> str:
    """Name what decides the bytes of an artifact."""
    return digest(_compiled(spec, model_sha256) | {"compiler": compiler_image})


def fingerprint(spec: CuvilModelSpec, model_sha256: str) -> str:
    """Name what a revision is apart from the images that made it and run it."""
    serving = write(spec.serving)
    serving.pop("replicas", None)
    return digest(
        _compiled(spec, model_sha256)
        | {
            "compileOn": dict(spec.compile.node_selector),
            "accuracy": write(spec.accuracy),
            "serving": serving,
            "threshold": spec.slo.latency.threshold.total_seconds(),
        }
    )


def revision(spec_fingerprint: str, images: Images) -> str:
    """Name a revision by 12 hex digits."""
    return digest([spec_fingerprint, images.compiler, images.runtime])[:REVISION_DIGITS]


def resolve_key(spec: CuvilModelSpec, generation: int) -> str:
    """Name one look behind the URI: once a generation, so that a moved tag is met at a change and not in between."""
    return digest([write(spec.model), generation])


def validation_key(spec: CuvilModelSpec, model_sha256: str, artifact_sha256: str, baseline_sha256: str | None) -> str:
    """Name one proof: the artifact, the bounds, and the machine that it is proved on."""
    serving = spec.serving
    return digest(
        {
            "artifact": artifact_sha256,
            "model": model_sha256,
            "accuracy": write(spec.accuracy),
            "resources": write(serving.resources),
            "nodeSelector": dict(serving.node_selector),
            "threshold": spec.slo.latency.threshold.total_seconds(),
            "baseline": baseline_sha256,
        }
    )


def _compiled(spec: CuvilModelSpec, model_sha256: str) -> dict[str, Any]:
    return {
        "model": model_sha256,
        "format": spec.model.format.value,
        "inputs": [write(one) for one in spec.model.inputs],
        "target": spec.target,
        "precision": spec.precision.value,
        "optLevel": spec.compile.opt_level,
    }
