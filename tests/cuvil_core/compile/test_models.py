"""Each real model, compiled as shipped, answers as ONNX Runtime does, at batch 1 and two further shapes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from cuvil_core.compile import compile_model
from cuvil_core.contract import CompileRequest
from cuvil_core.runtime import load
from models import model_path

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def page(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """White pages with lines of dark block letters, scaled to -1 … 1: detectors and readers answer strongly to them."""
    height, width = shape[2:]
    pages = np.ones(shape, np.float32)
    for image in pages:
        for top in range(8, height - 20, 28):
            for left in range(8, width - 12, 12):
                letter = random.random((7, 5)) < 0.5
                image[:, top : top + 14, left : left + 10] -= 1.8 * np.kron(letter, np.ones((2, 2)))
    return pages + 0.05 * random.normal(size=shape).astype(np.float32)


def picture(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Smooth blotches with noise."""
    batch, channels, height, width = shape
    coarse = random.normal(size=(batch, channels, 8, 8))
    rows, columns = np.arange(height) * 8 // height, np.arange(width) * 8 // width
    smooth = coarse[:, :, rows][:, :, :, columns]
    return (smooth + 0.3 * random.normal(size=shape)).astype(np.float32)


def text(shape: tuple[int, ...], random: np.random.Generator) -> "np.ndarray[tuple[int, ...], np.dtype[np.int32]]":
    """Bytes of a file, with the padding token at the end of some."""
    tokens = random.integers(0, 256, shape).astype(np.int32)
    tokens[:, shape[1] // 2 :: 7] = 256
    return tokens


@dataclass(frozen=True, slots=True)
class Case:
    """A model with shapes to run it at."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    make: Callable[[tuple[int, ...], np.random.Generator], np.ndarray]  # type: ignore[type-arg]


CASES = (
    Case("ppocr-cls", ((1, 3, 48, 192), (3, 3, 48, 192), (2, 3, 48, 100)), page),
    Case("ppocr-det", ((1, 3, 320, 320), (2, 3, 96, 160), (1, 3, 64, 352)), page),
    Case("ppocr-rec", ((1, 3, 48, 320), (3, 3, 48, 160), (1, 3, 48, 100)), page),
    Case("nudenet", ((1, 3, 320, 320), (2, 3, 320, 320), (1, 3, 256, 352)), picture),
    Case("magika", ((1, 2048), (3, 2048), (8, 2048)), text),
    Case("squeezenet", ((1, 3, 224, 224), (2, 3, 224, 224), (5, 3, 224, 224)), picture),
    Case("resnet50", ((1, 3, 224, 224), (2, 3, 224, 224), (3, 3, 224, 224)), picture),
    Case("resnet18", ((1, 3, 224, 224), (4, 3, 224, 224), (2, 3, 160, 192)), picture),
)
RTOL, ATOL = 1e-3, 1e-4


@pytest.mark.models
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_as_onnx_runtime(case: Case, tmp_path: Path) -> None:
    """Outputs vary over the input, and lie within rtol 1e-3 and atol 1e-4 of their magnitude."""
    source = model_path(case.name)
    artifact = tmp_path / "model.cuvil"
    artifact.write_bytes(compile_model(source, CompileRequest(target="x86_64-cpu")))
    module = load(artifact)
    peer = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    name = peer.get_inputs()[0].name
    random = np.random.default_rng(0)
    for shape in case.shapes:
        given = {name: case.make(shape, random)}
        wanted = dict(zip((one.name for one in peer.get_outputs()), peer.run(None, given), strict=True))
        found = module.run(given)
        for output, want in wanted.items():
            assert np.ptp(want) > 1e-3, f"{output} hardly varies at {shape}: the comparison says nothing"
            scale = max(1e-6, float(np.abs(want).max()))
            np.testing.assert_allclose(found[output], want, RTOL, ATOL * scale, err_msg=f"{output} at {shape}")
