"""Pictures of block letters, on which the text models answer with varying, large outputs."""

from typing import Any

import numpy as np

_LETTERS = (
    "01110 10001 10001 11111 10001 10001 10001",
    "11110 10001 11110 10001 10001 10001 11110",
    "01111 10000 10000 10000 10000 10000 01111",
    "11111 10000 11110 10000 10000 10000 11111",
)
NDArray = np.ndarray[Any, Any]


def letter_pictures(shape: tuple[int, ...], seed: int = 0, scale: int = 3) -> NDArray:
    """N, 3, H, W float32 in about -1..1: a line of dark letters on white a picture, with a little seeded noise."""
    count, _, height, width = shape
    rng = np.random.default_rng(seed)
    pictures = np.ones(shape, np.float32)
    for number in range(count):
        top = int(rng.integers(2, max(3, height - 7 * scale - 2)))
        for at, left in enumerate(range(6, width - 6 * scale, 6 * scale)):
            glyph = _glyph(_LETTERS[(at + number) % len(_LETTERS)], scale)
            pictures[number, :, top : top + 7 * scale, left : left + 5 * scale] = glyph[: height - top]
    return (pictures - 0.5) / 0.5 + 0.01 * rng.standard_normal(shape).astype(np.float32)


def _glyph(rows: str, scale: int) -> NDArray:
    bits = np.array([[bit == "0" for bit in row] for row in rows.split()], np.float32)
    return np.kron(bits, np.ones((scale, scale), np.float32))
