"""The back end that `onnx.backend.test` asks: compile in another process, load and run in this one."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from cuvil_core.runtime import CuvilModule, load

_ITEM = re.compile(r"(.*)\[\d+\]")
"""The name of an item of a sequence, which the suite wants as a list."""


class RefusedError(Exception):
    """The compiler refused the model by a named error."""


class CompilerFaultError(Exception):
    """The compiler ended otherwise than by a named error."""


class CompilerProcess:
    """The other process, started when it is first needed and after it died."""

    def __init__(self, level: int) -> None:
        """`level`: the optimization level of every request."""
        self._level = level
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="cuvil-scoreboard-")

    def module(self, model: onnx.ModelProto) -> CuvilModule:
        """The compiled and loaded model; RefusedError or CompilerFaultError where there is none."""
        folder = Path(self._folder.name)
        source, artifact = folder / "model.onnx", folder / "model.cuvil"
        source.write_bytes(model.SerializeToString())
        answer = self._ask({"model": str(source), "artifact": str(artifact), "level": self._level})
        if "refused" in answer:
            raise RefusedError(answer["refused"])
        if "crashed" in answer:
            raise CompilerFaultError(answer["crashed"])
        return load(artifact)

    def _ask(self, request: dict[str, Any]) -> dict[str, str]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "scoreboard.compiler"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise CompilerFaultError(f"the compiler ended with status {self._process.wait()}")
        return dict(json.loads(line))


class CuvilRep:
    """A loaded model as the suite calls it."""

    def __init__(self, module: CuvilModule) -> None:
        """Called by `prepare`."""
        self._module = module

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in order; inputs that the model does not need (its own constants) are left out."""
        names = [spec.name for spec in self._module.signature.inputs]
        found = self._module.run(dict(zip(names, inputs, strict=False)))
        outputs: dict[str, Any] = {}
        for name, value in found.items():
            item = _ITEM.fullmatch(name)
            if item is None:
                outputs[name] = value
            else:
                outputs.setdefault(item[1], []).append(value)
        return tuple(outputs.values())


class CuvilBackend:
    """What the suite asks of a back end: every case is compiled, none is declared incompatible."""

    def __init__(self, level: int) -> None:
        """`level`: the optimization level of every case."""
        self._compiler = CompilerProcess(level)

    def prepare(self, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> CuvilRep:
        """Compile and load."""
        return CuvilRep(self._compiler.module(model))

    def supports_device(self, device: str) -> bool:
        """CPUs alone."""
        return device == "CPU"
