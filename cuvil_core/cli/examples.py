"""Inputs for commands: from a file, or random at a size that works."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import TensorSpec
from cuvil_core.errors import InputError, MissingError
from cuvil_core.runtime import CuvilModule
from cuvil_core.runtime.elements import named
from cuvil_core.runtime.examples import shapes_at
from cuvil_core.validate.inputs import STYLES, draw, size_choices

Array = NDArray[Any]
MOST_ELEMENTS = 1 << 40


def random_inputs(module: CuvilModule, given: argparse.Namespace) -> dict[str, Array]:
    """Draw inputs from `--seed`: of the shapes that `--shape` gives, else of the smallest size that the model takes."""
    specs, stated = module.signature.inputs, _stated(given.shape)
    unknown = set(stated) - {spec.name for spec in specs}
    if unknown:
        raise InputError(f"there is no input {sorted(unknown)[0]!r}; the model takes {module.signature}")
    for spec in specs:
        if len(stated.get(spec.name, spec.shape)) != len(spec.shape):
            raise InputError(
                f"--shape gives {spec.name!r} {len(stated[spec.name])} extents; the model takes {module.signature}"
            )
    fault: InputError | None = None
    sizes = size_choices(specs, module.symbols) if module.symbols else iter([{}])
    # Where indices are among the inputs the model may refuse large integers: then smaller ones are drawn.
    for choice, style in ((choice, style) for choice in sizes for style in STYLES):
        shapes = shapes_at(specs, choice) | stated
        try:
            # Before anything is drawn: shapes that fit no memory would fill it first.
            module.check_shapes(shapes)
            inputs = draw(specs, shapes, style, given.seed)
            module.run(inputs)
            return inputs
        except InputError as refused:
            fault = refused
    raise fault or InputError(f"no size was found that the model takes; pass --shape for {module.signature}")


def read_inputs(path: Path, specs: Sequence[TensorSpec]) -> dict[str, Array]:
    """Read an npz of plain arrays, or an npy where the model has one input; raises MissingError, InputError."""
    try:
        with open(path, "rb") as file:
            arrays = _load(file, path)
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {fault.strerror}; name an npz file") from fault
    if isinstance(arrays, dict):
        types = {spec.name: spec.dtype for spec in specs}
        return {name: named(array, types.get(name, "")) for name, array in arrays.items()}
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise InputError(f"{path} holds one array, but the model takes {names}; write them with numpy.savez")
    return {specs[0].name: named(arrays, specs[0].dtype)}


def _load(file: BinaryIO, path: Path) -> Array | dict[str, Array]:
    """Give what NumPy finds in an open file: its faults, OSError among them, are those of the content."""
    try:
        loaded = np.load(file, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except MemoryError:
        raise
    except Exception as fault:  # NumPy and zipfile raise a dozen kinds for broken files
        raise InputError(f"{path} is no npz file of plain arrays; write it with numpy.savez") from fault


def _stated(pairs: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    stated = dict(pairs)
    if len(stated) < len(pairs):
        raise InputError("--shape was passed twice for the same input; pass it once")
    for name, shape in stated.items():
        if math.prod(shape) > MOST_ELEMENTS:
            raise InputError(f"--shape gives {name!r} more than {MOST_ELEMENTS} elements; make it smaller")
    return stated
