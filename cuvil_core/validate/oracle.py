"""ONNX Runtime on the source model: what an artifact is measured by. The only room that knows it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.errors import MissingError, ModelError

Array = NDArray[Any]


class Oracle:
    """A session with a fixed number of threads."""

    def __init__(self, model: str | os.PathLike[str] | bytes, threads: int = 0) -> None:
        """Load a model; `threads` 0 lets ONNX Runtime choose. Raises MissingError, ModelError."""
        try:
            import onnxruntime
        except ImportError as fault:
            raise MissingError("ONNX Runtime is not installed here; pip install onnxruntime") from fault
        if not isinstance(model, bytes) and not Path(model).is_file():
            raise MissingError(f"{os.fspath(model)} is no file here; name the source model")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        try:
            source = model if isinstance(model, bytes) else os.fspath(model)
            self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as fault:  # its errors have no common class
            raise ModelError(f"ONNX Runtime cannot load the source model: {_first_line(fault)}") from fault
        self.outputs = tuple(one.name for one in self._session.get_outputs())

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Give the outputs by name; raises ModelError for inputs that the model does not take."""
        try:
            values = self._session.run(None, dict(inputs))
        except Exception as fault:
            raise ModelError(f"ONNX Runtime refuses these inputs: {_first_line(fault)}") from fault
        return {name: np.asarray(value) for name, value in zip(self.outputs, values, strict=True)}


def _first_line(fault: BaseException) -> str:
    return str(fault).strip().split("\n")[0][:300]
