"""Damaged and altered model files, compiled: right or refused, never a crash or a hang.

`python tests/support/fuzz_models.py NAME --count 1000 --compare 50 --compiled` is the long form.
"""

import pytest

from fuzz_models import fuzz

pytestmark = [pytest.mark.models, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("name", "compare"), [("ppocr-cls", 20), ("magika", 20), ("squeezenet", 10)])
def test_damaged_models_are_refused_or_compute_right(name: str, compare: int) -> None:
    """Of truncated and bit-flipped files those that load are compiled and give ONNX Runtime's numbers: 50 in all."""
    counts, faults = fuzz(name, count=3 * compare, compare=compare, seed=3, compiled=True)
    assert not faults
    assert counts["ModelError"] >= compare // 3, "truncations must have been refused"
    assert counts["equal"] + counts["not finite"] == compare, f"too few were compiled and compared: {counts}"


@pytest.mark.parametrize("name", ["magika"])
def test_altered_models_are_refused_or_compute_right(name: str) -> None:
    """Well-formed files with other attributes, ops and constants are compiled and give ONNX Runtime's numbers."""
    counts, faults = fuzz(name, count=20, compare=20, seed=5, mutate=True, compiled=True)
    assert not faults
    assert counts["equal"] >= 4
