"""What is measured: a model, the shapes of its inputs, and seeded inputs on which the outputs vary."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    model: str
    """A name of tests/support/models.py."""
    shape: tuple[int, ...]
    dtype: str = "float32"
    high: int = 257
    """Exclusive bound of integer inputs."""

    @property
    def title(self) -> str:
        """Name and shape."""
        return f"{self.model} {'x'.join(map(str, self.shape))}"

    def draw(self, seed: int = 0) -> NDArray[np.generic]:
        """Give a seeded input: standard normal floats, or integers below `high`."""
        rng = np.random.default_rng(seed)
        if self.dtype == "float32":
            return rng.standard_normal(self.shape, dtype=np.float32)
        return rng.integers(0, self.high, self.shape).astype(self.dtype)


CASES = (
    Case("resnet18", (1, 3, 224, 224)),
    Case("resnet50", (1, 3, 224, 224)),
    Case("squeezenet", (1, 3, 224, 224)),
    Case("ppocr-det", (1, 3, 320, 320)),
    Case("ppocr-rec", (1, 3, 48, 320)),
    Case("ppocr-cls", (1, 3, 48, 192)),
    Case("nudenet", (1, 3, 320, 320)),
    Case("magika", (1, 2048), "int32"),
)
