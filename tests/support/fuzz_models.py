"""Damages model files and checks that each is refused in a sentence or gives what ONNX Runtime gives.

python tests/support/fuzz_models.py magika --count 1000 --compare 50 --seed 0 --compiled
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import onnxruntime

from cuvil_core import reference
from cuvil_core.compile import compile_model
from cuvil_core.contract import CompileRequest
from cuvil_core.errors import CuvilError, InternalError
from cuvil_core.importer.onnx import load
from cuvil_core.runtime import load as load_artifact
from model_cases import CASES, ModelCase, excess
from models import model_path
from mutate_models import mutated

Arrays = dict[str, np.ndarray[Any, Any]]
LONGEST_S = 180.0
"""What compiling and running one damaged file may take on a busy machine."""


def damaged(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(what was done, the bytes): one in five truncated, one in five flipped in its structure, else anywhere.

    Most bytes of a model are weights, so the first and last 64 KiB, where nodes lie, get flips of their own.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        if number % 5 == 0:
            end = int(rng.integers(0, len(data)))
            yield f"truncated to {end}", data[:end]
            continue
        edge = min(len(data), 1 << 16)
        at = int(rng.integers(0, len(data)))
        if number % 5 in (1, 2):
            at = int(rng.integers(0, edge)) if number % 2 else len(data) - 1 - int(rng.integers(0, edge))
        bit = int(rng.integers(0, 8))
        yield f"bit {bit} of byte {at} flipped", data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def outcome(case: ModelCase, data: bytes, compare: bool, compiled: bool = False) -> str:
    """What became of the bytes: the error's name, `loaded`, `equal`, …, or a fault after `WRONG`.

    What loads is run when `compare`: by the interpreter, or by this machine's compiled code when `compiled`.
    """
    try:
        graph = load(data, case.specs)
        if not compare:
            return "loaded"
        return _compared(
            case, data, lambda inputs: _run(case, data, inputs) if compiled else reference.run(graph, inputs)
        )
    except InternalError as error:
        return f"WRONG: {error}"
    except CuvilError as error:
        return _checked_sentence(error)


def _run(case: ModelCase, data: bytes, inputs: Arrays) -> Arrays:
    module = load_artifact(compile_model(data, CompileRequest(target="native", inputs=case.specs)))
    return module.run(inputs)


def _checked_sentence(error: CuvilError) -> str:
    text = str(error)
    sound = text.endswith(".") and "\n" not in text and 20 < len(text) < 2000
    return type(error).__name__ if sound else f"WRONG: no sentence: {text!r}"


def _compared(case: ModelCase, data: bytes, run: Callable[[Arrays], Arrays]) -> str:
    inputs = case.inputs(case.tiny)
    try:
        want = _expected(data, inputs, optimized=True)
        plain = _expected(data, inputs, optimized=False)
    except Exception:
        return "ONNX Runtime refuses"
    got = run(inputs)
    worst = min(_apart(got, want), _apart(got, plain))
    if worst <= 1:
        return "equal"
    if _apart(want, plain) > 1:
        return "ill-conditioned"
    if not all(np.isfinite(array).all() for array in want.values()):
        return "not finite"
    return f"WRONG: off by {worst:.3g} bounds"


def _expected(data: bytes, inputs: Arrays, optimized: bool) -> Arrays:
    """ONNX Runtime's outputs; it may itself disagree with itself where a damaged model amplifies rounding."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs), strict=True))


def _apart(got: Arrays, want: Arrays) -> float:
    """The worst output's excess; outputs that saturated to nothing on both sides are equal."""
    return max(
        0.0 if _nothing(got[name]) and _nothing(array) else excess(got[name], array) for name, array in want.items()
    )


def _nothing(array: np.ndarray[Any, Any]) -> bool:
    return bool((np.abs(array) < 1e-6).all())


class Cell:
    """A process of its own for code compiled from damaged files: its death or silence is an outcome, not the end."""

    def __init__(self) -> None:
        self._pool = self._start()

    def outcome(self, case: ModelCase, data: bytes, compare: bool) -> str:
        """`outcome` of compiled code; a crash and a hang are faults, after which a new process goes on."""
        try:
            return self._pool.submit(outcome, case, data, compare, True).result(timeout=LONGEST_S)
        except (BrokenProcessPool, TimeoutError) as fault:
            self.close()
            self._pool = self._start()
            return f"WRONG: {'hangs' if isinstance(fault, TimeoutError) else 'crashes'}"

    def close(self) -> None:
        """End the process, even one that hangs."""
        for process in multiprocessing.active_children():
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> "Cell":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fuzz(
    name: str, count: int, compare: int, seed: int, mutate: bool = False, compiled: bool = False
) -> tuple[Counter[str], list[str]]:
    """(outcomes counted, faults) of so many damaged copies, of which up to `compare` that load are run.

    With `mutate` the copies are well-formed files with other attributes, ops or constants; with `compiled` it is
    compiled code that is run, in a process of its own.
    """
    case = next(case for case in CASES if case.name == name)
    data = Path(model_path(name)).read_bytes()
    copies = mutated(data, count, seed) if mutate else damaged(data, count, seed)
    if not compiled:
        return _tally(name, copies, compare, lambda bytes_, run: outcome(case, bytes_, run))
    with Cell() as cell:
        return _tally(name, copies, compare, lambda bytes_, run: cell.outcome(case, bytes_, run))


def _tally(
    name: str, copies: Iterator[tuple[str, bytes]], compare: int, judge: Callable[[bytes, bool], str]
) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for what, bytes_ in copies:
        began = time.monotonic()
        found = judge(bytes_, counts["equal"] + counts["not finite"] < compare)
        counts[found if not found.startswith("WRONG") else "WRONG"] += 1
        if found.startswith("WRONG"):
            faults.append(f"{name}: {what}: {found}")
        if time.monotonic() - began > LONGEST_S:
            faults.append(f"{name}: {what}: took {time.monotonic() - began:.0f} s")
    return counts, faults


def main() -> int:
    """Fuzz the models named on the command line, all by default; 1 when a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--compare", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutate", action="store_true", help="change attributes, ops and constants, not bits")
    parser.add_argument("--compiled", action="store_true", help="run compiled code, not the interpreter")
    given = parser.parse_args()
    failed = False
    for name in given.names:
        counts, faults = fuzz(name, given.count, given.compare, given.seed, given.mutate, given.compiled)
        print(name, dict(counts), flush=True)
        print(*faults, sep="\n", flush=True)
        failed = failed or bool(faults)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
