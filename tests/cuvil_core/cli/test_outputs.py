"""What a command writes to: nothing that it reads is lost, nothing but plain files is replaced, and it may be full."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import handmade
from cuvil_core.cli.main import main
from cuvil_core.cli.outputs import may_hold_outcome

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def more_files(own_folders: Path) -> None:
    """Inputs, a model with external data, a link and a pipe."""
    # Bytes that look like an entry for external data: the file they name is a part of the model.
    Path("large.onnx").write_bytes(handmade.model() + b"\xfa\x7f\x11\x0a\x08location\x12\x05w.bin")
    Path("w.bin").write_bytes(b"weights")
    np.savez("in.npz", x=np.ones((4, 3), np.float32))
    np.save("in.npy", np.ones((4, 3), np.float32))
    Path("link.onnx").symlink_to("m.onnx")
    os.mkfifo("pipe")


def state() -> dict[str, str]:
    """What lies in the folder: kinds, and digests of plain files."""
    return {
        one.name: sha256(one.read_bytes()).hexdigest() if one.is_file() else str(one.stat().st_mode)
        for one in Path().iterdir()
    }


DESTRUCTIVE = {
    "model": ["compile", "m.onnx", "-o", "m.onnx"],
    "model by another name": ["compile", "m.onnx", "-o", "link.onnx"],
    "model by a URI": ["compile", "file://{}/m.onnx", "-o", "m.onnx"],
    "weights beside the model": ["compile", "large.onnx", "-o", "w.bin"],
    "artifact": ["run", "a.cuvil", "-o", "a.cuvil"],
    "inputs": ["run", "a.cuvil", "--inputs", "in.npz", "-o", "in.npz"],
    "verified artifact": ["verify", "a.cuvil", "--model", "m.onnx", "--report", "a.cuvil"],
    "source of the proof": ["verify", "a.cuvil", "--model", "m.onnx", "--report", "m.onnx"],
    "golden arrays": ["verify", "a.cuvil", "--golden", "in.npz", "--report", "in.npz"],
    "model as a log": ["compile", "m.onnx", "--termination-log", "m.onnx"],
    "log of a wrong command line": ["compile", "m.onnx", "--fly", "--termination-log", "m.onnx"],
    "a pipe for an artifact": ["compile", "m.onnx", "-o", "pipe"],
    "a pipe for outputs": ["run", "a.cuvil", "-o", "pipe"],
    "a pipe for a report": ["verify", "a.cuvil", "--model", "m.onnx", "--report", "pipe"],
}


@pytest.mark.parametrize("case", DESTRUCTIVE)
def test_nothing_is_destroyed(capsys: pytest.CaptureFixture[str], case: str) -> None:
    """Each is refused with 2 before the work begins, and the folder stays as it was."""
    before = state()
    assert main([one.format(Path.cwd()) for one in DESTRUCTIVE[case]]) == 2
    err = capsys.readouterr().err
    assert state() == before
    assert "name another" in err or "name a plain file" in err or "--fly" in err
    assert not Path("cache").exists()


def test_a_model_that_is_named_like_an_artifact(capsys: pytest.CaptureFixture[str]) -> None:
    """Without -o the artifact of x.cuvil does not take that name from it."""
    Path("x.cuvil").write_bytes(handmade.model())
    assert main(["compile", "x.cuvil", "-q"]) == 0
    assert Path("x.cuvil").read_bytes() == handmade.model() and Path("x.cuvil.cuvil").exists()


def test_termination_messages_replace_each_other(tmp_path: Path) -> None:
    """A log that is new, empty or of an earlier command is written; what cannot be opened is not."""
    for earlier in (b"", b'{"code":2,"message":""}'):
        Path("log").write_bytes(earlier)
        assert main(["inspect", "a.cuvil", "--termination-log", "log"]) == 0
        assert json.loads(Path("log").read_text())["code"] == 0
    assert may_hold_outcome(Path("new")) and may_hold_outcome(Path("pipe"))
    assert not may_hold_outcome(tmp_path) and not may_hold_outcome(Path("n" * 300))


def test_one_array_for_one_input(capsys: pytest.CaptureFixture[str]) -> None:
    """An npy is taken for the only input, as an npz of it; NumPy's own words are not told."""
    outputs = []
    for name in ("in.npy", "in.npz"):
        assert main(["run", "a.cuvil", "--inputs", name, "--json"]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0] == outputs[1]
    np.save("objects.npy", np.array([{}], object))
    assert main(["run", "a.cuvil", "--inputs", "objects.npy"]) == 2
    assert "no npz file of plain arrays; write it with numpy.savez" in capsys.readouterr().err


def test_json_is_json_whatever_a_file_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no text comes with a sign in place of what cannot be said."""
    name = os.fsdecode(b"\xff.onnx")
    assert main(["compile", name, "--json", "--termination-log", "log"]) == 19
    message = json.loads(capsys.readouterr().out)["message"]
    assert message.startswith("\ufffd.onnx cannot be read") and message.encode()
    assert json.loads(Path("log").read_text())["message"] == message


def run_into(stdout: int, *arguments: str) -> tuple[int, str]:
    """The code and the errors of a command whose output goes to a descriptor."""
    done = subprocess.run(
        [sys.executable, "-m", "cuvil_core.cli.main", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr.decode()


COMMANDS = {
    "text": (["inspect", "a.cuvil"], 0),
    "JSON": (["inspect", "a.cuvil", "--json"], 0),
    "an error as JSON": (["inspect", "m.onnx", "--json"], 16),
    "a failed proof": (["doctor", "--json"], 17),
    "help": (["--help"], 0),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_output_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """It is 20 with one sentence; an error keeps its code, and its sentence comes on standard error."""
    monkeypatch.setenv("CUVIL_NUM_THREADS", "none")
    arguments, code = COMMANDS[case]
    unwritable = os.open("w.bin", os.O_RDONLY)
    try:
        got, err = run_into(unwritable, *arguments)
    finally:
        os.close(unwritable)
    assert got == (code or 20) and len(err.splitlines()) == 1 and err.startswith("cuvil: ")
    assert code or "standard output cannot be written" in err


@pytest.mark.parametrize("case", COMMANDS)
def test_a_pipe_that_nobody_reads(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """What was good ends silently with 0; an error keeps its code."""
    monkeypatch.setenv("CUVIL_NUM_THREADS", "none")
    arguments, code = COMMANDS[case]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        got, err = run_into(writer, *arguments)
    finally:
        os.close(writer)
    assert got == code and len(err.splitlines()) == bool(code) and "Traceback" not in err
