"""`python -m benchmarks [--threads 2] [--only NAME] [--json FILE]`: Cuvil beside ONNX Runtime, fp32, interleaved.

Prints for each model p10 of both, the ratio Cuvil ÷ ONNX Runtime (above 1: slower), the largest difference of the
outputs relative to their magnitude, the seconds of a first `cuvil.compile`, and the milliseconds of one that the cache
answers, modules imported: hash the model's file, check the artifact, map it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case
from models import model_path

ROUNDS = 12
ROUND_SECONDS = 0.4
"""About how long one contender runs before the other's turn."""


class Contender:
    """A worker process and its pipe."""

    def __init__(self, name: str, case: Case, threads: int, cache: str | None = None) -> None:
        environment = {**os.environ, **({"CUVIL_CACHE_DIR": cache} if cache else {})}
        file = model_path(case.model)
        command = [sys.executable, "-m", "benchmarks.worker", name, case.model, str(file), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.ready: dict[str, Any] = self.ask(case.shape)

    def ask(self, words: object) -> Any:
        """Send one line and read the answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"bench: a contender ended with exit code {self._process.wait()}")
        return json.loads(line)

    def outputs(self) -> list[np.ndarray]:
        """Give the first run's outputs."""
        with np.load(self.ready["outputs"]) as held:
            found = [held[name] for name in held.files]
        Path(self.ready["outputs"]).unlink()
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)


@dataclass(frozen=True, slots=True)
class Row:
    """One model's figures."""

    title: str
    cuvil_ms: float
    onnxruntime_ms: float
    ratio: float
    """Cuvil ÷ ONNX Runtime, p10 of each."""
    error: float
    """Largest difference of an output, relative to its largest magnitude."""
    compile_s: float
    cached_load_ms: float


def measure(case: Case, threads: int) -> Row:
    """Compile afresh, load from the cache, then run both in turn."""
    with tempfile.TemporaryDirectory() as cache:
        first = Contender("cuvil", case, threads, cache)
        compiled = first.ready["first_s"]
        first.outputs()
        first.close()
        ours, theirs = Contender("cuvil", case, threads, cache), Contender("onnxruntime", case, threads)
        error = max(_difference(a, b) for a, b in zip(ours.outputs(), theirs.outputs(), strict=True))
        seconds: dict[Contender, list[float]] = {ours: [], theirs: []}
        for one in (ours, theirs):
            one.ask(3)
        for _ in range(ROUNDS):
            for one, kept in seconds.items():
                estimate = min(kept) if kept else max(one.ask(2))
                kept += one.ask(max(2, min(200, int(ROUND_SECONDS / estimate))))
        ours.close()
        theirs.close()
    mine, other = (1000 * float(np.percentile(kept, 10)) for kept in seconds.values())
    return Row(case.title, mine, other, mine / other, error, compiled, 1000 * ours.ready["again_s"])


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    scale = float(np.abs(b).max()) or 1.0
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) / scale


def main() -> int:
    """Print the table; the last line sums it up."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", action="append", help="a model's name; may be given again")
    parser.add_argument("--json", type=Path, help="also write the rows as data")
    chosen = parser.parse_args()
    head = ("model", "cuvil ms", "ort ms", "ratio", "error", "compile s", "load ms")
    print(f"{head[0]:<28}" + "".join(f"{word:>11}" for word in head[1:]), flush=True)
    rows = []
    for case in CASES:
        if not chosen.only or case.model in chosen.only:
            row = measure(case, chosen.threads)
            rows.append(row)
            print(
                f"{row.title:<28}{row.cuvil_ms:>11.2f}{row.onnxruntime_ms:>11.2f}{row.ratio:>11.2f}{row.error:>11.1e}"
                f"{row.compile_s:>11.1f}{row.cached_load_ms:>11.0f}",
                flush=True,
            )
    if chosen.json:
        chosen.json.write_text(json.dumps({"at": time.time(), "rows": [asdict(row) for row in rows]}, indent=1))
    mean = float(np.exp(np.mean([np.log(row.ratio) for row in rows])))
    slow = [row.title for row in rows if row.ratio > 2] or ["none"]
    print(f"bench: geometric mean {mean:.2f} of ONNX Runtime's time; slower than 2×: {', '.join(slow)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
