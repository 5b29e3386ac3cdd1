"""The scoreboard tells right from refused, wrong and crashed, and survives what it measures."""

import subprocess
import sys
import unittest

import pytest

from scoreboard.backend import RefusedError
from scoreboard.board import Worker, play
from scoreboard.judge import judged
from scoreboard.outcome import Outcome, Verdict
from scoreboard.page import heading, last_line, report


class _Cases(unittest.TestCase):
    """One case of each verdict."""

    def case_right(self) -> None:
        """Nothing happens."""

    def case_wrong(self) -> None:
        """Numbers differ."""
        self.assertEqual(1, 2)

    def case_refused(self) -> None:
        """The compiler says no."""
        raise RefusedError("UnsupportedOpError: no")

    def case_crashed(self) -> None:
        """What is no error of Cuvil's."""
        raise ZeroDivisionError("by zero")

    def case_skipped(self) -> None:
        """A case that is skipped was not passed."""
        raise unittest.SkipTest("not today")


@pytest.mark.parametrize("verdict", ["right", "wrong", "refused", "crashed"])
def test_verdicts(verdict: str) -> None:
    """What a case raises decides."""
    assert judged("x", (_Cases, f"case_{verdict}")).verdict is Verdict(verdict)


def test_a_skipped_case_counts_against_us() -> None:
    """Nothing is left out in silence."""
    assert judged("x", (_Cases, "case_skipped")).verdict is Verdict.CRASHED


def test_the_page_counts_every_case() -> None:
    """The table by class, the reasons, and the last line."""
    outcomes = [
        Outcome("Node/test_a", Verdict.RIGHT),
        Outcome("Node/test_b", Verdict.REFUSED, "Node '#0' uses op X"),
        Outcome("Node/test_c", Verdict.REFUSED, "Node '#7' uses op X"),
        Outcome("Real/test_d", Verdict.WRONG, "1 | 2"),
    ]
    text = report(outcomes, heading(2, "1.0", "2026-01-01", "--write docs/coverage.md"))
    assert "| Node | 1 | 2 | 0 | 0 | 3 |" in text
    assert "| 2 | Node uses op X | `Node/test_b` |" in text and "1 / 2" in text
    assert text.endswith(last_line(outcomes) + "\n")
    assert last_line(outcomes) == "scoreboard: 1 right, 2 refused, 1 wrong, 0 crashed of 4"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_dies_costs_one_case() -> None:
    """A killed process is a crash of its case; the next case has a new process, and real cases are right."""
    worker = Worker(2)
    assert worker.run("Node/test_abs").verdict is Verdict.RIGHT
    assert worker.process is not None
    worker.process.kill()
    worker.process.wait()
    assert worker.run("Node/test_abs").verdict is Verdict.CRASHED
    worker.stop()
    told: list[Outcome] = []
    found = play(["Node/test_add", "Node/test_image_decoder_decode_png_rgb"], 0, 1, told.append)
    assert [one.verdict for one in found] == [Verdict.RIGHT, Verdict.REFUSED] and len(told) == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_running_process_cannot_import_the_reference() -> None:
    """The hook that the worker sets stops the import."""
    code = (
        "import sys; from scoreboard.worker import _NoReference; sys.meta_path.insert(0, _NoReference())\n"
        "try:\n    import cuvil_core.reference\nexcept ImportError as fault:\n    print(fault)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "must not answer for compiled code" in done.stdout
