"""A golden file: inputs and the outputs that they must give, as an `.npz`.

Arrays are named after the model's inputs and outputs; with several cases, `0/x`, `0/y`, `1/x`, `1/y`, ….
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import Manifest
from cuvil_core.errors import InputError, MissingError, SizeError
from cuvil_core.runtime.elements import named

Array = NDArray[Any]
Case = tuple[dict[str, Array], dict[str, Array]]
"""Inputs and outputs by name."""
LIMIT = 1 << 30
"""Bytes after unpacking."""
MAX_CASES = 1024


def read_golden(path: Path, manifest: Manifest, limit: int = LIMIT) -> list[Case]:
    """Read the cases; nothing in the file is ever executed. Raises MissingError, SizeError, InputError."""
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(one.file_size for one in packed.infolist())
        if size > limit:
            raise SizeError(f"{path} unpacks to {size} bytes, more than the allowed {limit}; make it smaller")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError as fault:
        raise MissingError(f"{path} does not exist; name a golden file") from fault
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, KeyError) as fault:
        raise InputError(f"{path} is no npz file of plain arrays; write it with numpy.savez") from fault
    return [_case(path, manifest, group) for group in _groups(arrays).values()]


def _groups(arrays: dict[str, Array]) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        number, slash, rest = name.partition("/")
        numbered = bool(slash) and number.isdecimal()
        found.setdefault(number if numbered else "", {})[rest if numbered else name] = array
    return dict(sorted(found.items())[:MAX_CASES])


def _case(path: Path, manifest: Manifest, arrays: dict[str, Array]) -> Case:
    names = [spec.name for spec in manifest.inputs], [spec.name for spec in manifest.outputs]
    missing = [name for name in names[0] if name not in arrays]
    if missing:
        raise InputError(f"{path} lacks input {missing[0]!r}; it must hold {', '.join(names[0])} and outputs")
    types = {spec.name: spec.dtype for spec in (*manifest.inputs, *manifest.outputs)}
    arrays = {name: named(array, types.get(name, "")) for name, array in arrays.items()}
    outputs = {name: arrays[name] for name in names[1] if name in arrays}
    if not outputs:
        raise InputError(f"{path} holds none of the outputs {', '.join(names[1])}; add at least one")
    return {name: arrays[name] for name in names[0]}, outputs
