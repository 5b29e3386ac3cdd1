"""Values from attributes, shapes and counting."""

import math
from dataclasses import replace

import numpy as np

from cuvil_core.importer.onnx.context import MAX_EXTENT, Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.from_data import scalar, steps_between
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import MAX_CONTENT, Tensor, to_content
from cuvil_core.importer.onnx.tensors import tensor_of_proto
from cuvil_core.ir import Dim, DType, Payload, product

BEYOND_TENSORS = 1 << 40
"""A diagonal so far off lies outside of any tensor, and a row added to it within 64 bits."""


def _constant(context: Context, node: Node, operands: Operands) -> Tensor:
    given = [key for key in node.attributes if key.startswith("value")]
    if len(given) != 1:
        raise node.unsupported("a sparse constant") if not given else node.broken("it gives two values")
    (key,) = given
    if key == "value":
        return tensor_of_proto(node.attributes["value"].t, None, str(node))
    if key in ("value_int", "value_ints"):
        numbers = [node.integer(key)] if key == "value_int" else list(node.integers(key))
        return Tensor.of_payload(Payload.of(DType.INT64, () if key == "value_int" else (len(numbers),), numbers))
    if key in ("value_float", "value_floats"):
        values = [node.number(key)] if key == "value_float" else list(node.numbers(key))
        return Tensor.of_payload(Payload.of(DType.FLOAT32, () if key == "value_float" else (len(values),), values))
    raise node.unsupported("a constant of strings")


def _constant_of_shape(context: Context, node: Node, operands: Operands) -> Tensor:
    shape = context.extents(need(node, operands, 0))
    if any(extent.bounds()[1] is not None and (extent.bounds()[1] or 0) < 0 for extent in shape):
        raise node.broken(f"the shape {[str(extent) for extent in shape]} has a negative extent")
    given = Tensor.of_payload(Payload.scalar(DType.FLOAT32, 0.0))
    if node.has("value"):
        given = tensor_of_proto(node.attributes["value"].t, None, str(node))
    fill = given.payload
    if fill is None or fill.elements != 1:
        raise node.broken("the value must have one element")
    filled = _filled(context, Tensor.of_payload(Payload(fill.dtype, (), fill.data)), shape)
    return replace(filled, element=given.element)


def _filled(context: Context, scalar: Tensor, shape: list[Dim]) -> Tensor:
    """The number everywhere, known where it and the extents are."""
    fixed = [extent.constant for extent in shape]
    count = product(shape).constant
    if scalar.content is not None and count is not None and count <= MAX_CONTENT and None not in fixed:
        return Tensor.of_content(
            scalar.dtype, np.full([f for f in fixed if f is not None], scalar.content.item(), object)
        )
    return context.stretch(scalar, tuple(shape))


def _shape(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    start, end = node.integer("start", 0), node.integer("end", x.rank)
    extents = list(x.shape)[start:end]
    return Tensor.of_content(DType.INT64, to_content(extents, (len(extents),)))


def _size(context: Context, node: Node, operands: Operands) -> Tensor:
    return Tensor.of_content(DType.INT64, to_content([need(node, operands, 0).type.elements], ()))


def _range(context: Context, node: Node, operands: Operands) -> Tensor:
    start, limit, delta = all_of(node, operands)
    dtype = start.dtype
    if any(tensor.rank != 0 and tensor.type.elements != 1 for tensor in (start, limit, delta)):
        raise node.broken("start, limit and delta must be scalars")
    numbers = [tensor.numbers() for tensor in (start, limit, delta)]
    if all(numbers):
        first, last, step = (number[0] for number in numbers if number)
        return _fixed_range(context, node, dtype, first, last, step)
    if any(tensor.content is None and tensor.numbers() is None for tensor in (start, limit, delta)):
        return _range_from_data(context, *(context.reshape(tensor, ()) for tensor in (start, limit, delta)))
    return _symbolic_range(context, node, dtype, start, limit, delta)


def _fixed_range(
    context: Context, node: Node, dtype: DType, first: float | int, last: float | int, step: float | int
) -> Tensor:
    """Integers exactly; floats with the number of steps in double, as in runtimes."""
    if step == 0 or not all(map(math.isfinite, (first, last, step))):
        raise node.broken("delta must not be zero and all three must be finite")
    if isinstance(first, int) and isinstance(last, int) and isinstance(step, int):
        count = max(0, -((first - last) // step))
    else:
        steps = (last - first) / step
        count = max(0, math.ceil(steps)) if math.isfinite(steps) else MAX_EXTENT + 1
    if dtype.is_integer and isinstance(first, int) and isinstance(step, int) and count <= MAX_CONTENT:
        values = [first + at * step for at in range(count)]
        return Tensor.of_content(dtype, to_content(values, (count,)))
    return _counted(context, dtype, Dim.of(count), first, step)


def _range_from_data(context: Context, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """start + delta * (0, 1, …); the number of steps of floats in double, as in runtimes."""
    context.check(context.number("ne", delta, 0), "delta is not 0")
    if start.dtype.is_float:
        first, last, step = (context.cast(tensor, DType.FLOAT64) for tensor in (start, limit, delta))
        steps = context.emit("ceil", context.emit("div", context.emit("sub", last, first), step))
        size = context.cast(context.number("max", steps, 0), DType.INT64)
    else:
        size = steps_between(context, *(context.cast(tensor, DType.INT64) for tensor in (start, limit, delta)))
    line = context.emit("iota", shape=(context.extent(size),), axis=0, dtype=start.dtype)
    return context.binary("add", context.binary("mul", line, delta), start)


def _symbolic_range(context: Context, node: Node, dtype: DType, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    first, last = _whole(node, start), _whole(node, limit)
    step = _whole(node, delta).constant
    if step is None or step < 1:
        raise node.unsupported("a delta that is not a positive constant beside symbolic ends")
    count = (last - first).ceil_div(step)
    if first.constant is None:
        raise node.unsupported("a symbolic start")
    least = count.least
    if least is None or least < 0:
        raise node.unsupported("ends of which it is not known that the first is the smaller one")
    return _counted(context, dtype, count, first.constant, step)


def _whole(node: Node, tensor: Tensor) -> Dim:
    """The element as a dim: known, or a constant float without a fraction."""
    if tensor.content is not None:
        found: Dim = tensor.content.ravel()[0]
        return found
    numbers = tensor.numbers()
    if not numbers or not math.isfinite(numbers[0]) or int(numbers[0]) != numbers[0]:
        raise node.unsupported("an end that is computed from data or has a fraction beside a symbolic one")
    return Dim.of(int(numbers[0]))


def _counted(context: Context, dtype: DType, count: Dim, first: float | int, step: float | int) -> Tensor:
    """first + step * (0, 1, …)"""
    line = context.emit("iota", shape=(count,), axis=0, dtype=dtype)
    line = line if step == 1 else context.number("mul", line, step)
    return line if first == 0 else context.number("add", line, first)


def _trilu(context: Context, node: Node, operands: Operands) -> Tensor:
    """x where column - row >= k (upper) or <= k (lower), else 0"""
    x, given = need(node, operands, 0), optional(operands, 1)
    if x.rank < 2:
        raise node.broken("it needs at least two axes")
    rows = context.emit("iota", shape=x.shape[-2:], axis=0, dtype=DType.INT64)
    columns = context.emit("iota", shape=x.shape[-2:], axis=1, dtype=DType.INT64)
    edge = context.binary("add", rows, _diagonal(context, given))
    kept = context.emit("ge" if node.flag("upper", True) else "le", columns, edge)
    return context.emit("select", context.stretch(kept, x.shape), x, context.like(x, 0))


def _diagonal(context: Context, given: Tensor | None) -> Tensor:
    """The number of the diagonal as an int64 scalar, near enough to 0 to be added to."""
    if given is None:
        return scalar(context, 0)
    numbers = given.numbers()
    if numbers is not None:
        return scalar(context, max(-BEYOND_TENSORS, min(int(numbers[0]), BEYOND_TENSORS)))
    shift = context.cast(context.reshape(given, ()), DType.INT64)
    return context.number("max", context.number("min", shift, BEYOND_TENSORS), -BEYOND_TENSORS)


def _depth(context: Context, node: Node, depth: Tensor) -> Dim:
    """A number of classes, which may come as a float; its fraction is dropped, as a cast does."""
    if depth.type.elements != 1:
        raise node.broken("depth must be a number")
    numbers = depth.numbers() if depth.dtype.is_float else None
    if numbers is None:
        return context.extent(depth)
    if not 0 <= numbers[0] <= MAX_EXTENT:
        raise node.broken(f"the depth {numbers[0]} is no number of classes")
    return Dim.of(int(numbers[0]))


def _one_hot(context: Context, node: Node, operands: Operands) -> Tensor:
    """on where the index (negative ones count from the end) is the place on the new axis, else off"""
    indices, depth, values = all_of(node, operands)
    places = [_depth(context, node, depth)]
    if values.type.elements != 2:
        raise node.broken("values must be two")
    axis = resolve_axis(node.integer("axis", -1), indices.rank + 1)
    shape = (*indices.shape[:axis], places[0], *indices.shape[axis:])
    numbers = context.cast(indices, DType.INT64)
    count = context.count(places[0], DType.INT64)
    wrapped = context.emit("select", context.number("lt", numbers, 0), context.binary("add", numbers, count), numbers)
    column = context.reshape(wrapped, [*indices.shape[:axis], 1, *indices.shape[axis:]])
    line = context.emit("iota", shape=shape, axis=axis, dtype=DType.INT64)
    hit = context.emit("eq", context.stretch(column, shape), line)
    off, on = (context.reshape(context.slice(values, 0, at, 1), ()) for at in (0, 1))
    return context.emit("select", hit, context.stretch(on, shape), context.stretch(off, shape))


ENTRIES: tuple[Entry, ...] = (
    Entry("Constant", _constant),
    Entry("ConstantOfShape", _constant_of_shape, since=9),
    Entry("Shape", _shape),
    Entry("Size", _size),
    Entry("Range", _range, since=11),
    Entry("Trilu", _trilu, since=14),
    Entry("OneHot", _one_hot, since=9),
)
