"""What is measured: a model and the shape of its input; the inputs are those that the models are tested on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import model_cases


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    model: str
    """A name of tests/support/models.py."""
    shape: tuple[int, ...]

    @property
    def title(self) -> str:
        """Name and shape."""
        return f"{self.model} {'x'.join(map(str, self.shape))}"

    def draw(self, seed: int = 0) -> NDArray[np.generic]:
        """Give a seeded input on which the outputs vary."""
        (tested,) = (one for one in model_cases.CASES if one.name == self.model)
        (value,) = tested.inputs(self.shape, seed).values()
        return value


CASES = (
    Case("resnet18", (1, 3, 224, 224)),
    Case("resnet50", (1, 3, 224, 224)),
    Case("squeezenet", (1, 3, 224, 224)),
    Case("ppocr-det", (1, 3, 320, 320)),
    Case("ppocr-rec", (1, 3, 48, 320)),
    Case("ppocr-cls", (1, 3, 48, 192)),
    Case("nudenet", (1, 3, 320, 320)),
    Case("magika", (1, 2048)),
)
