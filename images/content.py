"""The tag of an image: a key over everything that its build reads, so that an unchanged tree builds nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from images.keep_rooms import ALWAYS, reachable, rooms

TREE = Path(__file__).resolve().parent.parent
SOURCES = {"cuvil_core": TREE, "cuvil_operator": TREE / "operator"}
"""Product package → the folder that it lies in."""
NAMES = ("operator", "runtime", "compiler")
ENTRIES = {"runtime": ("cuvil_core.serving",), "operator": ("cuvil_operator",), "compiler": ()}
"""The modules that an image runs; none means that it holds the whole compiler."""


def key(name: str, base: str) -> str:
    """Twelve hex digits over the base's name, Dockerfile, requirements, pins and the product files that are kept."""
    digest = hashlib.sha256(base.encode())
    for file in files(name):
        digest.update(f"\0{file.relative_to(TREE)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def files(name: str) -> list[Path]:
    """What the image's content depends on, sorted; product rooms that the image drops do not count."""
    fixed = [file for file in (TREE / "images" / name).iterdir() if file.is_file()]
    fixed += [TREE / "images" / "keep_rooms.py", TREE / "constraints.txt", TREE / "pyproject.toml"]
    return sorted({*fixed, *_product(name)})


def _product(name: str) -> Iterator[Path]:
    """The product's files that the image keeps: of the compiler's half all, else the rooms of its entry points."""
    if not ENTRIES[name]:
        yield TREE / "cuvil.py"
        yield from _files_below(TREE / "cuvil_core")
        return
    kept = rooms(reachable(tuple(SOURCES.values()), ENTRIES[name]))
    for package in sorted({room.partition("/")[0] for room in kept}):
        folder = SOURCES[package] / package
        for file in _files_below(folder):
            first = file.relative_to(folder).parts[0]
            if first in ALWAYS or f"{package}/{first.removesuffix('.py')}" in kept:
                yield file


def _files_below(folder: Path) -> Iterator[Path]:
    yield from (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
