"""Hands cases to worker processes, replaces those that die, counts."""

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from scoreboard.outcome import Outcome, Verdict

SECONDS = 120.0
"""A case that takes longer counts as crashed."""


@dataclass(slots=True)
class Worker:
    """One process that runs cases; a new one takes the place of one that died."""

    level: int
    process: subprocess.Popen[str] | None = None
    answers: "queue.Queue[str]" = field(default_factory=queue.Queue)

    def run(self, case: str) -> Outcome:
        """The outcome of one case, whatever becomes of the process."""
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(case + "\n")
            process.stdin.flush()
            line = self.answers.get(timeout=SECONDS)
        except queue.Empty:
            self.stop()
            return Outcome(case, Verdict.CRASHED, f"it took longer than {SECONDS:.0f} s")
        except OSError:
            line = ""
        if line:
            return Outcome.of_json(line)
        status = process.wait()
        self.process = None
        return Outcome(case, Verdict.CRASHED, f"the process ended with status {status}")

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = start(self.level, [])
            self.answers = queue.Queue()
            threading.Thread(target=_forward, args=(self.process, self.answers), daemon=True).start()
        return self.process


def _forward(process: "subprocess.Popen[str]", answers: "queue.Queue[str]") -> None:
    """Lines of the process, then an empty one when it has ended."""
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put("")


def start(level: int, words: Sequence[str]) -> "subprocess.Popen[str]":
    """A worker process; its standard error is left out, as outcomes tell."""
    command = [sys.executable, "-m", "scoreboard.worker", str(level), *words]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_single()
    )


def _single() -> dict[str, str]:
    """One thread a process, as workers share the cores; what the suite writes beside its models goes with the run."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ONNX_HOME": _home().name}


@cache
def _home() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="cuvil-scoreboard-")


def names(level: int) -> list[str]:
    """All CPU cases of the suite, sorted."""
    text, _ = start(level, ["list"]).communicate()
    found = text.split()
    if not found:
        raise RuntimeError("onnx.backend.test gave no cases; is the onnx package whole?")
    return found


def play(cases: Iterable[str], level: int, workers: int, tell: Callable[[Outcome], None]) -> list[Outcome]:
    """The outcomes of all cases, told one by one as they come; sorted by case."""
    left: queue.SimpleQueue[str] = queue.SimpleQueue()
    for case in cases:
        left.put(case)
    found: list[Outcome] = []
    lock = threading.Lock()

    def work() -> None:
        worker = Worker(level)
        for case in _drained(left):
            outcome = worker.run(case)
            with lock:
                found.append(outcome)
                tell(outcome)
        worker.stop()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found, key=lambda outcome: outcome.case)


def _drained(left: "queue.SimpleQueue[str]") -> Iterator[str]:
    while True:
        try:
            yield left.get_nowait()
        except queue.Empty:
            return
