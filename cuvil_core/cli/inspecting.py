"""`cuvil inspect`: what an artifact says of itself."""

import argparse
import json
from typing import Any

from cuvil_core.artifact import Artifact, open_artifact
from cuvil_core.cli.console import Console, Result, size_text, table
from cuvil_core.cli.sources import local_artifact
from cuvil_core.errors import TargetError
from cuvil_core.runtime import Signature, cpu_features
from cuvil_core.runtime.variants import choose


def inspect_command(given: argparse.Namespace, console: Console) -> Result:
    """Check every byte of an artifact and show its manifest."""
    with local_artifact(given.artifact, given, given.sha256) as path:
        artifact = open_artifact(path, given.max_bytes)
        artifact.verify()
        digest, whole = artifact.sha256(), len(artifact.data)
        data: dict[str, Any] = json.loads(artifact.head.text) | {"sha256": digest, "size": whole}
    made = artifact.manifest
    rows = [
        ("name", made.name),
        ("signature", str(Signature(made.inputs, made.outputs))),
        ("sha256", digest),
        ("size", size_text(whole)),
        ("model", made.model_sha256),
        ("compiled for", f"{made.request.target}, {made.request.precision}, level {made.request.opt_level}"),
        ("compiler", made.compiler),
        ("runs here", _runs_here(artifact)),
    ]
    rows += [(part.name, size_text(part.size)) for part in made.segments]
    rows += [
        (name, _bounds(value) if name == "bounds" else _short(value)) for name, value in sorted(made.facts.items())
    ]
    rows += [(f"metadata {name}", _short(value)) for name, value in sorted(made.metadata.items())]
    return Result(table(rows), data)


def _runs_here(artifact: Artifact) -> str:
    try:
        return f"yes, {choose(artifact.variants, artifact.manifest.facts, cpu_features())}"
    except TargetError as fault:
        return f"no: {fault}"


def _short(value: object) -> str:
    text = " ".join(_spelled(value).split())
    return text if len(text) <= 100 else f"{text[:100]}… ({len(text)} characters)"


def _spelled(value: object) -> str:
    if value is None:
        return "without bound"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_spelled(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_spelled, value)) or "none"
    return str(value)


def _bounds(value: object) -> str:
    """Give the least and greatest extent of each symbol. The form is looked at, since a file may hold anything."""
    if not isinstance(value, dict) or any(not isinstance(pair, list) or len(pair) != 2 for pair in value.values()):
        return _short(value)
    return _short(
        {name: f"{least} and more" if most is None else f"{least} to {most}" for name, (least, most) in value.items()}
    )
