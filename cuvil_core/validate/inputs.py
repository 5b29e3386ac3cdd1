"""Inputs made from seeds: the same on every machine, and such that outputs vary."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import TensorSpec
from cuvil_core.runtime.elements import dtype_of
from cuvil_core.runtime.examples import Bounds, Shapes, batch_symbols, shapes_at, symbol_choices

Array = NDArray[Any]
MAX_ELEMENTS = 1 << 26
"""Of one input: sizes beyond are not tried."""


@dataclass(frozen=True, slots=True)
class Style:
    """How values are drawn."""

    name: str
    scale: float
    """Of normal floats; 0 draws them evenly from 0 to 1."""
    whole: int
    """Integers are drawn below this."""


STYLES = (
    Style("normal, integers below 256", 1.0, 256),
    Style("from 0 to 1, integers below 10", 0.0, 10),
    Style("wide, integers below 1000", 30.0, 1000),
    Style("normal, integers below 2", 1.0, 2),
)
"""Tried in turn until the model takes the integers and outputs vary: no signature states the bounds of indices."""


def draw(specs: tuple[TensorSpec, ...], shapes: Shapes, style: Style, seed: int) -> dict[str, Array]:
    """Give one set of inputs."""
    dice = np.random.default_rng([seed, len(specs)])
    return {spec.name: _tensor(dice, shapes[spec.name], dtype_of(spec.dtype), style) for spec in specs}


def size_choices(specs: tuple[TensorSpec, ...], bounds: Bounds) -> Iterator[dict[str, int]]:
    """Yield extents of the symbols: each uniform choice, then a batch of 2, then one symbol changed, the last first."""
    seen: set[tuple[int, ...]] = set()
    batches = batch_symbols(specs)
    for base in symbol_choices(specs, bounds):
        others = [name for name in reversed(base) if name not in batches]
        changed = [base | {name: value} for name in others for value in (base[name] * 2, max(1, base[name] // 2))]
        for choice in (base, base | dict.fromkeys(batches, 2), *changed, base | dict.fromkeys(batches, 3)):
            key = tuple(choice.values())
            if key not in seen and _within(choice, bounds) and _modest(specs, choice):
                seen.add(key)
                yield choice


def _within(choice: dict[str, int], bounds: Bounds) -> bool:
    return all(low <= choice[name] and (high is None or choice[name] <= high) for name, (low, high) in bounds.items())


def _modest(specs: tuple[TensorSpec, ...], choice: dict[str, int]) -> bool:
    return all(np.prod(shape, dtype=float) <= MAX_ELEMENTS for shape in shapes_at(specs, choice).values())


def _tensor(dice: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], style: Style) -> Array:
    if dtype.kind == "b":
        return dice.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return dice.integers(0, min(style.whole, np.iinfo(dtype).max), shape).astype(dtype)
    drawn = dice.standard_normal(shape) * style.scale if style.scale else dice.random(shape)
    return np.asarray(drawn, dtype)
