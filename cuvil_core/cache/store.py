"""The store: `artifacts/KEY.cuvil` files, published whole, with locks beside them and an index made from them.

Any process may be killed at any time: a reader sees whole files only, a lock dies with its holder, leftovers of writers
are removed after an hour, the index is made again from the files.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, TypeVar

from cuvil_core.artifact import Artifact, open_artifact, publish
from cuvil_core.cache.locking import exclusive
from cuvil_core.errors import ArtifactError, CuvilError, InfrastructureError, InputError, MissingError

Used = TypeVar("Used")
SUFFIX = ".cuvil"
DEFAULT_LIMIT = 10 << 30
"""Bytes."""
BUILD_FOLDERS = "build-*"
"""Where the toolchain works, beside the artifacts."""
LEFTOVER_AGE = 3600.0
"""Seconds after which a partial file has no living writer."""
UNREADABLE = "unreadable"
"""The name of an entry that is damaged, or of another version of Cuvil: it counts and goes like any other."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the index."""

    key: str
    size: int
    """Bytes."""
    used: float
    """Last use, seconds since 1970."""
    name: str
    model_sha256: str
    target: str
    precision: str
    compiler: str


@dataclass(frozen=True, slots=True)
class Obtained(Generic[Used]):
    """What `use` made of the artifact, and where that came from."""

    value: Used
    hit: bool
    note: str = ""
    """Why the artifact could not be kept, empty when it was."""


def cache_dir() -> Path:
    """Give CUVIL_CACHE_DIR, else `cuvil` under XDG_CACHE_HOME, else `~/.cache/cuvil`."""
    if stated := os.environ.get("CUVIL_CACHE_DIR"):
        return Path(stated).expanduser()
    # A relative XDG folder is invalid by the specification and is ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "cuvil"
    try:
        return Path.home() / ".cache" / "cuvil"
    except RuntimeError as fault:
        # A folder that any user may make, as below /tmp, would let others put code there.
        raise InputError("this user has no home folder; set CUVIL_CACHE_DIR to a folder of its own") from fault


def default_limit() -> int:
    """Give CUVIL_CACHE_LIMIT in bytes, else 10 GiB; raises InputError for nonsense."""
    stated = os.environ.get("CUVIL_CACHE_LIMIT", "").strip()
    if stated and not (stated.isascii() and stated.isdecimal()):
        raise InputError(f"CUVIL_CACHE_LIMIT is {stated!r}, wanted a number of bytes: set it or unset it")
    return int(stated) if stated else DEFAULT_LIMIT


class Cache:
    """Safe for any number of threads and processes on one folder."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        """Take a folder (made when first written) and a bound in bytes."""
        self.folder = cache_dir() if folder is None else folder
        self.limit = default_limit() if limit is None else limit
        self._artifacts = self.folder / "artifacts"
        self._locks = self.folder / "locks"

    def obtain(self, key: str, build: Callable[[], bytes], use: Callable[[Artifact], Used]) -> Obtained[Used]:
        """Give `use(artifact)` of the entry, building it first where it is missing or broken.

        `use` must check what it reads (as loading does); where it raises ArtifactError for a stored file, that file is
        removed and built again. One process builds a key at a time, the others wait for its result. A folder that is
        read-only or full only costs the entry: `note` says so. Errors of `build` are raised as they are.
        """
        found = self._try(key, use)
        if found is not None:
            return found
        try:
            for folder in (self._artifacts, self._locks):
                folder.mkdir(parents=True, exist_ok=True)
            lock = contextlib.ExitStack()
            lock.enter_context(exclusive(self._locks / f"{key}.lock"))
        except OSError as fault:
            return Obtained(use(open_artifact(build())), False, f"{self.folder} cannot be written: {fault.strerror}")
        with lock:
            return self._try(key, use, mend=True) or self._build(key, build, use)

    def entries(self) -> list[Entry]:
        """Give what is stored, last used first; of files that cannot be read, only size and use are known."""
        known = self._read_index()
        found = [entry for path in self._files() if (entry := _describe(path, known)) is not None]
        return sorted(found, key=lambda entry: -entry.used)

    def remove(self, key: str) -> bool:
        """Remove an entry, and tell whether it went; processes that use it keep it until they end."""
        try:
            self._path(key).unlink()
        except OSError:
            return False
        return True

    def collect(self, limit: int | None = None, keep: str = "") -> int:
        """Remove leftovers, then the entries unused for longest until the rest fits; give the bytes freed."""
        freed = self._remove_leftovers()
        entries = self.entries()
        total, bound = sum(entry.size for entry in entries), self.limit if limit is None else limit
        for entry in reversed(entries):
            # An empty file is no artifact and never the one that a writer is at.
            needless = total > bound or entry.size == 0
            if needless and entry.key != keep and self.remove(entry.key):
                total, freed = total - entry.size, freed + entry.size
        self._write_index()
        return freed

    def _try(self, key: str, use: Callable[[Artifact], Used], mend: bool = False) -> Obtained[Used] | None:
        """Give None for a missing or broken entry; `mend` removes a broken one, which only the lock's holder may do."""
        path = self._path(key)
        try:
            value = use(open_artifact(path))
        except (MissingError, InfrastructureError):
            return None
        except ArtifactError:
            if mend:
                self.remove(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return Obtained(value, True)

    def _build(self, key: str, build: Callable[[], bytes], use: Callable[[Artifact], Used]) -> Obtained[Used]:
        data = build()
        try:
            publish(data, self._path(key))
            value = use(open_artifact(self._path(key)))
        except (InfrastructureError, MissingError) as fault:
            return Obtained(use(open_artifact(data)), False, str(fault))
        with contextlib.suppress(OSError, CuvilError):
            self.collect(keep=key)
        return Obtained(value, False)

    def _path(self, key: str) -> Path:
        return self._artifacts / (key + SUFFIX)

    def _files(self) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from self._artifacts.glob(f"*{SUFFIX}")

    def _remove_leftovers(self) -> int:
        """Remove what killed writers and killed compilations left; give the bytes of the writers' files."""
        freed, now = 0, time.time()
        for path in self._artifacts.glob(".*.partial"):
            with contextlib.suppress(OSError):
                state = path.stat()
                if now - state.st_mtime > LEFTOVER_AGE:
                    path.unlink()
                    freed += state.st_size
        for folder in self.folder.glob(BUILD_FOLDERS):
            with contextlib.suppress(OSError):
                if now - folder.stat().st_mtime > LEFTOVER_AGE:
                    shutil.rmtree(folder, ignore_errors=True)
        return freed

    def _write_index(self) -> None:
        lines = {entry.key: asdict(entry) for entry in self.entries()}
        text = json.dumps({"entries": lines}, indent=1, sort_keys=True)
        with contextlib.suppress(InfrastructureError):
            publish(text.encode(), self.folder / "index.json")

    def _read_index(self) -> dict[str, Entry]:
        """Give what a former index knew; anything wrong with it only costs reading the files again."""
        try:
            raw = json.loads((self.folder / "index.json").read_text())["entries"]
            return {key: Entry(**line) for key, line in raw.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}


def _describe(path: Path, known: dict[str, Entry]) -> Entry | None:
    key = path.name.removesuffix(SUFFIX)
    try:
        state = path.stat()
    except OSError:
        return None
    former = known.get(key)
    if former is not None and former.size == state.st_size and former.name != UNREADABLE:
        rest = (former.name, former.model_sha256, former.target, former.precision, former.compiler)
    else:
        rest = _read(path)
    return Entry(key, state.st_size, state.st_mtime, *rest)


def _read(path: Path) -> tuple[str, str, str, str, str]:
    try:
        made = open_artifact(path).manifest
    except (OSError, CuvilError):
        return (UNREADABLE, "", "", "", "")
    return (made.name, made.model_sha256, made.request.target, made.request.precision, made.compiler)
