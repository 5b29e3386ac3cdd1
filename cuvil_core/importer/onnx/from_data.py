"""Shapes and places that only a call's values tell: int64 arithmetic in the graph, then extents bound from it.

Each function computes what its op says of such values, and checks in the call what the op forbids. Ranks stay fixed.
"""

from collections.abc import Callable, Sequence

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.distances import distance
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import Dim, DimLike, DType, product

INT64 = DType.INT64


def only_in_call(tensor: Tensor | None) -> bool:
    """True where the tensor is given, but its elements are not known while importing."""
    return tensor is not None and tensor.content is None and tensor.numbers() is None


def known(dims: Sequence[DimLike]) -> Tensor:
    """A vector of extents."""
    return Tensor.of_content(INT64, to_content([Dim.of(dim) for dim in dims], (len(dims),)))


def element(context: Context, vector: Tensor, at: int) -> Tensor:
    """One element of a vector as an int64 scalar."""
    return context.cast(context.reshape(context.slice(vector, 0, at, 1), ()), INT64)


def scalar(context: Context, number: DimLike) -> Tensor:
    """An extent as an int64 scalar."""
    return Tensor.of_content(INT64, to_content([Dim.of(number)], ()))


def counted(context: Context, extent: DimLike) -> Tensor:
    """0, 1, … extent - 1"""
    return context.emit("iota", shape=(Dim.of(extent),), axis=0, dtype=INT64)


def reshape_target(context: Context, x: Tensor, target: Tensor, copies: bool) -> list[Dim]:
    """Reshape's target: 0 copies an extent, -1 takes what is left."""
    length = context.length(target)
    wanted = context.cast(target, INT64)
    if copies:
        own = known([*x.shape[:length], *[0] * (length - x.rank)])
        wanted = context.emit("select", context.number("eq", wanted, 0), own, wanted)
    open_ = context.number("eq", wanted, -1)
    held = context.reduce("prod", context.emit("select", open_, context.like(wanted, 1), wanted), (0,), keepdims=False)
    rest = context.binary("div", scalar(context, x.type.elements), context.number("max", held, 1))
    shape = context.extents(context.emit("select", open_, context.stretch(rest, wanted.shape), wanted))
    return shape


def expanded_shape(context: Context, x: Tensor, target: Tensor) -> tuple[Dim, ...]:
    """Expand's result: an extent of 1 stretches to the target's, any other stays and the target must agree or be 1."""
    length = context.length(target)
    rank = max(x.rank, length)
    own = (Dim.of(1),) * (rank - x.rank) + x.shape
    shape = list(own)
    for at in range(rank - length, rank):
        wanted = element(context, target, at - (rank - length))
        if own[at] == 1:
            shape[at] = context.extent(wanted)
            continue
        fits = context.emit(
            "or", context.number("eq", wanted, 1), context.binary("eq", wanted, scalar(context, own[at]))
        )
        context.check(fits, f"the target extent of axis {at} is 1 or {own[at]}")
    return tuple(shape)


def wrapped(context: Context, axes: Tensor, rank: int) -> Tensor:
    """Axes counted from the front, checked."""
    axes = context.cast(axes, INT64)
    moved = context.emit("select", context.number("lt", axes, 0), context.number("add", axes, rank), axes)
    inside = context.emit("and", context.number("ge", moved, 0), context.number("lt", moved, rank))
    outside = context.reduce("sum", context.cast(context.emit("not", inside), INT64), range(axes.rank), keepdims=False)
    context.check(context.number("eq", outside, 0), f"the axes lie in {-rank} .. {rank - 1}")
    return moved


def along_axis(context: Context, rank: int, axis: Tensor, made: Callable[[int], Tensor]) -> Tensor:
    """The result along an axis that only a call knows: of the results along all axes, of one shape, the right one."""
    chosen = wrapped(context, context.reshape(axis, (1,)), rank)
    result = made(rank - 1)
    for at in range(rank - 1):
        other = made(at)
        hit = context.reshape(context.number("eq", chosen, at), ())
        result = context.emit("select", context.stretch(hit, other.shape), other, result)
    return result


def spread(context: Context, axes: Tensor, values: Tensor, rank: int, otherwise: Tensor) -> Tensor:
    """A vector of all axes: values at the named axes, `otherwise` elsewhere."""
    count = context.length(axes)
    shape = (Dim.of(rank), Dim.of(count))
    every = context.emit("iota", shape=shape, axis=0, dtype=INT64)
    hit = context.emit("eq", every, context.stretch(wrapped(context, axes, rank), shape))
    chosen = context.emit(
        "select", hit, context.stretch(context.cast(values, INT64), shape), context.full(INT64, 0, shape)
    )
    total = context.reduce("sum", chosen, (1,), keepdims=False)
    named = context.number("gt", context.reduce("sum", context.cast(hit, INT64), (1,), keepdims=False), 0)
    return context.emit("select", named, total, otherwise)


def slice_axis(context: Context, x: Tensor, axis: int, start: Tensor, end: Tensor, step: Tensor) -> Tensor:
    """Slice along one axis by int64 scalars: negative places count from the end, then all are clamped."""
    extent = scalar(context, x.shape[axis])
    forward = context.number("gt", step, 0)
    last = context.number("sub", extent, 1)

    def place(value: Tensor, low: int, backward_low: int) -> Tensor:
        value = context.emit("select", context.number("lt", value, 0), context.binary("add", value, extent), value)
        lowest = context.emit("select", forward, context.like(value, low), context.like(value, backward_low))
        highest = context.emit("select", forward, extent, last)
        return context.emit("max", lowest, context.emit("min", value, highest))

    first, stop = place(start, 0, 0), place(end, 0, -1)
    first = context.emit("max", first, context.like(first, 0))
    context.check(context.number("ne", step, 0), "a step is not 0")
    size = _length(context, steps_between(context, first, stop, step), start, end, step)
    places = context.emit("mul", counted(context, size), context.stretch(step, (size,)))
    places = context.emit("add", places, context.stretch(first, (size,)))
    return context.emit("gather", x, places, axis=axis)


def _length(context: Context, found: Tensor, start: Tensor, end: Tensor, step: Tensor) -> Dim:
    """An extent of the call; in a block, where that cannot be, the distance of the ends, which each run checks."""
    apart = distance(context, start, end) if context.in_block and found.content is None else None
    steps = context.numbers(step, "the steps") if apart is not None and step.content is not None else [0]
    if apart is None or int(steps[0]) < 1:
        return context.extent(found)
    size = max(0, -(-apart // int(steps[0])))
    context.check(context.number("eq", found, size), f"a slice of {size} elements lies within its axis")
    return Dim.of(size)


def steps_between(context: Context, first: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    """How many steps lead from first to before stop: max(0, ceil((stop - first) / step)); 0 for a step of 0."""
    one = context.like(step, 1)
    size = context.emit("max", context.emit("abs", step), one)
    ahead = context.emit("sub", stop, first)
    way = context.emit("select", context.number("lt", step, 0), context.emit("neg", ahead), ahead)
    way = context.emit("max", way, context.like(way, 0))
    return context.emit("div", context.emit("add", way, context.emit("sub", size, one)), size)


def padded(context: Context, x: Tensor, low: Sequence[Tensor], high: Sequence[Tensor], value: Tensor) -> Tensor:
    """Pad with one value by int64 scalars, one an axis; negative ones cut off."""
    inside: Tensor | None = None
    shape: list[Dim] = []
    for axis in range(x.rank):
        before = scalar(context, x.shape[axis])
        size = context.extent(context.emit("add", context.emit("add", low[axis], before), high[axis]))
        shape.append(size)
        places = context.emit("sub", counted(context, size), context.stretch(low[axis], (size,)))
        held = context.emit("and", context.number("ge", places, 0), context.binary("lt", places, before))
        line = [Dim.of(1)] * x.rank
        line[axis] = size
        held = context.reshape(held, line)
        inside = held if inside is None else context.binary("and", inside, held)
        x = context.emit("gather", x, places, axis=axis)
    if inside is None:
        return x
    full = tuple(shape)
    return context.emit("select", context.stretch(inside, full), x, context.stretch(value, full))


def unsqueezed(context: Context, x: Tensor, axes: Tensor) -> Tensor:
    """Extents of 1 at the named axes of the result."""
    rank = x.rank + context.length(axes)
    axes = wrapped(context, axes, rank)
    named, before = _named(context, axes, rank)
    _require_distinct(context, named, context.length(axes))
    if x.rank == 0:
        return context.reshape(x, [1] * rank)
    own = context.emit("sub", counted(context, rank), before)
    picked = context.emit("gather", known(x.shape), own, axis=0)
    target = context.emit("select", named, context.like(picked, 1), picked)
    return context.reshape(x, context.extents(target))


def squeezed(context: Context, x: Tensor, axes: Tensor) -> Tensor:
    """The tensor without the named axes, whose extents must be 1."""
    axes = wrapped(context, axes, x.rank)
    named, _ = _named(context, axes, x.rank)
    _require_distinct(context, named, context.length(axes))
    extents = context.emit("gather", known(x.shape), axes, axis=0)
    wrong = context.reduce("sum", context.cast(context.number("ne", extents, 1), INT64), (0,), keepdims=False)
    context.check(context.number("eq", wrong, 0), "the squeezed axes have extent 1")
    order = permutation(context, axes, x.rank)
    kept = context.slice(order, 0, 0, x.rank - context.length(axes))
    return context.reshape(x, context.extents(context.emit("gather", known(x.shape), kept, axis=0)))


def reduced(context: Context, x: Tensor, axes: Tensor) -> tuple[Tensor, int, Tensor]:
    """(the tensor with the named axes moved last, how many they are, which axes are named)."""
    axes = wrapped(context, axes, x.rank)
    named, _ = _named(context, axes, x.rank)
    count = context.length(axes)
    _require_distinct(context, named, count)
    return transposed(context, x, permutation(context, axes, x.rank)), count, named


def kept_shape(context: Context, x: Tensor, named: Tensor) -> list[Dim]:
    """The tensor's shape with 1 at the named axes."""
    own = known(x.shape)
    return context.extents(context.emit("select", named, context.like(own, 1), own))


def permutation(context: Context, axes: Tensor, rank: int) -> Tensor:
    """All axes: those that are not named in order, then the named ones in order."""
    named, before = _named(context, axes, rank)
    every = counted(context, rank)
    first = context.emit("sub", every, before)
    last = context.number("add", before, rank - context.length(axes))
    places = context.emit("select", named, last, first)
    square = (Dim.of(rank), Dim.of(rank))
    row = context.emit("iota", shape=square, axis=0, dtype=INT64)
    hit = context.emit("eq", row, context.stretch(places, square))
    numbers = context.emit("select", hit, context.stretch(every, square), context.full(INT64, 0, square))
    return context.reduce("sum", numbers, (1,), keepdims=False)


def transposed(context: Context, x: Tensor, order: Tensor) -> Tensor:
    """Transpose by a permutation that only the call knows."""
    if x.rank <= 1:
        return x
    shape = tuple(context.extents(context.emit("gather", known(x.shape), order, axis=0)))
    strides = known([product(x.shape[axis + 1 :]) for axis in range(x.rank)])
    steps = context.emit("gather", strides, order, axis=0)
    place = context.full(INT64, 0, shape)
    for axis in range(x.rank):
        along = context.emit("iota", shape=shape, axis=axis, dtype=INT64)
        step = context.stretch(element(context, steps, axis), shape)
        place = context.emit("add", place, context.emit("mul", along, step))
    flat = context.reshape(x, (x.type.elements,))
    return context.emit("gather", flat, place, axis=0)


def _named(context: Context, axes: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """(which axes are named, how many named ones stand before each), for axes counted from the front."""
    shape = (Dim.of(rank), Dim.of(context.length(axes)))
    every = context.emit("iota", shape=shape, axis=0, dtype=INT64)
    wide = context.stretch(axes, shape)

    def tally(condition: Tensor) -> Tensor:
        return context.reduce("sum", context.cast(condition, INT64), (1,), keepdims=False)

    return context.number("gt", tally(context.emit("eq", every, wide)), 0), tally(context.emit("lt", wide, every))


def _require_distinct(context: Context, named: Tensor, count: int) -> None:
    total = context.reduce("sum", context.cast(named, INT64), (0,), keepdims=False)
    context.check(context.number("eq", total, count), "no axis is named twice")
