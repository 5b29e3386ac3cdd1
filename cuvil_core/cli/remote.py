"""`cuvil resolve` and `cuvil push`: what lies elsewhere, and what goes there."""

import argparse
from dataclasses import asdict

from cuvil_core.artifact.layout import MAGIC
from cuvil_core.cli.console import Console, Result, size_text
from cuvil_core.cli.sources import check_file
from cuvil_core.fetching import parse_repository, push_artifact, push_model, resolve


def resolve_command(given: argparse.Namespace, console: Console) -> Result:
    """Find what a URI names, without keeping it."""
    with console.progress("resolve") as progress:
        progress("reading", 0.1)
        found = resolve(given.model, max_bytes=given.max_bytes, sha256=given.sha256, insecure=given.insecure_registry)
    return Result(f"sha256:{found.sha256}  {size_text(found.size)}  {found.format}", asdict(found))


def push_command(given: argparse.Namespace, console: Console) -> Result:
    """Store a file in a registry: an artifact as such, anything else as a model."""
    parse_repository(given.repository)
    path = check_file(given.file, given.max_bytes, None)
    with open(path, "rb") as file:
        is_artifact = file.read(len(MAGIC)) == MAGIC
    if is_artifact:
        stored = push_artifact(path, given.repository, insecure=given.insecure_registry)
        return Result(stored.reference, asdict(stored))
    reference = push_model(path, given.repository, insecure=given.insecure_registry)
    return Result(f"oci://{reference}", {"reference": reference, "uri": f"oci://{reference}"})
