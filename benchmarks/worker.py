"""One contender in a process of its own: `worker.py CONTENDER MODEL FILE THREADS`, told over standard input.

Reads `SHAPE`, loads twice, answers one JSON line with both times and the outputs' file; then for each line `N` runs N
times and answers the list of seconds. One process works at a time, so contenders never share cores.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case

Run = Callable[[NDArray[np.generic]], list[NDArray[np.generic]]]


def load_onnxruntime(path: Path, threads: int) -> Run:
    """Load with ONNX Runtime at its highest level of optimization."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (name,) = [one.name for one in session.get_inputs()]
    return lambda value: list(session.run(None, {name: value}))


def load_cuvil(path: Path, threads: int) -> Run:
    """Compile for this machine, or take the artifact from the cache."""
    os.environ["CUVIL_NUM_THREADS"] = str(threads)
    import cuvil

    module = cuvil.compile(path)
    (name,) = [one.name for one in module.signature.inputs]
    return lambda value: list(module.run({name: value}).values())


CONTENDERS: dict[str, Callable[[Path, int], Run]] = {"cuvil": load_cuvil, "onnxruntime": load_onnxruntime}


def main(contender: str, model: str, file: str, threads: int) -> None:
    """Serve until standard input ends."""
    value = Case(model, tuple(json.loads(sys.stdin.readline()))).draw()
    first, _ = _timed(contender, file, threads)
    again, run = _timed(contender, file, threads)
    outputs = run(value)
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as kept:
        np.savez(kept, *outputs)
    print(json.dumps({"first_s": first, "again_s": again, "outputs": kept.name}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            run(value)
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


def _timed(contender: str, file: str, threads: int) -> tuple[float, Run]:
    began = time.perf_counter()
    run = CONTENDERS[contender](Path(file), threads)
    return time.perf_counter() - began, run


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
