"""Checking an artifact against its source model: true ones pass, wrong ones do not, and the report says by how much."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handmade
from cuvil_core.contract import TensorSpec
from cuvil_core.errors import AccuracyError, InputError, MissingError, ModelError, SizeError
from cuvil_core.runtime import load
from cuvil_core.validate import Limits, Oracle, check, measure_pair, read_golden
from cuvil_core.validate.inputs import STYLES, draw, size_choices
from cuvil_core.validate.numbers import compare

QUICK = Limits(runs=20, warm_up=2)


def test_a_true_artifact_passes() -> None:
    """The handmade program agrees with ONNX Runtime at three sizes; weights and arena are weighed."""
    got = check(load(handmade.artifact()), Oracle(handmade.model(), 1), QUICK, model_sha256="ab")
    assert got.report.passed and got.notes == ()
    assert {one.name for one in got.report.outputs} == {"y", "total"}
    assert all(one.max_rel < 1e-5 for one in got.report.outputs)
    assert got.report.memory.weights == 12 and got.report.memory.peak_activations >= 36
    assert got.report.latency.runs == 20 and 0 < got.report.latency.p50_ms <= got.report.latency.p90_ms


def test_a_wrong_artifact_fails() -> None:
    """Weights off by 1 % put both outputs outside the bound, and the report says how far."""
    wrong = load(handmade.artifact((handmade.WEIGHTS * 1.01).tobytes()))
    report = check(wrong, Oracle(handmade.model(), 1), QUICK, model_sha256="ab").report
    assert not report.passed
    assert {one.name: one.within for one in report.outputs} == {"y": False, "total": False}
    assert all(1e-3 < one.max_rel < 0.1 for one in report.outputs)


def test_a_slow_artifact_fails() -> None:
    """A latency limit below what is possible is missed; the numbers still pass."""
    report = check(
        load(handmade.artifact()),
        Oracle(handmade.model(), 1),
        Limits(latency_ms=1e-6, runs=5, warm_up=1),
        model_sha256="",
    ).report
    assert not report.latency.within and all(one.within for one in report.outputs)


def test_baseline_is_timed_in_turn() -> None:
    """With a baseline both medians are in the report, and the ratio decides."""
    module, oracle = load(handmade.artifact()), Oracle(handmade.model(), 1)
    loose = check(module, oracle, Limits(max_ratio=100, runs=50), model_sha256="", baseline=load(handmade.artifact()))
    assert loose.report.latency.baseline_p50_ms and loose.report.latency.within
    tight = check(module, oracle, Limits(max_ratio=0.01, runs=50), model_sha256="", baseline=load(handmade.artifact()))
    assert not tight.report.latency.within


def test_constant_outputs_are_told() -> None:
    """Zero weights give a constant output: the note names it."""
    zeros = handmade.model().replace(handmade.WEIGHTS.tobytes(), np.zeros(3, np.float32).tobytes())
    got = check(load(handmade.artifact(bytes(12))), Oracle(zeros, 1), QUICK, model_sha256="")
    assert got.report.passed
    assert any("'total' is the same for every input" in note for note in got.notes)


def test_sizes_refused_by_the_artifact_are_told() -> None:
    """Where bounds leave only sizes that a guard refuses, nothing is compared and that is an error."""
    module = load(handmade.artifact(bounds={"N": [101, 200]}))
    with pytest.raises(AccuracyError, match="no size was found"):
        check(module, Oracle(handmade.model(), 1), QUICK, model_sha256="")


def test_golden_cases(tmp_path: Path) -> None:
    """Right golden outputs pass, a wrong one fails; several cases and missing outputs are understood."""
    x = np.random.default_rng(0).standard_normal((4, 3), np.float32)
    y, total = handmade.expected(x)
    manifest = load(handmade.artifact()).artifact.manifest
    np.savez(tmp_path / "one.npz", x=x, y=y, total=total)
    cases: dict[str, Any] = {"0/x": x, "0/y": y, "1/x": x[:1], "1/total": total[:1] + 1}
    np.savez(tmp_path / "two.npz", **cases)
    good, bad = (read_golden(tmp_path / name, manifest) for name in ("one.npz", "two.npz"))
    assert check(load(handmade.artifact()), None, QUICK, model_sha256="", golden=good).report.passed
    report = check(load(handmade.artifact()), None, QUICK, model_sha256="", golden=bad).report
    assert {one.name: one.within for one in report.outputs} == {"y": True, "total": False}


def test_golden_files_are_never_trusted(tmp_path: Path) -> None:
    """Pickles, bombs, foreign names, garbage and missing files are refused by their errors."""
    manifest = load(handmade.artifact()).artifact.manifest
    np.savez(tmp_path / "pickle.npz", x=np.array([{"a": 1}], dtype=object), y=np.zeros(1))
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros(1_000_000, np.float32))
    np.savez(tmp_path / "names.npz", z=np.zeros(1))
    np.savez(tmp_path / "inputs.npz", x=np.zeros((1, 3), np.float32))
    (tmp_path / "garbage.npz").write_bytes(b"PK\x03\x04garbage")
    for name, error in (
        ("pickle", InputError),
        ("names", InputError),
        ("inputs", InputError),
        ("garbage", InputError),
        ("none", MissingError),
    ):
        with pytest.raises(error):
            read_golden(tmp_path / f"{name}.npz", manifest)
    with pytest.raises(SizeError):
        read_golden(tmp_path / "bomb.npz", manifest, limit=10_000)


def test_oracle_errors() -> None:
    """Bytes that are no model and a missing file have their errors."""
    with pytest.raises(ModelError, match="cannot load"):
        Oracle(b"nonsense")
    with pytest.raises(MissingError):
        Oracle("/none.onnx")


COMPARISONS = {
    "equal": ([1.0, 2.0], [1.0, 2.0], True),
    "within rtol": ([1.0009, 2.0], [1.0, 2.0], True),
    "beyond rtol": ([1.0, 2.01], [1.0, 2.0], False),
    "near zero, by magnitude": ([1e-5, 1.0], [0.0, 1.0], True),
    "near zero, too far": ([1e-2, 1.0], [0.0, 1.0], False),
    "all zero": ([1e-5, 0.0], [0.0, 0.0], True),
    "NaN matches NaN": ([np.nan, 1.0], [np.nan, 1.0], True),
    "NaN for a number": ([np.nan, 1.0], [1.0, 1.0], False),
    "number for NaN": ([1.0, 1.0], [np.nan, 1.0], False),
    "infinity matches": ([np.inf, 1.0], [np.inf, 1.0], True),
    "wrong infinity": ([-np.inf, 1.0], [np.inf, 1.0], False),
    "infinity for a number": ([np.inf, 1.0], [1.0, 1.0], False),
    "shape": ([1.0], [1.0, 1.0], False),
}


@pytest.mark.parametrize("case", COMPARISONS)
def test_comparison(case: str) -> None:
    """Each way of agreeing and of differing is judged as the docstring says."""
    got, want, within = COMPARISONS[case]
    found = compare("y", np.array(got, np.float32), np.array(want, np.float32), 1e-3, 1e-4)
    assert found.within is within


def test_integers_must_be_equal() -> None:
    """One off is outside for integers, whatever the tolerance."""
    assert not compare("y", np.array([1001]), np.array([1000]), 1e-2, 1e-2).within
    assert compare("y", np.array([1000]), np.array([1000]), 0, 0).within


def test_inputs_come_from_seeds() -> None:
    """Equal seeds give equal inputs, other seeds others; integers stay in their bound, small types too."""
    specs = (TensorSpec("a", "float32", (2, 3)), TensorSpec("b", "int8", (50,)), TensorSpec("c", "bool", ()))
    shapes = {"a": (2, 3), "b": (50,), "c": ()}
    for style in STYLES:
        one, same, other = (draw(specs, shapes, style, seed) for seed in (1, 1, 2))
        assert all(np.array_equal(one[name], same[name]) for name in one)
        assert not np.array_equal(one["a"], other["a"])
        assert one["b"].min() >= 0 and one["a"].dtype == np.float32 and one["c"].shape == ()


def test_sizes_stay_within_bounds() -> None:
    """Every choice keeps the bounds; batch and image sizes both change."""
    specs = (TensorSpec("x", "float32", ("N", 3, "H", "W")),)
    bounds = {"N": (1, 2), "H": (32, 320), "W": (32, None)}
    found = list(size_choices(specs, bounds))
    assert {one["N"] for one in found} == {1, 2}
    assert len({(one["H"], one["W"]) for one in found}) > 3
    assert all(32 <= one["H"] <= 320 and one["W"] >= 32 for one in found)


def test_stopwatch_interleaves() -> None:
    """Both works run equally often, and neither always first."""
    calls: list[str] = []
    measure_pair(lambda: calls.append("a"), lambda: calls.append("b"), runs=4, warm_up=1)
    assert "".join(calls) == "ab" + "abbaabba"


def test_slow_works_are_timed_less_often() -> None:
    """With a clock that runs 1 s a call, the budget cuts 500 runs to the few that fit, never below the least."""
    now = [0.0]

    def tick() -> None:
        now[0] += 1.0

    few, _ = measure_pair(tick, None, clock=lambda: now[0], budget=50)
    assert few.runs == 51 and few.p50_ms == 1_000
    least, _ = measure_pair(tick, None, clock=lambda: now[0], budget=1)
    assert least.runs == 20


def test_magnitude_is_that_of_all_cases(tmp_path: Path) -> None:
    """A case whose output nearly vanishes is judged by the output's magnitude in the other cases."""
    x = np.array([[1.0, 1.0, 1.0], [1e-6, 0.0, 0.0]], np.float32)
    y = handmade.expected(x)[0]
    off = y[1:] + np.float32(1e-7)
    manifest = load(handmade.artifact()).artifact.manifest
    cases: dict[str, Any] = {"0/x": x[:1], "0/y": y[:1], "1/x": x[1:], "1/y": off}
    np.savez(tmp_path / "both.npz", **cases)
    np.savez(tmp_path / "one.npz", x=x[1:], y=off)
    both, one = (read_golden(tmp_path / f"{name}.npz", manifest) for name in ("both", "one"))
    assert check(load(handmade.artifact()), None, QUICK, model_sha256="", golden=both).report.passed
    assert not check(load(handmade.artifact()), None, QUICK, model_sha256="", golden=one).report.passed
