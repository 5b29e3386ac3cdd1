"""The real models with the inputs that they are tested on, and how their results are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil_core.contract import InputSpec
from letter_pictures import letter_pictures

RTOL, ATOL = 1e-3, 1e-4
NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ModelCase:
    """One model, how its dimensions are named, and at least three shapes of its input."""

    name: str
    input_name: str
    shapes: tuple[tuple[int, ...], ...]
    specs: tuple[InputSpec, ...] = ()
    tiny: tuple[int, ...] = ()
    """The smallest useful shape, for tests that run very often."""

    def inputs(self, shape: tuple[int, ...], seed: int = 0) -> dict[str, NDArray]:
        """Seeded input on which the outputs vary: letters for text, bytes for magika, else noise."""
        rng = np.random.default_rng(seed)
        if self.name == "magika":
            return {self.input_name: rng.integers(0, 257, shape).astype(np.int32)}
        if self.name.startswith("ppocr"):
            return {self.input_name: letter_pictures(shape, seed, 3 if shape[2] < 48 else 4)}
        return {self.input_name: rng.standard_normal(shape, dtype=np.float32)}


def _square(name: str, input_name: str, third: tuple[int, ...] = (3, 3, 224, 224)) -> ModelCase:
    return ModelCase(name, input_name, ((1, 3, 224, 224), (2, 3, 224, 224), third), tiny=(1, 3, 224, 224))


CASES: tuple[ModelCase, ...] = (
    ModelCase(
        "ppocr-det",
        "x",
        ((1, 3, 64, 96), (2, 3, 96, 64), (1, 3, 320, 256)),
        (InputSpec("x", ("N", 3, "H", "W")),),
        (1, 3, 32, 64),
    ),
    ModelCase(
        "ppocr-rec",
        "x",
        ((1, 3, 48, 320), (2, 3, 48, 160), (3, 3, 48, 100)),
        (InputSpec("x", ("N", 3, 48, "W")),),
        (1, 3, 48, 64),
    ),
    ModelCase("ppocr-cls", "x", ((1, 3, 48, 192), (5, 3, 48, 192), (2, 3, 48, 100)), tiny=(1, 3, 48, 192)),
    ModelCase("nudenet", "images", ((1, 3, 320, 320), (2, 3, 64, 96), (1, 3, 256, 320)), tiny=(1, 3, 32, 32)),
    ModelCase("magika", "bytes", ((1, 2048), (2, 2048), (5, 2048)), tiny=(1, 2048)),
    _square("resnet18", "x", (2, 3, 160, 192)),
    _square("resnet50", "gpu_0/data_0"),
    _square("squeezenet", "data_0"),
)


def excess(got: NDArray, want: NDArray) -> float:
    """How far the worst element is from the bound atol * max|want| + rtol * |want|, in bounds: right at <= 1.

    Shapes must agree. Where the expected value is not finite, the same one is right and any other infinitely wrong.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    got, want = got.astype(np.float64), want.astype(np.float64)
    special = ~np.isfinite(want)
    if not np.array_equal(got[special], want[special], equal_nan=True):
        return float("inf")
    difference, size = np.abs(got - want)[~special], np.abs(want)[~special]
    if not size.size:
        return 0.0
    bound = ATOL * size.max() + RTOL * size
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(difference == 0, 0.0, difference / bound)
    return float("inf") if not np.isfinite(ratio).all() else float(ratio.max())
