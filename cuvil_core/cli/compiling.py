"""`cuvil compile`: a model → an artifact file, or an artifact in a registry."""

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuvil_core.artifact import Artifact, publish
from cuvil_core.cache import Cache, Obtained, cache_key
from cuvil_core.cli.console import Console, Progress, Result, size_text
from cuvil_core.cli.outputs import check_output, same_file
from cuvil_core.cli.sources import local_model
from cuvil_core.contract import CompileRequest, Manifest
from cuvil_core.errors import InputError
from cuvil_core.fetching import parse_repository, push_artifact
from cuvil_core.front import build, compiler_identity, cure, digest_and_data, make_request
from cuvil_core.runtime import cpu_features

MAX_FACTS = 24
"""Numbers of the manifest that travel in a termination message, which holds 4 KiB."""


def compile_command(given: argparse.Namespace, console: Console) -> Result:
    """Compile; equal requests are answered from the cache."""
    request = make_request(given.target, given.precision, given.input, given.opt_level, given.format)
    if given.push is not None:
        if given.output is not None:
            raise InputError("--push and --output were both passed; an artifact goes to one place at a time")
        parse_repository(given.push)
    started = time.perf_counter()
    with local_model(given.model, given, given.sha256) as path, console.progress(f"compile {path.name}") as progress:
        output = given.output or _named_after(path)
        if given.push is None:
            check_output(output, [path])
        got = _obtain(path, request, given, output, progress)
    artifact, note = got.value, cure(got.note)
    if note:
        console.say(f"note: {note}")
    seconds = time.perf_counter() - started
    made = artifact.manifest
    facts = numbers(made)
    if given.push is not None:
        stored = push_artifact(artifact, given.push, insecure=given.insecure_registry)
        return Result(stored.reference, asdict(stored) | {"facts": facts})
    publish(artifact.data, output)
    text = f"{output}: {size_text(len(artifact.data))} for {', '.join(artifact.variants)} in {seconds:.1f} s"
    data: dict[str, Any] = {"path": str(output), "sha256": artifact.sha256(), "size": len(artifact.data)}
    return Result(text + (" (from the cache)" if got.hit else ""), data | {"cached": got.hit, "facts": facts})


def numbers(manifest: Manifest) -> dict[str, Any]:
    """Give the manifest's facts that are numbers or short texts."""
    plain = {
        name: value
        for name, value in sorted(manifest.facts.items())
        if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 40)
    }
    return dict(list(plain.items())[:MAX_FACTS])


def _named_after(model: Path) -> Path:
    own = Path(f"{model.stem}.cuvil")
    return Path(f"{model.name}.cuvil") if same_file(own, model) else own


def _obtain(
    path: Path, request: CompileRequest, given: argparse.Namespace, output: Path, progress: Progress
) -> Obtained[Artifact]:
    digest, data = digest_and_data(path)
    if given.push is None:
        check_output(output, data)
    key = cache_key(digest, request, compiler_identity(), cpu_features())
    cache = Cache()
    if given.no_cache:
        cache.remove(key)
    return cache.obtain(key, lambda: build(path, request, progress), _checked)


def _checked(artifact: Artifact) -> Artifact:
    artifact.verify()
    return artifact
