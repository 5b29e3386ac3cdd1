"""`cuvil.compile`: what a caller says → a request → the cache or the compiler → a module.

Wiring only: the compiler is `cuvil_core.compile`, which this file brings in when the cache has no answer.
"""

import functools
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from cuvil_core.cache import Cache, cache_key
from cuvil_core.contract import CompileRequest, InputSpec
from cuvil_core.errors import InputError, MissingError, TargetError
from cuvil_core.runtime import CuvilModule, cpu_features, load
from cuvil_core.toolchain import compiler_version
from cuvil_core.version import VERSION

TARGETS = ("native", "x86_64-cpu")
PRECISIONS = ("fp32_strict", "fp32")
FORMATS = ("onnx",)
LEVELS = (0, 1, 2, 3)
DEFAULT_LEVEL = 2
LEVEL_VARIABLE = "CUVIL_IR_OPT_LEVEL"
Model = str | os.PathLike[str] | bytes
Progress = Callable[[str, float], None]
"""Told the stage and the part done, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module and how it came."""

    module: CuvilModule
    hit: bool
    """True: from the cache."""
    note: str
    """Why the cache could not keep it, empty when it did."""


def compile(
    model: Model | None = None,
    target: str = "native",
    precision: str = "fp32",
    inputs: Iterable[InputSpec | Mapping[str, Any]] | None = None,
    opt_level: int | None = None,
    *,
    model_path: Model | None = None,
    progress: Progress | None = None,
) -> CuvilModule:
    """Compile an ONNX model (a path or its bytes) and load it; equal calls are answered from the cache.

    `target`: `native` (this machine's CPU) or `x86_64-cpu` (AVX2 and AVX-512 in one artifact). `precision`:
    `fp32_strict` or `fp32`. `inputs`: names and bounds of symbolic extents, as `InputSpec` or as mappings such as
    `{"name": "x", "shape": ["N", 3, 224, 224], "bounds": {"N": (1, 32)}}`. `opt_level`: 0 to 3, else
    CUVIL_IR_OPT_LEVEL, else 2. Raises CuvilError by cause; see `cuvil_core.errors`. Warns where the cache cannot keep
    what was compiled.
    """
    source = model if model is not None else model_path
    if source is None:
        raise InputError("no model was passed, wanted a path or the bytes of an ONNX file")
    compiled = compile_cached(source, make_request(target, precision, inputs, opt_level), progress=progress)
    if compiled.note:
        warnings.warn(compiled.note, RuntimeWarning, stacklevel=2)
    return compiled.module


def compile_cached(
    source: Model, request: CompileRequest, *, cache: Cache | None = None, progress: Progress | None = None
) -> Compiled:
    """Give the module for a model and a request, from the cache where it is there."""
    source = source if isinstance(source, bytes) else _path(source)
    key = cache_key(model_digest(source), request, compiler_identity(), cpu_features())
    got = (cache or Cache()).obtain(key, lambda: build(source, request, progress), load)
    return Compiled(got.value, got.hit, cure(got.note))


def cure(note: str) -> str:
    """Add to why the cache could not keep an artifact what follows and what helps; nothing to nothing."""
    return note and f"{note}; each compilation starts anew until CUVIL_CACHE_DIR names a folder that can be written"


def build(source: Path | bytes, request: CompileRequest, progress: Progress | None = None) -> bytes:
    """Compile; give the artifact's bytes."""
    from cuvil_core.compile import compile_model

    return compile_model(source, request, progress=progress)


def make_request(
    target: str = "native",
    precision: str = "fp32",
    inputs: Iterable[InputSpec | Mapping[str, Any]] | None = None,
    opt_level: int | None = None,
    format: str = "onnx",
) -> CompileRequest:
    """Check a caller's words; raises TargetError and InputError that name what exists."""
    if target not in TARGETS:
        raise TargetError(f"there is no back end for target {target!r} yet; this version has {', '.join(TARGETS)}")
    if precision not in PRECISIONS:
        raise TargetError(f"there is no precision {precision!r} yet; this version has {', '.join(PRECISIONS)}")
    if format not in FORMATS:
        raise TargetError(f"models of format {format!r} cannot be read yet; this version reads {', '.join(FORMATS)}")
    specs = tuple(one if isinstance(one, InputSpec) else input_spec(one) for one in inputs or ())
    names = [one.name for one in specs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"input {name!r} is described {names.count(name)} times; describe it once")
    return CompileRequest(target, precision, format, _level(opt_level), specs)


def input_spec(raw: Mapping[str, Any]) -> InputSpec:
    """Read `{name, shape, bounds}` as a CuvilModel has it: a bound is `{min, max}` or a pair. Raises InputError."""
    try:
        unknown = sorted(map(str, set(raw) - _KEYS))
        if unknown:
            raise InputError(f"an input has no {unknown[0]!r}; write {', '.join(sorted(_KEYS))}")
        name, shape = raw["name"], tuple(raw["shape"])
        bounds = {str(symbol): _bound(value) for symbol, value in dict(raw.get("bounds") or {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise InputError(f"{raw!r} describes no input; write name, shape, bounds with min and max") from fault
    listed = not isinstance(raw["shape"], str | Mapping)
    if not isinstance(name, str) or not listed or any(type(one) not in (int, str) for one in shape):
        raise InputError(f"input {name!r} has shape {raw['shape']!r}; write numbers and names of symbols")
    for symbol, (least, most) in bounds.items():
        if not 1 <= least <= most <= _GREATEST:
            raise InputError(f"symbol {symbol!r} is bound to {least}…{most}; write 1 ≤ min ≤ max ≤ {_GREATEST}")
        if symbol not in shape:
            raise InputError(f"symbol {symbol!r} is bound but input {name!r} has shape {shape!r}; name it there")
    return InputSpec(name, shape, bounds)


def model_digest(source: Path | bytes) -> str:
    """Give the sha256 of the model file and, where it points to external data, of those files too."""
    return digest_and_data(source)[0]


def digest_and_data(source: Path | bytes) -> tuple[str, list[Path]]:
    """Give `model_digest`, and the files of external data that it counts."""
    if isinstance(source, bytes):
        return sha256(source).hexdigest(), []
    try:
        digest, names = _scan(source)
        paths = [source.parent / os.fsdecode(name) for name in sorted(names)]
        files = [path for path in paths if path.is_file()]
        parts = [digest, *map(_file_sha256, files)]
    except OSError as fault:
        raise MissingError(f"{source} cannot be read: {fault.strerror}; name a model file") from fault
    return digest if len(parts) == 1 else sha256("".join(parts).encode()).hexdigest(), files


@functools.cache
def compiler_identity() -> str:
    """Name the compiler's code: its version, its sources by size and time of change, the C compiler's version.

    Asked once a process, whose code does not change either.
    """
    root = Path(__file__).parent
    whole = sha256(compiler_version().encode())
    for folder, folders, files in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = sorted(one for one in folders if (here / one).as_posix() not in _NO_COMPILER)
        for name in sorted(one for one in files if one.endswith((".py", ".c", ".h"))):
            state = os.stat(os.path.join(folder, name))
            whole.update(f"{here}/{name} {state.st_size} {state.st_mtime_ns}\n".encode())
    return f"{VERSION}+{whole.hexdigest()[:16]}"


_LOCATION = b"\x0a\x08location\x12"
_LONGEST_NAME = 4096
_PIECE = 1 << 20
_OVERLAP = len(_LOCATION) + 5 + _LONGEST_NAME
_NO_COMPILER = frozenset({"serving", "fetching", "cli", "validate", "cache"})
"""Rooms that cannot change an artifact's bytes."""


def _path(source: object) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"the model is a {type(source).__name__}; pass a path or the bytes of an ONNX file, for a ModelProto "
            "model.SerializeToString()"
        )
    path = os.fsdecode(source)
    if not path or "\0" in path:
        raise InputError(f"the path of the model is {path!r}; name a file")
    return Path(path)


def _level(stated: int | None) -> int:
    text = os.environ.get(LEVEL_VARIABLE, "").strip()
    if stated is None and text:
        if text not in map(str, LEVELS):
            raise InputError(f"{LEVEL_VARIABLE} is {text!r}, wanted 0, 1, 2 or 3: set it or unset it")
        return int(text)
    level = DEFAULT_LEVEL if stated is None else stated
    if level not in LEVELS:
        raise InputError(f"optimization level {level!r} does not exist; use 0, 1, 2 or 3")
    return level


_KEYS = frozenset({"name", "shape", "bounds"})
_GREATEST = (1 << 63) - 1
"""Extents are 64-bit numbers."""


def _bound(value: Any) -> tuple[int, int]:
    """Give least and greatest; TypeError or ValueError for what is not two whole numbers: none is rounded."""
    least, most = (value["min"], value["max"]) if isinstance(value, Mapping) else value
    if isinstance(value, Mapping) and len(value) > 2:
        raise ValueError("more than min and max")
    if isinstance(least, bool) or isinstance(most, bool):
        raise TypeError("a truth value is no extent")
    return operator.index(least), operator.index(most)


def _scan(path: Path) -> tuple[str, set[bytes]]:
    """Give a model's sha256, and the file names of external tensors that it seems to hold.

    Both read the whole file at the same time: hashing lets go of the interpreter lock.
    """
    with ThreadPoolExecutor(1) as crew, open(path, "rb") as file:
        digest = crew.submit(_file_sha256, path)
        names, rest = set[bytes](), b""
        while piece := file.read(_PIECE):
            window = rest + piece
            names.update(_external_names(window))
            rest = window[-_OVERLAP:]
        return digest.result(), names


def _file_sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _external_names(data: bytes) -> Iterator[bytes]:
    """Yield the file names of external tensors: protobuf entries whose key is `location` and whose value follows.

    Bytes that only look so, and names cut by the window's end, cost a wrong name, which names no file; a true one is
    never missed.
    """
    # Backwards, which over weights is more than twice as fast as `find`.
    at = data.rfind(_LOCATION)
    while at >= 0:
        start, length, shift = at + len(_LOCATION), 0, 0
        while start < len(data) and shift < 28:
            byte = data[start]
            length |= (byte & 0x7F) << shift
            start, shift = start + 1, shift + 7
            if byte < 0x80:
                break
        name = data[start : start + min(length, _LONGEST_NAME)]
        if name and b"\0" not in name:
            yield name
        at = data.rfind(_LOCATION, 0, at)
