"""Inputs for commands: from a file, or random at a size that works."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.errors import InputError, MissingError
from cuvil_core.runtime import CuvilModule
from cuvil_core.runtime.examples import shapes_at
from cuvil_core.validate.inputs import STYLES, draw, size_choices

Array = NDArray[Any]


def random_inputs(module: CuvilModule, given: argparse.Namespace) -> dict[str, Array]:
    """Draw inputs from `--seed`: of the shapes that `--shape` gives, else of the smallest size that the model takes."""
    specs, stated = module.signature.inputs, dict(given.shape)
    unknown = set(stated) - {spec.name for spec in specs}
    if unknown:
        raise InputError(f"there is no input {sorted(unknown)[0]!r}; the model takes {module.signature}")
    fault: InputError | None = None
    for choice in size_choices(specs, module.symbols) if module.symbols else iter([{}]):
        inputs = draw(specs, shapes_at(specs, choice) | stated, STYLES[0], given.seed)
        try:
            module.run(inputs)
            return inputs
        except InputError as refused:
            fault = refused
    raise fault or InputError(f"no size was found that the model takes; pass --shape for {module.signature}")


def read_inputs(path: Path) -> dict[str, Array]:
    """Read an npz of plain arrays; raises MissingError, InputError."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as fault:
        raise MissingError(f"{path} does not exist; name an npz file") from fault
    except Exception as fault:  # NumPy and zipfile raise a dozen kinds for broken files
        raise InputError(f"{path} is no npz file of plain arrays; write it with numpy.savez") from fault
