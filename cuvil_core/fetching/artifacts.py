"""Artifacts and models as OCI artifacts, by the conventions of docs/decisions/0002 (those of ORAS)."""

import json
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from cuvil_core.artifact import Artifact, open_artifact
from cuvil_core.contract import StoredArtifact
from cuvil_core.errors import DigestError, MissingError
from cuvil_core.fetching.reference import Reference, parse, parse_repository
from cuvil_core.fetching.registry import MANIFEST, Registry
from cuvil_core.fetching.sink import Expected, Received

ARTIFACT = "application/vnd.cuvil.artifact.v1"
ARTIFACT_LAYER = "application/vnd.cuvil.artifact.v1+octets"
ARTIFACT_CONFIG = "application/vnd.cuvil.artifact.config.v1+json"
MODEL = "application/vnd.cuvil.model.v1"
MODEL_LAYER = "application/vnd.cuvil.model.v1+onnx"
EMPTY = "application/vnd.oci.empty.v1+json"
TITLE = "org.opencontainers.image.title"


@dataclass(frozen=True, slots=True)
class _Item:
    """What is stored: one layer, one config."""

    kind: str
    layer_kind: str
    digest: str
    """sha256 of the layer, hex."""
    size: int
    data: bytes | memoryview | Path
    config_kind: str
    config: bytes
    title: str
    """File name that pulling tools give the layer; empty where equal bytes must give equal references."""


def push_artifact(source: Path | Artifact, repository: str, *, insecure: bool = False) -> StoredArtifact:
    """Store an artifact under `HOST/REPOSITORY[:tag]`, config = its manifest JSON; give its reference by digest.

    The same artifact pushed twice has the same reference. Raises ArtifactError, InputError, MissingError,
    InfrastructureError.
    """
    artifact = source if isinstance(source, Artifact) else open_artifact(source)
    artifact.verify()
    digest, size, config = artifact.sha256(), len(artifact.data), artifact.head.text
    item = _Item(ARTIFACT, ARTIFACT_LAYER, digest, size, artifact.data, ARTIFACT_CONFIG, config, "")
    return StoredArtifact(_push(item, repository, insecure), digest, size)


def push_model(path: Path, repository: str, *, insecure: bool = False) -> str:
    """Store a model file under `HOST/REPOSITORY[:tag]`; give its reference by digest."""
    try:
        with open(path, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {fault.strerror}; name a model file") from fault
    return _push(_Item(MODEL, MODEL_LAYER, digest, size, path, EMPTY, b"{}", path.name), repository, insecure)


def pull_artifact(
    reference: str, destination: Path, *, sha256: str | None, max_bytes: int, insecure: bool = False
) -> Received:
    """Fetch an artifact into `destination`, checked against the registry's digest and `sha256` (hex) of the file.

    Raises InputError, MissingError, DigestError, SizeError, InfrastructureError.
    """
    return pull(parse(reference), destination, ARTIFACT_LAYER, Expected(max_bytes, sha256), insecure)


def pull(where: Reference, destination: Path, kind: str, wanted: Expected, insecure: bool) -> Received:
    """Fetch the layer of media type `kind`, or the only layer."""
    registry = Registry(where, insecure)
    digest, size = find_layer(registry, where, kind)
    check_digest(where, digest, wanted)
    return registry.blob(digest, Expected(wanted.max_bytes, digest.removeprefix("sha256:"), size), destination)


def find_layer(registry: Registry, where: Reference, kind: str) -> tuple[str, int]:
    """Give digest and size of the layer of media type `kind`, or of the only layer. Raises MissingError."""
    manifest, _ = registry.manifest(where.name)
    layers = [one for one in manifest["layers"] if isinstance(one, dict)]
    fitting = [one for one in layers if one.get("mediaType") == kind] or layers
    if len(fitting) != 1:
        raise MissingError(f"{where} has {len(fitting)} layers and none or several of type {kind}; name another")
    digest, size = fitting[0].get("digest"), fitting[0].get("size")
    if not isinstance(digest, str) or not digest.startswith("sha256:") or type(size) is not int or size < 0:
        raise MissingError(f"{where} describes its layer by no sha256 and size; push it again")
    return digest, size


def check_digest(where: Reference, digest: str, wanted: Expected) -> None:
    """Raise DigestError before a download that would be of other bytes than wanted."""
    if wanted.sha256 is not None and digest != f"sha256:{wanted.sha256}":
        raise DigestError(f"{where} holds {digest}, wanted sha256:{wanted.sha256}; correct the digest or the reference")


def _push(item: _Item, repository: str, insecure: bool) -> str:
    where = parse_repository(repository)
    registry = Registry(where, insecure)
    config_digest = f"sha256:{sha256(item.config).hexdigest()}"
    registry.push_blob(config_digest, len(item.config), item.config)
    registry.push_blob(f"sha256:{item.digest}", item.size, item.data)
    layer: dict[str, Any] = {"mediaType": item.layer_kind, "digest": f"sha256:{item.digest}", "size": item.size}
    if item.title:
        layer["annotations"] = {TITLE: item.title}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": item.kind,
        "config": {"mediaType": item.config_kind, "digest": config_digest, "size": len(item.config)},
        "layers": [layer],
    }
    body = json.dumps(manifest, separators=(",", ":"), sort_keys=True).encode()
    digest = registry.push_manifest(body, f"sha256:{sha256(body).hexdigest()}")
    if repository.endswith(f":{where.name}"):
        registry.push_manifest(body, where.name)
    return str(where.at(digest))
