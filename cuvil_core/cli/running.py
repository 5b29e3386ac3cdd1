"""`cuvil run`: arrays in, arrays out."""

import argparse
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.artifact import publish
from cuvil_core.cli.console import Console, Result, table
from cuvil_core.cli.examples import random_inputs, read_inputs
from cuvil_core.cli.sources import local_artifact
from cuvil_core.runtime import load
from cuvil_core.runtime.elements import nameless


def run_command(given: argparse.Namespace, console: Console) -> Result:
    """Run an artifact once; show its outputs in short, or write them."""
    with local_artifact(given.artifact, given, given.sha256) as path:
        module = load(path, limit=given.max_bytes)
        inputs = (
            read_inputs(given.inputs, module.signature.inputs)
            if given.inputs is not None
            else random_inputs(module, given)
        )
        outputs = module.run(inputs)
    if given.output is not None:
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **{name: nameless(array) for name, array in outputs.items()})
        publish(packed.getvalue(), given.output)
    found = {name: summary(array) for name, array in outputs.items()}
    rows = [(name, ", ".join(f"{key} {value}" for key, value in one.items())) for name, one in found.items()]
    if given.inputs is None:
        console.say("inputs are random: " + ", ".join(f"{name} {list(one.shape)}" for name, one in inputs.items()))
    return Result(table(rows), {"outputs": found})


def summary(array: NDArray[Any]) -> dict[str, Any]:
    """Give shape, dtype, least, greatest, mean and the count of NaN and Inf."""
    found: dict[str, Any] = {"shape": list(array.shape), "dtype": array.dtype.name}
    good = array[np.isfinite(array)] if array.dtype.name.startswith(("float", "bfloat")) else array
    if good.size:
        found |= {"min": float(good.min()), "max": float(good.max()), "mean": float(good.mean(dtype=np.float64))}
    if good.size < array.size:
        found["nonfinite"] = int(array.size - good.size)
    return found
