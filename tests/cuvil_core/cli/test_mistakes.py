"""What users get wrong: each mistake has its code and one sentence."""

import re

import pytest

from cuvil_core.cli.main import main

BAD = {
    "no command": ([], 2, "COMMAND"),
    "unknown command": (["fly"], 2, "invalid choice"),
    "missing artifact": (["inspect", "none.cuvil"], 19, "is no file here"),
    "not an artifact": (["inspect", "m.onnx"], 16, "no Cuvil artifact"),
    "a folder": (["inspect", "."], 19, "is no file"),
    "unsupported target": (["compile", "m.onnx", "--target", "cuda-sm_90"], 17, "native, x86_64-cpu"),
    "unsupported precision": (["compile", "m.onnx", "--precision", "int4"], 17, "fp32_strict, fp32"),
    "unsupported format": (["compile", "m.onnx", "--format", "torchscript"], 17, "this version reads onnx"),
    "level": (["compile", "m.onnx", "--opt-level", "9"], 2, "use 0, 1, 2 or 3"),
    "input is no JSON": (["compile", "m.onnx", "--input", "x"], 2, "is not JSON"),
    "input is no input": (["compile", "m.onnx", "--input", "{}"], 2, "describes no input"),
    "bounds": (
        ["compile", "m.onnx", "--input", '{"name": "x", "shape": ["N", 3], "bounds": {"N": [5, 2]}}'],
        2,
        "write 1 ≤ min ≤ max",
    ),
    "digest": (["inspect", "a.cuvil", "--sha256", "abc"], 2, "64 hex digits"),
    "other digest": (["inspect", "a.cuvil", "--sha256", "0" * 64], 18, "wanted 0000"),
    "shape": (["run", "a.cuvil", "--shape", "x=0"], 2, "write NAME=1,3,224,224"),
    "shape of nothing": (["run", "a.cuvil", "--shape", "q=1"], 2, "no input 'q'"),
    "inputs": (["run", "a.cuvil", "--inputs", "m.onnx"], 2, "no npz file of plain arrays; write it with numpy.savez"),
    "folder of the output": (["compile", "m.onnx", "-o", "none/x.cuvil"], 2, "none is no folder here"),
    "output is a folder": (["compile", "m.onnx", "-o", "."], 2, "is a folder; name a file in it"),
    "folder of the outputs": (["run", "a.cuvil", "-o", "none/x.npz"], 2, "none is no folder here"),
    "folder of the report": (["verify", "a.cuvil", "--model", "m.onnx", "--report", "none/r.json"], 2, "is no folder"),
    "no repository": (["push", "a.cuvil", "foo"], 2, "write HOST/REPOSITORY or HOST/REPOSITORY:TAG"),
    "no repository to push to": (["compile", "m.onnx", "--push", "foo"], 2, "write HOST/REPOSITORY or"),
    "unknown scheme": (["compile", "s3://bucket/m.onnx"], 2, "use one of file, http, https, oci"),
    "another model": (["verify", "a.cuvil", "--model", "other.onnx"], 18, "was compiled from another model"),
    "bench of another model": (["bench", "a.cuvil", "--model", "other.onnx"], 18, "was compiled from another model"),
    "not an ONNX file": (["compile", "a.cuvil"], 10, "a.cuvil is not an ONNX model"),
    "tolerance": (["verify", "a.cuvil", "--model", "m.onnx", "--rtol", "-1"], 2, "no tolerance"),
    "an empty path": (["compile", ""], 2, "the path or name is empty"),
    "an empty output": (["compile", "m.onnx", "-o", ""], 2, "the path is empty"),
    "an empty repository": (["compile", "m.onnx", "--push", ""], 2, "the path or name is empty"),
    "two places": (["compile", "m.onnx", "--push", "h.io/x", "-o", "x"], 2, "one place at a time"),
    "bound of infinity": (
        ["compile", "m.onnx", "--input", '{"name": "x", "shape": ["N", 3], "bounds": {"N": [1, 1e400]}}'],
        2,
        "describes no input",
    ),
    "unknown key": (["compile", "m.onnx", "--input", '{"name": "x", "shape": [1], "bonds": 1}'], 2, "has no 'bonds'"),
    "key twice": (["compile", "m.onnx", "--input", '{"name": "x", "name": "y"}'], 2, "a name stands in it twice"),
    "input twice": (["compile", "m.onnx", *["--input", '{"name": "x", "shape": [1, 3]}'] * 2], 2, "described 2 times"),
    "seed": (["run", "a.cuvil", "--seed", "-1"], 2, "is below 0"),
    "runs": (["bench", "a.cuvil", "--runs", "9" * 30], 2, "is above"),
    "shape beyond memory": (["run", "a.cuvil", "--shape", f"x={'9' * 26},3"], 2, "more than 1099511627776 elements"),
    "shape of another rank": (["run", "a.cuvil", "--shape", "x=3"], 2, "1 extents; the model takes (x float32(N, 3)"),
    "shape twice": (["run", "a.cuvil", "--shape", "x=3,3", "--shape", "x=4,3"], 2, "passed twice"),
    "output of the run is a folder": (["run", "a.cuvil", "-o", "."], 2, "is a folder; name a file in it"),
    "name of the output": (["run", "a.cuvil", "-o", "n" * 300], 2, "File name too long"),
    "name of the artifact": (["inspect", "n" * 300], 19, "is no file here"),
    "name of the inputs": (["run", "a.cuvil", "--inputs", "n" * 300], 19, "File name too long"),
    "no URL": (["resolve", "http://[::1"], 2, "names no host or port"),
    "no URL of a model": (["compile", "http://[::1"], 2, "names no host or port"),
    "port": (["resolve", "http://localhost:99999/m.onnx"], 2, "a port up to 65535"),
    "model is no model": (["verify", "a.cuvil", "--model", "a.cuvil"], 10, "cannot load the source model"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_one_sentence_and_a_code(capsys: pytest.CaptureFixture[str], case: str) -> None:
    """Each mistake ends with the contract's code and a sentence, never a traceback."""
    arguments, code, sentence = BAD[case]
    got = main(arguments)
    out, err = capsys.readouterr()
    assert got == code and sentence in err and "Traceback" not in out + err
    assert len(re.findall("^cuvil[a-z ]*: ", err, re.M)) == 1 and "allow_pickle" not in err
    if "usage: " not in err:
        assert len([line for line in err.strip().splitlines() if not line.startswith(("compile ", "resolve: "))]) == 1
