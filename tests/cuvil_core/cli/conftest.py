"""The folder in which the commands run."""

import tempfile
from pathlib import Path

import pytest

import handmade


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a working folder of the test's own."""
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker"))
    # The C compiler's runtime pieces take seconds to build; they are the same for every test.
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", f"{tempfile.gettempdir()}/cuvil-test-zig")
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    (tmp_path / "m.onnx").write_bytes(handmade.model())
    # A field that no reader knows: the same graph in another file.
    (tmp_path / "other.onnx").write_bytes(handmade.model() + b"\xfa\x7f\x01x")
    monkeypatch.chdir(tmp_path)
    return tmp_path
