"""Text as pictures and back: renders words, and reads what the recognizer answers (greedy CTC)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

HEIGHT = 48
"""Pixels that PP-OCR's recognizer expects."""

WORDS = ("Cuvil", "rollout", "canary 42", "kubectl", "SLO 99.5", "rollback", "PyTorch", "digest")


def render(word: str, width: int = 160) -> NDArray[np.uint8]:
    """Draw dark text on white: uint8[HEIGHT, width, 3]."""
    picture = Image.new("RGB", (width, HEIGHT), "white")
    ImageDraw.Draw(picture).text((6, 4), word, fill=(16, 16, 16), font=ImageFont.load_default(size=32))
    return np.asarray(picture)


def to_input(pictures: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Scale to [-1, 1]: float32[N, 3, HEIGHT, W] of pictures of one width."""
    stacked = np.stack(pictures).astype(np.float32).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(stacked / 127.5 - 1)


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Index → character; 0 is CTC's blank."""

    characters: tuple[str, ...]

    @classmethod
    def of(cls, model: Path) -> "Alphabet":
        """Read the table in the model's metadata (key `character`, one a line); the last index is a space."""
        held = {entry.key: entry.value for entry in onnx.load(str(model)).metadata_props}
        return cls(("", *held["character"].split("\n"), " "))

    def decode(self, scores: NDArray[np.float32]) -> list[str]:
        """Read float32[N, T, classes]: best class a step, repeats merged, blanks dropped."""
        texts = []
        for best in scores.argmax(axis=2):
            changed = np.insert(best[1:] != best[:-1], 0, True)
            texts.append("".join(self.characters[index] for index in best[changed & (best != 0)]))
        return texts
