"""The contract's texts come back as they went in, and anything else is a ValueError that says what is wrong."""

import json
import random
from dataclasses import asdict, replace

import pytest

from cuvil_core.contract import (
    CompileRequest,
    ExitCode,
    InputSpec,
    LatencyReport,
    Manifest,
    MemoryReport,
    Outcome,
    OutputError,
    Segment,
    ServingSettings,
    TensorSpec,
    ValidationReport,
)
from cuvil_core.contract.outcome import TERMINATION_LIMIT

MANIFEST = Manifest(
    "m",
    "ab" * 32,
    CompileRequest("x86_64-cpu", inputs=(InputSpec("x", ("N", 3), {"N": (1, 8)}),)),
    (TensorSpec("x", "float32", ("N", 3)),),
    (TensorSpec("y", "float32", ("N",)),),
    (Segment("weights", 4096, 10, "cd" * 32),),
    "1",
    {"k": "v"},
    {"ops": 3},
)
SETTINGS = ServingSettings("m", "0123456789ab", "/a", "ab" * 32, 0.8)


def test_manifest_round_trip() -> None:
    """A manifest is equal after its JSON."""
    assert Manifest.from_json(MANIFEST.to_json()) == MANIFEST


def test_damaged_manifests_are_value_errors() -> None:
    """1,000 seeded replacements of one value by a foreign one never raise anything but ValueError."""
    dice = random.Random(3)
    foreign: list[object] = [None, -1, 1.5, "x", [], {}, [[]], {"a": 1}, True, "9" * 50]
    for _ in range(1_000):
        raw = json.loads(MANIFEST.to_json())
        place = raw
        while True:
            key = dice.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], dict | list) and place[key] and dice.random() < 0.7:
                place = place[key]
                continue
            place[key] = dice.choice(foreign)
            break
        try:
            Manifest.from_json(json.dumps(raw))
        except ValueError:
            continue


def test_settings_round_trip_and_refusals() -> None:
    """Settings are equal after their JSON; a wrong type, a missing and an unknown key are refused by name."""
    assert ServingSettings.from_json(SETTINGS.to_json()) == SETTINGS
    assert ServingSettings.from_json(replace(SETTINGS, threshold_seconds=1).to_json()).threshold_seconds == 1
    for change, word in (
        ({"queue": "many"}, "queue"),
        ({"queue": True}, "queue"),
        ({"queue": -1}, "queue"),
        ({"threshold_seconds": 0}, "threshold_seconds"),
        ({"threshold_seconds": float("inf")}, "threshold_seconds"),
        ({"threshold_seconds": float("nan")}, "threshold_seconds"),
        ({"threshold_seconds": 10**400}, "threshold_seconds"),
        ({"colour": 1}, "colour"),
        ({"reject_non_finite": 1}, "reject_non_finite"),
    ):
        with pytest.raises(ValueError, match=word):
            ServingSettings.from_json(json.dumps(asdict(SETTINGS) | change))
    with pytest.raises(ValueError, match=r"lack revision, sha256, threshold_seconds; add them$"):
        ServingSettings.from_json('{"model": "m", "artifact": "/a"}')
    with pytest.raises(ValueError, match=r"no serving setting 'colour'; remove it, or write one of model, revision"):
        ServingSettings.from_json('{"colour": 1}')
    for text in ("[]", "{}", "1", "no"):
        with pytest.raises(ValueError):
            ServingSettings.from_json(text)


def test_outcome_fits_the_kubelet() -> None:
    """An overlong message is cut to the limit; code, reason and result stay."""
    long = Outcome(ExitCode.BAD_MODEL, "Model", "ü" * 9_000, {"a": 1})
    text = long.to_json()
    assert len(text.encode()) <= TERMINATION_LIMIT
    back = Outcome.from_json(text)
    assert (back.code, back.reason, back.result) == (long.code, long.reason, long.result)
    assert back.message.endswith("…")


def test_report_round_trip() -> None:
    """A report is equal after its JSON, and passes only when all of it is within bounds."""
    report = ValidationReport(
        "a", "b", 1e-3, 1e-4, (OutputError("y", 0.0, 0.0, True),), LatencyReport(1.0, 2.0, 500), MemoryReport(1, 2)
    )
    assert ValidationReport.from_json(report.to_json()) == report
    assert report.passed
    assert not replace(report, outputs=(OutputError("y", 1.0, 1.0, False),)).passed
    assert not replace(report, latency=LatencyReport(9.0, 9.0, 500, within=False)).passed


def test_signatures_differ_where_anything_differs() -> None:
    """Each name, dtype, extent, order and bound changes the text, which is one line of ASCII."""
    from cuvil_core.contract import signature_text

    x, z = TensorSpec("x", "float32", ("N", 3)), TensorSpec("ü\n", "float32", ("N",))
    open_, bound = {"N": (1, None)}, {"N": (1, 8)}
    texts = [
        signature_text(open_, (x, z), ()),
        signature_text(open_, (z, x), ()),
        signature_text(open_, (x,), (z,)),
        signature_text(bound, (x, z), ()),
        signature_text({**open_, "M": (1, None)}, (x, z), ()),
        signature_text(open_, (replace(x, dtype="int32"), z), ()),
        signature_text(open_, (replace(x, shape=("N", "3")), z), ()),
    ]
    assert len(set(texts)) == len(texts)
    assert all(text.isascii() and "\n" not in text for text in texts)
