"""The front door: what is exported, what a request may be, what the cache's key sees."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest

import cuvil
import handmade
from cuvil_core.cache import Cache
from cuvil_core.contract import CompileRequest, InputSpec
from cuvil_core.errors import InputError, MissingError, TargetError
from cuvil_core.front import compile_cached, compiler_identity, input_spec, make_request, model_digest

ROOT = Path(__file__).resolve().parents[2]


def test_every_export_is_there() -> None:
    """Each name of __all__ can be had, an unknown one is an AttributeError that lists them."""
    for name in cuvil.__all__:
        assert getattr(cuvil, name) is not None
    assert set(cuvil.__all__) <= set(dir(cuvil))
    with pytest.raises(AttributeError, match=r"it has .*compile"):
        _ = cuvil.jit


def test_the_page_names_every_export() -> None:
    """docs/reference/python.md has each public name, and each public member of a module."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    members = [name for name in vars(cuvil.CuvilModule) if not name.startswith("_")]
    assert [name for name in (*cuvil.__all__, *members) if name not in page] == []


def test_version_is_the_packages() -> None:
    """The version in code is that of pyproject.toml."""
    assert cuvil.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_import_is_light() -> None:
    """Importing cuvil brings in neither NumPy, onnx, torch nor the compiler."""
    code = "import sys, cuvil; print([one for one in sys.modules if one.split('.')[0] in sys.argv[1:]])"
    heavy = ["numpy", "onnx", "torch", "cuvil_core", "rich", "typing"]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *heavy], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults, the level of the environment, and specs in both spellings."""
    monkeypatch.delenv("CUVIL_IR_OPT_LEVEL", raising=False)
    assert make_request() == CompileRequest()
    monkeypatch.setenv("CUVIL_IR_OPT_LEVEL", "1")
    assert make_request().opt_level == 1 and make_request(opt_level=3).opt_level == 3
    monkeypatch.setenv("CUVIL_IR_OPT_LEVEL", "fast")
    with pytest.raises(InputError, match="CUVIL_IR_OPT_LEVEL"):
        make_request()
    want = InputSpec("x", ("N", 3), {"N": (1, 8)})
    for bounds in ({"N": [1, 8]}, {"N": {"min": 1, "max": 8}}):
        assert input_spec({"name": "x", "shape": ["N", 3], "bounds": bounds}) == want
    assert make_request(inputs=[want], opt_level=2).inputs == (want,)


def described(**parts: object) -> Callable[[], object]:
    """The reading of an input that is called x and has symbol N, but for what is passed."""
    return lambda: input_spec({"name": "x", "shape": ["N"], **parts})


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "target": (lambda: make_request("wasm32"), TargetError, "this version has native, x86_64-cpu"),
    "precision": (lambda: make_request(precision="bf16"), TargetError, "this version has fp32_strict, fp32"),
    "format": (lambda: make_request(format="torchscript"), TargetError, "this version reads onnx"),
    "level": (lambda: make_request(opt_level=7), InputError, "use 0, 1, 2 or 3"),
    "bounds upside down": (
        lambda: input_spec({"name": "x", "shape": ["N"], "bounds": {"N": [4, 2]}}),
        InputError,
        "1 ≤ min ≤ max",
    ),
    "bound of nothing": (
        lambda: input_spec({"name": "x", "shape": [1], "bounds": {"N": [1, 2]}}),
        InputError,
        "name it there",
    ),
    "bound that is infinite": (described(bounds={"N": [1, float("inf")]}), InputError, "describes no input"),
    "bound that is no whole number": (described(bounds={"N": [1, 8.5]}), InputError, "describes no input"),
    "bound that is a text": (described(bounds={"N": ["1", "8"]}), InputError, "describes no input"),
    "bound beyond extents": (described(bounds={"N": [1, 1 << 63]}), InputError, "max ≤ 9223372036854775807"),
    "bound with more": (described(bounds={"N": {"min": 1, "max": 2, "step": 1}}), InputError, "describes no input"),
    "unknown key": (described(bonds={"N": [1, 2]}), InputError, "has no 'bonds'; write bounds, name, shape"),
    "shape that is a text": (described(shape="NC"), InputError, "numbers and names"),
    "an input twice": (
        lambda: make_request(inputs=[{"name": "x", "shape": ["N"]}, InputSpec("x", (1,))]),
        InputError,
        "'x' is described 2 times",
    ),
    "empty path": (lambda: cuvil.compile(""), InputError, "the path of the model is ''; name a file"),
    "zero byte": (lambda: cuvil.compile("a\0b"), InputError, "the path of the model is"),
    "shape of floats": (lambda: input_spec({"name": "x", "shape": [1.5]}), InputError, "numbers and names"),
    "no name": (lambda: input_spec({"shape": [1]}), InputError, "describes no input"),
    "no model": (lambda: cuvil.compile(), InputError, "no model was passed"),
    "a ModelProto": (
        lambda: cuvil.compile(cast(Any, onnx.load_from_string(handmade.model()))),
        InputError,
        r"the model is a ModelProto; pass .* model\.SerializeToString\(\)",
    ),
    "missing model": (lambda: cuvil.compile("/none.onnx"), MissingError, "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    """Each request that cannot be has its error, which names what exists."""
    call, error, sentence = REFUSED[case]
    with pytest.raises(error, match=sentence):
        call()


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is compiled all the same, with a warning that says what helps."""
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", f"{tempfile.gettempdir()}/cuvil-test-zig")
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match=r"cannot be written.*until CUVIL_CACHE_DIR names a folder"):
        module = cuvil.compile(handmade.model())
    assert module.report.target == "native"


def test_external_data_counts(tmp_path: Path) -> None:
    """A change in a file that the model points to changes the digest; a model without any has the file's own."""
    model = tmp_path / "m.onnx"
    model.write_bytes(b"head \x0a\x08location\x12\x05w.bin tail")
    (tmp_path / "w.bin").write_bytes(b"one")
    first = model_digest(model)
    (tmp_path / "w.bin").write_bytes(b"two")
    assert model_digest(model) != first
    from hashlib import sha256

    model.write_bytes(b"plain")
    assert model_digest(model) == model_digest(b"plain") == sha256(b"plain").hexdigest()
    padding = bytes((1 << 20) - 10)
    model.write_bytes(padding + b"\x0a\x08location\x12\x05w.bin")
    across = model_digest(model)
    (tmp_path / "w.bin").write_bytes(b"three")
    assert model_digest(model) != across


def test_identity_is_stable() -> None:
    """The compiler's identity is the same twice and begins with the version."""
    assert compiler_identity() == compiler_identity()
    assert compiler_identity().startswith(f"{cuvil.__version__}+")


def test_compile_runs_and_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is compiled once, computes what ONNX Runtime computes, and the second call finds it in the cache."""
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", f"{tempfile.gettempdir()}/cuvil-test-zig")
    cache, request, stages = Cache(tmp_path / "cache"), make_request(), []
    first = compile_cached(handmade.model(), request, cache=cache, progress=lambda stage, part: stages.append(stage))
    second = compile_cached(handmade.model(), request, cache=cache)
    assert (first.hit, second.hit, first.note) == (False, True, "") and len(stages) > 3
    x = np.random.default_rng(0).standard_normal((5, 3), np.float32)
    for compiled in (first, second):
        y, total = compiled.module(x)
        np.testing.assert_allclose(y, handmade.expected(x)[0], rtol=1e-6)
        np.testing.assert_allclose(total, handmade.expected(x)[1], rtol=1e-5, atol=1e-6)
    assert first.module.report.target == "native" and first.module.metadata == {}
