"""Random graphs over the op table: pictures and matrices of small extents, a batch symbol and a height symbol."""

from collections.abc import Callable

import numpy as np

from cuvil_core.ir import Dim, DType, Graph, Payload, Value
from graph_checks import Maker

Step = Callable[["Grower"], Value | None]


class Grower:
    """Grows one graph: each step takes values made so far and makes another, or nothing when none fits."""

    def __init__(self, seed: int, steps: int) -> None:
        self.make = Maker(seed)
        self.random = np.random.default_rng(seed)
        self.values: list[Value] = []
        channels = int(self.random.choice([3, 16, 20, 24, 32]))
        self.values.append(self.make.input("x", "N", channels, "H", int(self.random.integers(4, 11))))
        self.values.append(self.make.input("y", "N", channels, "H", int(self.random.integers(4, 11))))
        while steps > 0:
            made = STEPS[int(self.random.integers(len(STEPS)))](self)
            if made is not None:
                self.values.append(made)
                steps -= 1

    def graph(self) -> Graph:
        """Outputs: the last value, one from the middle, perhaps an input."""
        chosen = [self.values[-1], self.values[int(self.random.integers(len(self.values)))]]
        return self.make.done(*chosen)

    def any(self, rank: int | None = None) -> Value | None:
        """One of the later values, of a rank."""
        fitting = [value for value in self.values if rank is None or len(value.shape) == rank]
        return fitting[-1 - int(self.random.integers(min(len(fitting), 5)))] if fitting else None

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both possible."""
        return int(self.random.integers(low, high + 1))


def _unary(grower: Grower) -> Value | None:
    value = grower.any()
    name = str(grower.random.choice(["tanh", "sigmoid", "abs", "neg", "sin", "floor"]))
    return None if value is None else grower.make.op(name, value)


def _binary(grower: Grower) -> Value | None:
    left = grower.any()
    if left is None:
        return None
    same = [value for value in grower.values if value.shape == left.shape]
    right = same[grower.integer(0, len(same) - 1)]
    return grower.make.op(str(grower.random.choice(["add", "mul", "max", "sub"])), left, right)


def _scaled(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None or value.shape[1].constant is None:
        return None
    scale = grower.make.constant(value.shape[1].constant)
    return grower.make.op("add", value, grower.make.per_channel(scale, value))


def _gated(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None:
        return None
    mean = grower.make.op("reduce", value, kind="max", axes=(2, 3))
    gate = grower.make.op("reshape", grower.make.op("sigmoid", mean), shape=(*value.shape[:2], 1, 1))
    return grower.make.op("mul", value, grower.make.op("broadcast_to", gate, shape=value.shape))


def _conv(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None or value.shape[1].constant is None:
        return None
    channels, window = value.shape[1].constant, grower.integer(1, 3)
    pad, step = grower.integer(0, 1), grower.integer(1, 2)
    if window > 1 and (pad == 0 or (value.shape[3].constant or 0) < 3):
        window = 1
    depthwise = grower.integer(0, 3) == 0
    outputs = channels if depthwise else int(grower.random.choice([8, 16, 20, 24, 32]))
    pads = (pad,) * 4 if window > 1 else (0,) * 4
    groups = channels if depthwise else 1
    return grower.make.conv(value, outputs, (window, window), (step, 1), pads, groups=groups)


def _pool(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None or (value.shape[3].constant or 0) < 3:
        return None
    return grower.make.pool(value, str(grower.random.choice(["max", "sum"])), 3, grower.integer(1, 2), 1)


def _concat(grower: Grower) -> Value | None:
    first = grower.any(4)
    if first is None:
        return None
    axis = grower.integer(1, 3)
    others = [v for v in grower.values if len(v.shape) == 4 and _but(v, axis) == _but(first, axis)]
    return grower.make.op("concat", first, others[grower.integer(0, len(others) - 1)], axis=axis)


def _but(value: Value, axis: int) -> tuple[Dim, ...]:
    return tuple(extent for at, extent in enumerate(value.shape) if at != axis)


def _slice(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None:
        return None
    axis = grower.integer(1, 3)
    extent = value.shape[axis].constant
    if extent is None or extent < 4:
        return None
    starts, sizes, steps = [Dim.of(0)] * 4, list(value.shape), [1] * 4
    half = 16 if extent >= 32 and axis == 1 else extent // 2
    starts[axis], sizes[axis], steps[axis] = Dim.of(half), Dim.of(extent - half), 1
    if grower.integer(0, 2) == 0:
        starts[axis], sizes[axis], steps[axis] = Dim.of(extent - 1), Dim.of(extent // 2), -2
    return grower.make.op("slice", value, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def _pad(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None:
        return None
    axis = grower.integer(1, 3)
    low, high = [0] * 4, [0] * 4
    low[axis], high[axis] = grower.integer(0, 2), grower.integer(0, 2)
    fill = Payload.scalar(DType.FLOAT32, float(grower.integer(-1, 1)))
    return grower.make.op("pad", value, low=tuple(low), high=tuple(high), value=fill)


def _enlarge(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None or (value.shape[3].constant or 99) > 12:
        return None
    n, c, h, w = value.shape
    cut = grower.make.op("reshape", value, shape=(n, c, h, 1, w, 1))
    wide = grower.make.op("broadcast_to", cut, shape=(n, c, h, 2, w, 2))
    return grower.make.op("reshape", wide, shape=(n, c, h * 2, w * 2))


def _flatten(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None:
        return None
    n, c, h, w = value.shape
    flat = grower.make.op("reshape", value, shape=(n, c, h * w))
    return grower.make.op("transpose", flat, perm=(0, 2, 1)) if grower.integer(0, 1) else flat


def _dot(grower: Grower) -> Value | None:
    value = grower.any(3)
    if value is None or value.shape[2].constant is None:
        return None
    weights = grower.make.constant(value.shape[2].constant, grower.integer(1, 40), scale=0.2)
    return grower.make.op("dot", value, weights, batch_a=(), batch_b=(), contract_a=(2,), contract_b=(0,))


def _attend(grower: Grower) -> Value | None:
    value = grower.any(3)
    if value is None:
        return None
    turned = grower.make.op("transpose", value, perm=(0, 2, 1))
    scores = grower.make.op("tanh", grower.make.matmul(value, turned))
    return grower.make.matmul(scores, value)


def _reduce(grower: Grower) -> Value | None:
    value = grower.any()
    if value is None or len(value.shape) < 3:
        return None
    axis = grower.integer(1, len(value.shape) - 1)
    kept = grower.make.op("reduce", value, kind=str(grower.random.choice(["max", "min"])), axes=(axis,))
    shape = tuple(Dim.of(1) if at == axis else extent for at, extent in enumerate(value.shape))
    stretched = grower.make.op("broadcast_to", grower.make.op("reshape", kept, shape=shape), shape=value.shape)
    return grower.make.op("sub", value, stretched)


def _gather(grower: Grower) -> Value | None:
    value = grower.any(4)
    if value is None or value.shape[1].constant is None:
        return None
    rows = grower.random.integers(0, value.shape[1].constant, grower.integer(1, 20))
    return grower.make.op("gather", value, grower.make.numbers(rows, DType.INT64), axis=1)


STEPS: tuple[Step, ...] = (
    _unary,
    _binary,
    _binary,
    _scaled,
    _gated,
    _conv,
    _conv,
    _conv,
    _pool,
    _concat,
    _concat,
    _slice,
    _pad,
    _enlarge,
    _flatten,
    _dot,
    _attend,
    _reduce,
    _gather,
)
