"""Damaged model files."""

import pytest

from fuzz_models import fuzz

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["magika", "ppocr-cls", "nudenet"])
def test_damaged_models_are_refused_or_right(name: str) -> None:
    """Truncated and bit-flipped files end in one sentence or in ONNX Runtime's numbers, never in a crash or hang."""
    counts, faults = fuzz(name, count=40, compare=5, seed=7)
    assert not faults
    assert counts["ModelError"] >= 5, "truncations must have been refused"
    assert counts["equal"] + counts["not finite"] >= 1, "some damaged weights must have been run"


@pytest.mark.parametrize("name", ["magika", "ppocr-cls"])
def test_mutated_models_are_refused_or_right(name: str) -> None:
    """Well-formed files with other attributes, ops and constants end in one sentence or in ONNX Runtime's numbers."""
    counts, faults = fuzz(name, count=40, compare=40, seed=11, mutate=True)
    assert not faults
    assert counts["equal"] >= 8 and counts["ModelError"] >= 4
