"""The command as users and Jobs run it: results, JSON, exit codes, one sentence for every error."""

import json
import os
import re
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handmade
import web_server
from cuvil_core.cli.arguments import COMMANDS, build_parser
from cuvil_core.cli.main import main
from cuvil_core.contract import ExitCode, Outcome, ValidationReport

QUICK = ["--runs", "10", "--warm-up", "2"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output, errors."""
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    """Signature, digest and whether it runs here, for people and as JSON."""
    code, out, _ = run(capsys, "inspect", "a.cuvil")
    assert code == 0 and "(x float32(N, 3)) → y float32(N, 3), total float32(N)" in out and "yes, x86_64-avx2" in out
    packed = handmade.artifact(bounds={"N": [1, None], "M": [1, 8]}, asserts=[], arena_bytes_at_most=None)
    Path("facts.cuvil").write_bytes(packed)
    spelled = run(capsys, "inspect", "facts.cuvil")[1]
    assert "M: 1 to 8; N: 1 and more" in spelled
    assert "None" not in spelled and "[]" not in spelled
    data = json.loads(run(capsys, "inspect", "a.cuvil", "--json")[1])
    assert data["sha256"] == sha256(handmade.artifact()).hexdigest() and data["name"] == "handmade"


def test_run_with_given_and_random_inputs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Given arrays give the program's outputs as npz; without any, a size that works is drawn from the seed."""
    x = np.random.default_rng(0).standard_normal((4, 3), np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    assert run(capsys, "run", "a.cuvil", "--inputs", "in.npz", "-o", "out.npz")[0] == 0
    with np.load(tmp_path / "out.npz") as outputs:
        np.testing.assert_allclose(outputs["y"], handmade.expected(x)[0], rtol=1e-6)
    code, out, err = run(capsys, "run", "a.cuvil")
    assert code == 0 and "total" in out and "inputs are random: x [1, 3]" in err
    data = json.loads(run(capsys, "run", "a.cuvil", "--shape", "x=5,3", "--json")[1])
    assert data["outputs"]["y"]["shape"] == [5, 3]


def test_verify_passes_and_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A true artifact is 0 with its digest in the termination message; wrong numbers are 12, too slow 13, both told."""
    log = tmp_path / "log"
    code, out, _ = run(capsys, "verify", "a.cuvil", "--model", "m.onnx", *QUICK, "--termination-log", str(log))
    assert code == 0 and "max error" in out
    outcome = Outcome.from_json(log.read_text())
    assert outcome.code == 0 and outcome.result["passed"] and outcome.result["weights"] == 12
    (tmp_path / "wrong.cuvil").write_bytes(handmade.artifact((handmade.WEIGHTS * 2).tobytes()))
    report = tmp_path / "report.json"
    arguments = ["verify", "wrong.cuvil", "--model", "m.onnx", *QUICK, "--termination-log", str(log)]
    code, out, err = run(capsys, *arguments, "--report", str(report))
    assert code == 12 and "OFF" in out and "is off by" in err
    assert Outcome.from_json(log.read_text()).reason == "Accuracy"
    assert not Outcome.from_json(log.read_text()).result["passed"]
    assert not ValidationReport.from_json(report.read_text()).passed
    code, _, err = run(capsys, "verify", "a.cuvil", "--model", "m.onnx", *QUICK, "--latency-limit-ms", "1e-9")
    assert code == 13 and "the median call takes" in err
    code, _, err = run(
        capsys, "verify", "a.cuvil", "--model", "m.onnx", *QUICK, "--baseline", "a.cuvil", "--max-ratio", "0.001"
    )
    assert code == 13 and "baseline" in err


def test_verify_by_golden_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A golden file stands in for the model."""
    x = np.ones((2, 3), np.float32)
    y, total = handmade.expected(x)
    np.savez(tmp_path / "g.npz", x=x, y=y, total=total)
    assert run(capsys, "verify", "a.cuvil", "--golden", f"file://{tmp_path}/g.npz", *QUICK)[0] == 0
    assert run(capsys, "verify", "a.cuvil", *QUICK)[0] == 2


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    """Alone, beside ONNX Runtime and beside another artifact."""
    assert "p50" in run(capsys, "bench", "a.cuvil", *QUICK)[1]
    data = json.loads(run(capsys, "bench", "a.cuvil", "--model", "m.onnx", *QUICK, "--json")[1])
    assert data["ratio"] > 0 and data["onnxruntime"]["p50_ms"] > 0 and data["variant"] == "x86_64-avx2"
    assert "baseline" in run(capsys, "bench", "a.cuvil", "--baseline", "a.cuvil", *QUICK)[1]
    assert run(capsys, "bench", "a.cuvil", "--variant", "x86_64-amx", *QUICK)[0] == 17


def test_registry_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Models and artifacts are pushed, resolved, and verified by reference, as the operator's Jobs do."""
    registry = web_server.MemoryRegistry()
    with web_server.serving(registry.page) as host:
        model = json.loads(run(capsys, "push", "m.onnx", f"{host}/a/m:1", "--json")[1])["uri"]
        artifact = json.loads(run(capsys, "push", "a.cuvil", f"{host}/a/b", "--json")[1])
        found = json.loads(run(capsys, "resolve", model, "--max-bytes", "100000", "--json")[1])
        assert found["sha256"] == sha256(handmade.model()).hexdigest() and found["format"] == "onnx"
        digests = ["--sha256", artifact["sha256"], "--model-sha256", found["sha256"]]
        assert run(capsys, "verify", artifact["reference"], "--model", model, *digests, *QUICK)[0] == 0
        code, _, err = run(capsys, "verify", artifact["reference"], "--model", model, "--sha256", "0" * 64, *QUICK)
        assert code == 18 and "wanted" in err


def test_resolve_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file is resolved; another digest is 18, over the bound 14, missing 19, an unknown scheme 2."""
    uri = f"file://{tmp_path}/m.onnx"
    assert run(capsys, "resolve", uri)[0] == 0
    assert run(capsys, "resolve", uri, "--sha256", "0" * 64)[0] == 18
    assert run(capsys, "resolve", uri, "--max-bytes", "3")[0] == 14
    assert run(capsys, "resolve", "file:///none.onnx")[0] == 19
    assert run(capsys, "resolve", "s3://bucket/key")[0] == 2


def test_error_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With --json the error is the contract's outcome on standard output, that of a wrong command line too."""
    code, out, _ = run(capsys, "inspect", "m.onnx", "--json")
    assert json.loads(out)["code"] == code == 16
    log = tmp_path / "log"
    for wrong in (["compile", "m.onnx", "--fly"], ["compile"], ["cache", "fly"], ["bench", "a.cuvil", "--runs", "no"]):
        code, out, err = run(capsys, *wrong, "--json", "--termination-log", str(log))
        assert code == 2 and not err and json.loads(out)["reason"] == "Input"
        assert Outcome.from_json(log.read_text()).code is ExitCode.USAGE
    code, out, err = run(capsys, "compile", "--termination-log")
    assert code == 2 and not out and "usage: cuvil compile" in err


def test_faults_of_cuvil_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault inside is 70 and says how to report it; --debug shows the traceback."""

    def explode(*_: Any) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("cuvil_core.cli.inspecting.inspect_command", explode)
    code, _, err = run(capsys, "inspect", "a.cuvil")
    assert code == 70 and "report it" in err and "Traceback" not in err
    assert "ZeroDivisionError" in run(capsys, "inspect", "a.cuvil", "--debug")[2]


def test_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All checks have a line; a bad one carries its cure and makes the command fail, a note does not."""
    code, out, _ = run(capsys, "doctor", "--compile")
    assert code == 0 and all(word in out for word in ("cpu", "variant", "threads", "cache", "ziglang", "compiling"))
    monkeypatch.setenv("CUVIL_NUM_THREADS", "900")
    code, out, _ = run(capsys, "doctor", "--json")
    found = json.loads(out)["result"]
    threads = next(one for one in found["findings"] if one["name"] == "threads")
    assert code == 17 and found["bad"] == 1
    assert threads["state"] == "bad" and "unset it" in threads["cure"]
    monkeypatch.setenv("CUVIL_NUM_THREADS", "none")
    code, out, err = run(capsys, "doctor")
    assert code == 17 and "CUVIL_NUM_THREADS is 'none'" in out and "need the cure" in err


def test_cache_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Entries are listed and cleared; the path is told."""
    from cuvil_core.cache import Cache

    Cache().obtain("ab" * 32, handmade.artifact, lambda artifact: artifact.verify())
    assert "1 entries" in run(capsys, "cache", "list")[1] and "handmade" in run(capsys, "cache", "list")[1]
    assert json.loads(run(capsys, "cache", "clear", "--json")[1])["freed"] == len(handmade.artifact())
    assert json.loads(run(capsys, "cache", "list", "--json")[1])["entries"] == []
    assert run(capsys, "cache", "path")[1].strip() == str(tmp_path / "cache")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    """The completion script knows the commands."""
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0 and "inspect" in out and "--termination-log" in out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists each command with its sentence, and every command has help of its own."""
    out = run(capsys, "--help")[1]
    for name, sentence, _ in COMMANDS:
        assert name in out and sentence.split()[0] in out
        with pytest.raises(SystemExit) as ended:
            build_parser().parse_args([name, "--help"])
        assert ended.value.code == 0


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """A closed pipe ends the command quietly."""
    command = f"{sys.executable} -m cuvil_core.cli.main inspect {tmp_path}/a.cuvil --json | head -c 1"
    root = Path(__file__).parents[3]
    done = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, timeout=30, check=False)
    assert done.stdout == b"{" and done.stderr == b""


def test_jobs_of_the_operator(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Compile and push, then verify by reference, with the very arguments that Jobs have; twice gives one reference."""
    log = tmp_path / "log"
    spec = json.dumps({"bounds": {"N": [1, 8]}, "name": "x", "shape": ["N", 3]})
    digest = sha256(handmade.model()).hexdigest()
    source = [f"file://{tmp_path}/m.onnx", "--sha256", digest, "--format", "onnx", "--target", "x86_64-cpu"]
    options = ["--precision", "fp32", "--opt-level", "2", "--input", spec, "--max-bytes", "1000000"]
    with web_server.serving(web_server.MemoryRegistry().page) as host:
        push = ["--push", f"{host}/a/artifacts", "--insecure-registry", "--termination-log", str(log)]
        assert run(capsys, "compile", *source, *options, *push)[0] == 0
        stored = Outcome.from_json(log.read_text()).result
        assert stored["reference"].startswith(f"{host}/a/artifacts@sha256:") and stored["facts"]["kernels"] >= 1
        assert run(capsys, "compile", *source, *options, *push)[0] == 0
        assert Outcome.from_json(log.read_text()).result["reference"] == stored["reference"]
        model = [
            "--model",
            f"file://{tmp_path}/m.onnx",
            "--model-sha256",
            digest,
            "--rtol",
            "0.001",
            "--atol",
            "0.0001",
        ]
        proof = [
            *model,
            "--sha256",
            stored["sha256"],
            "--latency-limit-ms",
            "800",
            "--termination-log",
            str(log),
            *QUICK,
        ]
        assert run(capsys, "verify", stored["reference"], *proof, "--insecure-registry")[0] == 0
    assert Outcome.from_json(log.read_text()).result["artifact_sha256"] == stored["sha256"]


def test_compile_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A path compiles to NAME.cuvil here, again from the cache, and runs."""
    code, out, err = run(capsys, "compile", "m.onnx")
    assert code == 0 and "m.cuvil" in out and "pack" in err
    assert "from the cache" in run(capsys, "compile", "m.onnx", "-o", "n.cuvil")[1]
    assert (tmp_path / "m.cuvil").read_bytes() == (tmp_path / "n.cuvil").read_bytes()
    assert run(capsys, "verify", "m.cuvil", "--model", "m.onnx", *QUICK)[0] == 0


def test_a_cache_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is compiled all the same; one sentence says why the next time takes as long, and what helps."""
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    code, _, err = run(capsys, "compile", "m.onnx")
    assert code == 0 and err.count("cannot be written") == 1 and "CUVIL_CACHE_DIR names a folder" in err


def test_models_that_do_not_compile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A truncated model is 10, an unsupported op 11 with its name, an altered file 18; none leaves an artifact."""
    import onnx
    from onnx import TensorProto, helper

    (tmp_path / "cut.onnx").write_bytes(handmade.model()[:-40])
    code, _, err = run(capsys, "compile", "cut.onnx", "-q")
    assert code == 10 and len(err.strip().splitlines()) == 1
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("RandomNormalLike", ["x"], ["y"], name="the_node")], "g", [x], [y])
    y.type.tensor_type.shape.Clear()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "random.onnx")
    code, _, err = run(capsys, "compile", "random.onnx", "-q")
    assert code == 11 and "RandomNormalLike" in err and "the_node" in err
    assert run(capsys, "compile", f"file://{tmp_path}/m.onnx", "--sha256", "0" * 64, "-q")[0] == 18
    assert not (tmp_path / "cut.cuvil").exists() and not (tmp_path / "random.cuvil").exists()


def test_run_as_a_module(tmp_path: Path) -> None:
    """`python -m cuvil_core.cli.main` ends as the installed command does, failed proofs included."""
    (tmp_path / "wrong.cuvil").write_bytes(handmade.artifact((handmade.WEIGHTS * 2).tobytes()))
    command = [sys.executable, "-m", "cuvil_core.cli.main", "verify", f"{tmp_path}/wrong.cuvil", "--model"]
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [*command, f"{tmp_path}/m.onnx", *QUICK], cwd=root, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 12 and b"is off by" in done.stderr


def test_the_reference_page_is_true() -> None:
    """The page names every command, every exit code, and every variable that the code reads, and no other."""
    root = Path(__file__).parents[3]
    page = (root / "docs" / "reference" / "command-line.md").read_text()
    assert set(re.findall(r"^\| `cuvil (\w+)", page, re.M)) == {name for name, _, _ in COMMANDS}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.M)} == {*map(int, ExitCode), 130, 143}
    rooms = ("artifact", "cache", "cli", "fetching", "runtime", "serving", "validate", "front.py")
    files = [
        path for room in rooms for path in (root / "cuvil_core").glob(f"{room}/**/*.py" if "." not in room else room)
    ]
    used = {name for path in files for name in re.findall(r"\bCUVIL_[A-Z_]+\b", path.read_text())}
    assert set(re.findall(r"\bCUVIL_[A-Z_]+\b", page)) == used


def test_sigterm_ends_a_command(tmp_path: Path) -> None:
    """SIGTERM during a download that never ends gives 143 at once and leaves no temporary folder."""
    release, arrived = threading.Event(), threading.Event()

    def hang(handler: web_server.Handler) -> None:
        arrived.set()
        release.wait(20)

    (tmp_path / "temp").mkdir()
    with web_server.serving(hang) as host:
        command = [sys.executable, "-m", "cuvil_core.cli.main", "verify", "a.cuvil", "--model", f"http://{host}/m.onnx"]
        environment = {**os.environ, "TMPDIR": str(tmp_path / "temp"), "PYTHONPATH": str(Path(__file__).parents[3])}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        assert arrived.wait(30)
        process.terminate()
        assert process.wait(10) == 143
        release.set()
    assert not list((tmp_path / "temp").iterdir())
