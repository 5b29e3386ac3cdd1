"""A Debian base with Python 3.11, made by debootstrap where no image registry is at hand."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.progress import step
from images.buildah import Buildah

SUITE = "bookworm"
PACKAGES = ("python3", "python3-pip", "ca-certificates")
MIRROR = "http://deb.debian.org/debian"
DROPPED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
)
"""Folders emptied after the installation: nothing in an image reads them."""


def reference() -> str:
    """The base's name; the tag changes with what it holds."""
    key = hashlib.sha256(repr((SUITE, PACKAGES, DROPPED)).encode()).hexdigest()[:12]
    return f"localhost/cuvil/base:{key}"


def ensure(buildah: Buildah) -> str:
    """Makes the base unless the store has it; gives its reference."""
    name = reference()
    if buildah.has(name):
        return name
    with step("made the base image by debootstrap"), tempfile.TemporaryDirectory(dir=buildah.folder) as scratch:
        root = Path(scratch) / "rootfs"
        mirror = os.environ.get("CUVIL_DEBIAN_MIRROR") or MIRROR
        include = f"--include={','.join(PACKAGES)}"
        run(["debootstrap", "--variant=minbase", include, SUITE, root, mirror], timeout=900)
        _strip(root)
        archive = Path(scratch) / "rootfs.tar"
        run(
            ["tar", "-C", root, "--exclude=./dev/*", "--sort=name", "--numeric-owner", "-cf", archive, "."], timeout=300
        )
        shutil.rmtree(root)
        (Path(scratch) / "Dockerfile").write_text("FROM scratch\nADD rootfs.tar /\n")
        buildah("build", "--isolation", "chroot", "--tag", name, scratch, timeout=600)
    return name


def _strip(root: Path) -> None:
    for folder in DROPPED:
        for entry in (root / folder).iterdir() if (root / folder).is_dir() else ():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
