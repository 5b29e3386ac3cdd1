"""From the settings to a module that may serve: fetched, checked, loaded, warm."""

import contextlib
import logging
import os
import time
from hashlib import file_digest
from pathlib import Path

from cuvil_core.artifact import open_plain
from cuvil_core.contract import ServingSettings
from cuvil_core.errors import DigestError, MissingError, SizeError
from cuvil_core.fetching import pull_artifact
from cuvil_core.runtime import CuvilModule, load
from cuvil_core.serving.engine import warm_up
from cuvil_core.serving.logs import say
from cuvil_core.serving.protocol import check_types

LEFTOVER_SECONDS = 3600.0
DEFAULT_FOLDER = Path("/var/cache/cuvil")


def admit(settings: ServingSettings) -> CuvilModule:
    """Give a warm module of the very artifact that the settings name; raises CuvilError by cause."""
    path = obtain(settings)
    module = load(path, limit=settings.max_artifact_bytes)
    check_types((*module.signature.inputs, *module.signature.outputs))
    say(logging.INFO, "artifact loaded", path=str(path), variant=module.report.variant, load_ms=module.report.load_ms)
    shapes = warm_up(module)
    if shapes is None:
        say(logging.WARNING, "no warm-up: the model takes none of the sizes tried")
    else:
        say(logging.INFO, "model warm", shapes=shapes)
    return module


def obtain(settings: ServingSettings) -> Path:
    """Give the path of the artifact, its digest checked; fetched unless it lies there from a former start."""
    if os.path.isabs(settings.artifact):
        path = Path(settings.artifact)
        check(path, settings)
        return path
    path = folder() / f"{settings.sha256}.cuvil"
    sweep(path.parent)
    try:
        check(path, settings)
    except (MissingError, DigestError):
        pull_artifact(
            settings.artifact,
            path,
            sha256=settings.sha256,
            max_bytes=settings.max_artifact_bytes,
            insecure=settings.insecure_registry,
        )
    return path


def sweep(where: Path) -> None:
    """Remove what downloads left that were killed an hour ago or earlier."""
    for path in where.glob(".*.partial"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                path.unlink()


def check(path: Path, settings: ServingSettings) -> None:
    """Raise a CuvilError by cause unless `path` is the artifact that the settings name."""
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > settings.max_artifact_bytes:
                raise SizeError(f"{path} has {size} bytes, more than the allowed {settings.max_artifact_bytes}")
            found = file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {fault.strerror}; name an artifact file") from fault
    if found != settings.sha256:
        raise DigestError(f"{path} has sha256 {found}, wanted {settings.sha256}; fetch it again or mend the settings")


def folder() -> Path:
    """Give where fetched artifacts lie: CUVIL_CACHE_DIR, else the serving pod's volume."""
    return Path(os.environ.get("CUVIL_CACHE_DIR") or DEFAULT_FOLDER) / "served"
