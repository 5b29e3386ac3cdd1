"""Shapes to try a model with when nobody says which: warm-up, benchmarks, checks."""

from collections.abc import Iterator, Mapping

from cuvil_core.contract import TensorSpec

EXTENTS = (224, 64, 48, 320, 32, 128, 640, 16, 8, 4, 2, 1)
"""Ordinary sizes of images and sequences first, since at 1 × 1 a model hardly computes; a model may refuse any."""
Bounds = Mapping[str, tuple[int, int | None]]
Shapes = dict[str, tuple[int, ...]]


def batch_symbols(inputs: tuple[TensorSpec, ...]) -> frozenset[str]:
    """Give the symbols that stand only in first axes."""
    first = {spec.shape[0] for spec in inputs if spec.shape and isinstance(spec.shape[0], str)}
    later = {one for spec in inputs for one in spec.shape[1:] if isinstance(one, str)}
    return frozenset(map(str, first - later))


def shapes_at(inputs: tuple[TensorSpec, ...], extents: Mapping[str, int]) -> Shapes:
    """Give each input's shape with its symbols replaced."""
    return {spec.name: tuple(one if isinstance(one, int) else extents[one] for one in spec.shape) for spec in inputs}


def symbol_choices(inputs: tuple[TensorSpec, ...], bounds: Bounds, batch: int = 1) -> Iterator[dict[str, int]]:
    """Yield extents of all symbols within their bounds: the batch as given, the others equal."""
    batches, seen = batch_symbols(inputs), set()
    for extent in EXTENTS:
        choice = {name: _clamp(batch if name in batches else extent, bounds[name]) for name in bounds}
        key = tuple(choice.values())
        if key not in seen:
            seen.add(key)
            yield choice


def _clamp(value: int, bound: tuple[int, int | None]) -> int:
    least, most = bound
    return max(least, value if most is None else min(value, most))
