"""OCI image archives of the cluster's own programs, written without an image tool, and loading archives into the node.

An archive is a tar of blobs addressed by sha256: one uncompressed layer, its config, the manifest and an index. Times,
owners and order are fixed, so equal inputs give equal digests.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.programs import Programs
from e2e.cluster.progress import step
from e2e.cluster.settings import REGISTRY, Settings

NOBODY = "65534:65534"
_MEDIA = "application/vnd.oci.image"
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


@dataclass(frozen=True, slots=True)
class Image:
    """One program as an image: where it is put, and what else its root holds."""

    name: str
    source: Path
    path: str
    libraries: bool = False
    """Whether the program is linked dynamically, so that its shared libraries are put beside it."""

    def files(self) -> dict[str, Path]:
        """Path in the image → file on this machine."""
        found = {self.path: self.source}
        if self.libraries:
            found |= {library: Path(library) for library in _LIBRARY.findall(run(["ldd", self.source]))}
        return found

    def digest(self) -> str:
        """Twelve hex digits that change with what the image holds."""
        seen = hashlib.sha256(self.path.encode())
        for path, file in sorted(self.files().items()):
            with file.open("rb") as handle:
                seen.update(path.encode() + hashlib.file_digest(handle, "sha256").digest())
        return seen.hexdigest()[:12]


def addon_images(programs: Programs) -> tuple[Image, ...]:
    """The images that the cluster's own pods run."""
    return (
        Image("pause", programs.path("pause"), "/pause"),
        Image("coredns", programs.path("coredns"), "/coredns"),
        Image("prometheus", programs.path("prometheus"), "/bin/prometheus"),
        Image("alertmanager", programs.path("alertmanager"), "/bin/alertmanager"),
        Image("config-reloader", programs.path("prometheus-config-reloader"), "/bin/prometheus-config-reloader"),
        Image("registry", Path("/usr/bin/docker-registry"), "/bin/docker-registry", libraries=True),
    )


def references(images: Iterable[Image]) -> dict[str, str]:
    """Image name → full reference; the tag is the content's digest, so a changed program restarts its pods."""
    return {image.name: f"localhost/cuvil-cluster/{image.name}:{image.digest()}" for image in images}


def load_addons(settings: Settings, programs: Programs) -> dict[str, str]:
    """Puts the addon images into the node's store unless they are there; gives their references."""
    images = addon_images(programs)
    named = references(images)
    present = set(ctr(settings, "images", "ls", "-q").split())
    absent = [image for image in images if named[image.name] not in present]
    if absent:
        with step(f"loaded {len(absent)} images"), tempfile.TemporaryDirectory(dir=settings.state) as scratch:
            for image in absent:
                archive = Path(scratch) / f"{image.name}.tar"
                write_archive(archive, named[image.name], image.files(), entrypoint=[image.path])
                ctr(settings, "images", "import", archive)
    return named


def load_archive(settings: Settings, archive: Path, name: str | None = None) -> str:
    """Imports an OCI or docker archive into the node's store and pushes it to the registry; gives its reference."""
    if not archive.is_file():
        raise ClusterError(
            f"there is no image archive {archive}; write one with `buildah push NAME oci-archive:{archive}`"
        )
    found = archive_name(archive)
    target = name or found
    if not target:
        raise ClusterError(f"the archive {archive} names no image; give one with --name NAME:TAG")
    ctr(settings, "images", "import", archive)
    short = re.sub(r"^(localhost|[^/]*[.:][^/]*)/", "", target)
    kind = "oci-archive" if _members(archive) & {"oci-layout"} else "docker-archive"
    destination = f"docker://{REGISTRY}/{short}"
    run(
        ["skopeo", "copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", f"{kind}:{archive}", destination],
        timeout=300,
    )
    return destination.removeprefix("docker://")


def archive_name(archive: Path) -> str | None:
    """The image's name as the archive records it (OCI annotation or docker's RepoTags), or None."""
    with tarfile.open(archive) as tar:
        members = set(tar.getnames())
        if "index.json" in members:
            described = json.loads(_read(tar, "index.json"))["manifests"][0].get("annotations", {})
            name = described.get("io.containerd.image.name") or described.get("org.opencontainers.image.ref.name")
            return name if name and ":" in name else None
        if "manifest.json" in members:
            tags = json.loads(_read(tar, "manifest.json"))[0].get("RepoTags") or [None]
            return str(tags[0]) if tags[0] else None
    raise ClusterError(
        f"{archive} is neither an OCI nor a docker image archive; write it with buildah push or docker save"
    )


def ctr(settings: Settings, *words: str | Path) -> str:
    """Runs containerd's client against the node, in the namespace that kubelet uses."""
    return run(["ctr", "--address", settings.socket, "--namespace", "k8s.io", *words], timeout=300)


def forget(settings: Settings, reference: str) -> None:
    """Removes an image (`NAME@sha256:…`) from the node's store under all its names; running containers keep theirs."""
    digest = reference.rpartition("@")[2]
    rows = [line.split() for line in ctr(settings, "images", "ls").splitlines()[1:]]
    names = [row[0] for row in rows if len(row) > 2 and row[2] == digest]
    if names:
        ctr(settings, "images", "rm", "--sync", *names)


def write_archive(
    archive: Path, name: str, files: dict[str, Path], *, entrypoint: list[str], user: str = NOBODY
) -> str:
    """Writes an image of the files (path in image → source) with an empty /tmp; gives the manifest's digest."""
    with tempfile.TemporaryFile(dir=archive.parent) as layer:
        _write_layer(layer, files)
        size, digest = layer.tell(), _sha256(layer)
        blobs: dict[str, bytes] = {}
        environment = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        config = {
            "architecture": "amd64",
            "os": "linux",
            "created": "2000-01-01T00:00:00Z",
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "config": {"Env": environment, "Entrypoint": entrypoint, "User": user},
        }
        layers = [{"mediaType": f"{_MEDIA}.layer.v1.tar", "digest": f"sha256:{digest}", "size": size}]
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": {"mediaType": f"{_MEDIA}.config.v1+json", **_blob(blobs, config)},
            "layers": layers,
        }
        described = _blob(blobs, manifest)
        index = {
            "schemaVersion": 2,
            "manifests": [
                {
                    "mediaType": f"{_MEDIA}.manifest.v1+json",
                    **described,
                    "platform": {"architecture": "amd64", "os": "linux"},
                    "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
                }
            ],
        }
        with tarfile.open(archive, "w") as tar:
            _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            _add(tar, "index.json", json.dumps(index).encode())
            for blob, data in blobs.items():
                _add(tar, f"blobs/sha256/{blob}", data)
            layer.seek(0)
            entry = tarfile.TarInfo(f"blobs/sha256/{digest}")
            entry.size, entry.mode = size, 0o644
            tar.addfile(entry, layer)
    return str(described["digest"])


def _write_layer(layer: IO[bytes], files: dict[str, Path]) -> None:
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders = {str(parent) for path in files for parent in Path(path.lstrip("/")).parents if str(parent) != "."}
        for folder in sorted(folders | {"tmp"}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for path, source in sorted(files.items()):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = source.stat().st_size, 0o755
            with source.open("rb") as handle:
                tar.addfile(entry, handle)
    layer.seek(0, io.SEEK_END)


def _sha256(layer: IO[bytes]) -> str:
    layer.seek(0)
    seen = hashlib.sha256()
    while chunk := layer.read(1 << 20):
        seen.update(chunk)
    return seen.hexdigest()


def _blob(blobs: dict[str, bytes], value: object) -> dict[str, str | int]:
    data = json.dumps(value).encode()
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"digest": f"sha256:{digest}", "size": len(data)}


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.addfile(entry, io.BytesIO(data))


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    handle = tar.extractfile(name)
    if handle is None:
        raise ClusterError(f"the image archive has no readable {name}; write it again")
    return handle.read(1 << 24)


def _members(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return set(tar.getnames())
