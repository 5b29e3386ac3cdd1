"""What stands in examples/ works as it is."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from cuvil_operator.api import CuvilModelSpec

ROOT = Path(__file__).parents[2]


def test_compile_and_run(tmp_path: Path) -> None:
    """The script compares itself with NumPy and leaves the two files that README goes on with."""
    caches = {
        "CUVIL_CACHE_DIR": str(tmp_path / "cache"),
        "ZIG_GLOBAL_CACHE_DIR": f"{tempfile.gettempdir()}/cuvil-test-zig",
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "compile_and_run.py")],
        cwd=tmp_path,
        env={**os.environ, **caches, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "small(x float32(N, 4)) → y float32(N, 3)" in done.stdout
    assert {"model.onnx", "model.cuvil"} <= {path.name for path in tmp_path.iterdir()}


def test_tiny_reads() -> None:
    """The model of README is a valid spec whose file is the one that the script makes, in the namespace of the text."""
    text = (ROOT / "examples" / "tiny.yaml").read_text()
    tiny = yaml.safe_load(text)
    spec = CuvilModelSpec.from_dict(tiny["spec"])
    assert spec.model.uri == "configmap://tiny-model/model.onnx"
    readme = (ROOT / "README.md").read_text()
    for line in (
        f"kubectl create namespace {tiny['metadata']['namespace']}",
        "create configmap tiny-model --from-file=model.onnx",
    ):
        assert line in readme and line in text
