"""Builds the images of this tree with buildah and pushes them: `python -m images.build`.

An image's tag is a key over all that its build reads (`content`), so an image that the registry has under its key is
not built again. Prints one line an image: its name and its reference by digest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.preflight import install
from e2e.cluster.progress import say, step
from e2e.cluster.settings import REGISTRY, from_environment
from images import base, content, pip_settings
from images.buildah import Buildah, default_folder
from images.registry import digest_of

REPOSITORY = "cuvil"
BUILD_TIMEOUT = 1800.0


def build(
    registry: str, names: Sequence[str] = content.NAMES, base_image: str = "debootstrap", insecure: bool = True
) -> dict[str, str]:
    """Makes sure that the registry has the images; gives name → `REGISTRY/cuvil/NAME@sha256:…`.

    `insecure`: the registry speaks plain HTTP; else TLS, with the credentials of `buildah login`.
    """
    if not insecure:
        _tools(("skopeo",))
    base_name = base.reference() if base_image == "debootstrap" else base_image
    targets = {name: f"{registry}/{REPOSITORY}/{name}:{content.key(name, base_name)}" for name in names}
    digests = {name: digest_of(target, insecure) for name, target in targets.items()}
    absent = [name for name in names if digests[name] is None]
    if absent:
        _tools(("buildah", "debootstrap") if base_image == "debootstrap" else ("buildah",))
        with Buildah(default_folder()) as buildah:
            for name in absent:
                # Another build may have pushed it while this one waited.
                digests[name] = digest_of(targets[name], insecure)
                if digests[name]:
                    continue
                if not buildah.has(targets[name]):
                    base_name = base.ensure(buildah) if base_image == "debootstrap" else base_image
                    _build(buildah, name, targets[name], base_name)
                digests[name] = _push(buildah, name, targets[name], insecure)
    return {name: f"{registry}/{REPOSITORY}/{name}@{digest}" for name, digest in digests.items()}


def _build(buildah: Buildah, name: str, target: str, base_name: str) -> None:
    say(f"building the image {name} …")
    settings = pip_settings.read()
    with step(f"built the image {name}"), tempfile.TemporaryDirectory() as scratch:
        configuration = Path(scratch) / "pip.conf"
        configuration.write_text(settings.text)
        extra = ["--secret", f"id=pip.conf,src={configuration}"]
        if settings.certificates:
            extra += ["--secret", f"id=ca.crt,src={settings.certificates}"]
        for folder in settings.folders:
            extra += ["--volume", f"{folder}:{folder}:ro"]
        file = content.TREE / "images" / name / "Dockerfile"
        arguments = ["--layers", "--build-arg", f"BASE_IMAGE={base_name}", "--file", str(file), "--tag", target]
        buildah("build", "--isolation", "chroot", *extra, *arguments, content.TREE, timeout=BUILD_TIMEOUT)


def _push(buildah: Buildah, name: str, target: str, insecure: bool) -> str:
    with step(f"pushed the image {name}"), tempfile.TemporaryDirectory() as scratch:
        digest = Path(scratch) / "digest"
        security = "--tls-verify=false" if insecure else "--tls-verify=true"
        flags = [security, "--compression-format", "zstd", "--digestfile", str(digest)]
        buildah("push", "--quiet", *flags, target, f"docker://{target}", timeout=600)
        return digest.read_text().strip()


def _tools(wanted: tuple[str, ...]) -> None:
    """Installs the missing programs, whose Debian packages have the same names, if allowed."""
    missing = tuple(tool for tool in wanted if shutil.which(tool) is None)
    if missing and from_environment().install and os.geteuid() == 0 and shutil.which("apt-get"):
        install(missing)
    elif missing:
        raise ClusterError(
            f"{' and '.join(missing)} is missing: run `apt-get install --yes {' '.join(missing)}` as root"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 with one sentence."""
    parser = argparse.ArgumentParser(prog="python -m images.build", description="Build and push Cuvil's images.")
    parser.add_argument("--registry", default=REGISTRY, help="HOST[:PORT][/PATH] (default: the embedded cluster's)")
    parser.add_argument("--insecure", action="store_true", help="the registry speaks plain HTTP")
    parser.add_argument("--base", default="debootstrap", help="BASE_IMAGE, or debootstrap to make one")
    parser.add_argument("--only", action="append", choices=content.NAMES, help="this image alone; may be repeated")
    arguments = parser.parse_args(argv)
    try:
        insecure = arguments.insecure or arguments.registry == REGISTRY
        found = build(arguments.registry, arguments.only or content.NAMES, arguments.base, insecure)
    except ClusterError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    for name, reference in found.items():
        print(f"{name:10}{reference}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
