"""An artifact → a module that can be called."""

import os
import time

from cuvil_core.artifact import Artifact, open_artifact
from cuvil_core.artifact.reader import DEFAULT_LIMIT
from cuvil_core.errors import TargetError
from cuvil_core.runtime.library import Library
from cuvil_core.runtime.module import CuvilModule
from cuvil_core.runtime.tensors import plain
from cuvil_core.runtime.threads import thread_count
from cuvil_core.runtime.variants import choose, cpu_features


def load(
    source: str | os.PathLike[str] | bytes | Artifact, *, variant: str | None = None, limit: int = DEFAULT_LIMIT
) -> CuvilModule:
    """Load an artifact from a path, from bytes, or opened already.

    The library is checked before it is loaded, the weights before they are used. `variant` forces one of the
    artifact's libraries instead of the best that this CPU runs. Raises MissingError, ArtifactError, TargetError,
    SizeError, InfrastructureError.
    """
    started = time.perf_counter()
    artifact = source if isinstance(source, Artifact) else open_artifact(source, limit)
    best = choose(_candidates(artifact, variant), artifact.manifest.facts, cpu_features())
    library = Library(artifact.library(best), artifact.where)
    module = CuvilModule(artifact, library, artifact.weights(thread_count()), best)
    module._load_ms = (time.perf_counter() - started) * 1e3
    return module


def _candidates(artifact: Artifact, variant: str | None) -> tuple[str, ...]:
    if variant is None:
        return artifact.variants
    if variant not in artifact.variants:
        names = ", ".join(map(plain, artifact.variants))
        raise TargetError(f"{artifact.where} has no variant {variant!r}, it has {names}")
    return (variant,)
