"""Torch tensors go in and come out, in an environment that has the real torch."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cuvil
from model_cases import CASES
from models import model_path, torch_python

pytestmark = [pytest.mark.models, pytest.mark.timeout(1200)]
ROOT = Path(__file__).resolve().parents[3]


def test_torch_in_torch_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, strided and gradient-tracked tensors give the very bits that NumPy gives; other types are refused."""
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    (case,) = (one for one in CASES if one.name == "ppocr-cls")
    (x,) = case.inputs(case.shapes[0]).values()
    module = cuvil.compile(model_path(case.name))
    module.save(tmp_path / "model.cuvil")
    np.savez(tmp_path / "tensors.npz", x=x, y=module(x))
    script = ROOT / "tests" / "support" / "call_with_torch.py"
    words = [str(torch_python()), str(script), str(tmp_path / "model.cuvil"), str(tmp_path / "tensors.npz")]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
