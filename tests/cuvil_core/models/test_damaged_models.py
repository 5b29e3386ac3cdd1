"""Damaged and altered files of models and artifacts: right or refused, never a crash or a hang.

`python tests/support/fuzz_models.py NAME --count 1000 --compare 50 --compiled` is the long form for models.
"""

from collections import Counter

import numpy as np
import pytest

from cuvil_core.compile import compile_model
from cuvil_core.contract import CompileRequest
from cuvil_core.errors import CuvilError
from cuvil_core.runtime import load
from fuzz_models import damaged, fuzz
from model_cases import CASES
from models import model_path

pytestmark = [pytest.mark.models, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("name", "compare"), [("ppocr-cls", 5), ("magika", 25), ("squeezenet", 20)])
def test_damaged_models_are_refused_or_compute_right(name: str, compare: int) -> None:
    """Of truncated and bit-flipped files those that load are compiled and give ONNX Runtime's numbers: 50 in all."""
    counts, faults = fuzz(name, count=3 * compare, compare=compare, seed=3, compiled=True)
    assert not faults
    assert counts["ModelError"] >= compare // 3, "truncations must have been refused"
    assert counts["equal"] + counts["not finite"] == compare, f"too few were compiled and compared: {counts}"


def test_altered_models_are_refused_or_compute_right() -> None:
    """Well-formed files with other attributes, ops and constants are compiled and give ONNX Runtime's numbers."""
    counts, faults = fuzz("magika", count=20, compare=20, seed=5, mutate=True, compiled=True)
    assert not faults
    assert counts["equal"] >= 4


def test_damaged_artifacts_are_refused_or_run_right() -> None:
    """Of 1,000 truncations and bit flips of a real artifact each is an ArtifactError or leaves the output's bits."""
    case = next(case for case in CASES if case.name == "magika")
    data = compile_model(model_path(case.name), CompileRequest(target="x86_64-cpu"))
    inputs = case.inputs(case.tiny)
    want = load(data).run(inputs)
    outcomes: Counter[str] = Counter()
    for what, bytes_ in damaged(data, count=1000, seed=9):
        try:
            got = load(bytes_).run(inputs)
        except CuvilError as error:
            outcomes[type(error).__name__] += 1
            continue
        outcomes["right"] += 1
        assert all(np.array_equal(got[name], want[name]) for name in want), what
    assert set(outcomes) <= {"ArtifactError", "right"}, outcomes
    assert outcomes["ArtifactError"] >= 800, outcomes
