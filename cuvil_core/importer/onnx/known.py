"""What is known of a primitive's result while importing: numbers by the reference, formulas over symbols exactly.

All translations emit primitives through `Context.emit`, which asks here first. So whatever is computed from constants
and extents alone is known to the nodes that need it as a shape, an axis or a scale, without a rule in any translation.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from cuvil_core.errors import InputError, ModelError
from cuvil_core.importer.onnx.tensor import MAX_CONTENT, Content, Recipe, Tensor, to_content
from cuvil_core.ir import Attribute, Dim, DType, Op, TensorType, Value, dim_max, dim_min, freeze
from cuvil_core.ops import RULES
from cuvil_core.reference import array_of, evaluate, numpy_dtype, payload_of

Array: TypeAlias = np.ndarray[Any, Any]
Fold = Callable[[Dim, Dim], Dim | None]
Attributes = Mapping[str, Attribute]

MADE_ON_DEMAND = frozenset({"broadcast_to", "iota"})
"""Their numbers are known, but a consumer that needs a value gets the op, which reads less than a constant."""


def known(name: str, operands: Sequence[Tensor], attributes: Attributes) -> Tensor | None:
    """The result of the primitive where it needs no op; None where it has to be computed, or is too large to follow.

    Raises what the op table raises for operands that do not fit, and ModelError for an index outside of its axis.
    """
    if any(operand.content is None and operand.payload is None for operand in operands):
        return None
    if not operands and name != "iota":
        return None
    type = RULES.infer(name, tuple(operand.type for operand in operands), freeze(attributes), None)[0]
    shape = type.static_shape
    if shape is None or not 0 <= int(np.prod(shape, dtype=object)) <= MAX_CONTENT:
        return None
    found = _numbers(name, operands, attributes, type) or _formulas(name, operands, attributes, type)
    if found is not None and name in MADE_ON_DEMAND:
        return Tensor(type, None, found.payload, found.content, Recipe(name, tuple(operands), freeze(attributes)))
    return found


def _numbers(name: str, operands: Sequence[Tensor], attributes: Attributes, type: TensorType) -> Tensor | None:
    """By the reference, where all operands and all extents of the attributes are numbers."""
    arrays = [_array(operand) for operand in operands]
    found = [array for array in arrays if array is not None]
    if len(found) < len(arrays) or any(dim.symbols for dim in _extents(attributes)):
        return None
    values = tuple(Value("", operand.type) for operand in operands)
    op = Op(name, values, (Value("", type),), freeze(attributes))
    try:
        (result,) = evaluate(op, {}, found)
    except InputError as error:
        raise ModelError("an index is outside of its axis") from error
    payload = payload_of(result)
    uniform = payload.elements > 1 and payload.item() is not None
    return Tensor.of_payload(payload, _uniform(payload.data, type) if uniform else None)


def _uniform(data: bytes, type: TensorType) -> Recipe:
    """One element stretched, which passes see through."""
    scalar = Tensor.of_bytes(type.dtype, (), data[: type.dtype.itemsize])
    return Recipe("broadcast_to", (scalar,), freeze({"shape": type.shape}))


def _array(tensor: Tensor) -> Array | None:
    if tensor.payload is not None:
        return array_of(tensor.payload) if tensor.payload.elements <= MAX_CONTENT else None
    numbers = tensor.numbers()
    if numbers is None:
        return None
    return np.array(numbers, numpy_dtype(tensor.dtype)).reshape([extent.constant or 0 for extent in tensor.shape])


def _extents(attributes: Attributes) -> list[Dim]:
    tuples = [value for value in attributes.values() if isinstance(value, tuple)]
    return [item for value in tuples for item in value if isinstance(item, Dim)]


def _formulas(name: str, operands: Sequence[Tensor], attributes: Attributes, type: TensorType) -> Tensor | None:
    """By a rule of `FORMULAS`, where one of the operands holds symbols and the result is exact."""
    rule = FORMULAS.get(name)
    contents = [_content(operand) for operand in operands]
    found = [content for content in contents if content is not None]
    if rule is None or len(found) < len(contents):
        return None
    result = rule(found, attributes, type)
    settled = None if result is None else _whole([_settled(type.dtype, dim) for dim in result.ravel()], result.shape)
    return None if settled is None else Tensor.of_content(type.dtype, settled)


def _content(tensor: Tensor) -> Content | None:
    """The elements as dims; for constants of floats where none has a fraction."""
    if tensor.content is not None:
        return tensor.content
    numbers = tensor.numbers()
    if numbers is None or not all(float(number).is_integer() for number in numbers):
        return None
    return to_content([int(number) for number in numbers], tuple(extent.constant or 0 for extent in tensor.shape))


def _settled(dtype: DType, dim: Dim) -> Dim | None:
    """The dim as the dtype holds it: numbers wrap, and coefficients beside symbols stay far from 64 bits."""
    if dim.constant is None:
        return dim if all(abs(coefficient) < 1 << 47 for _, coefficient in dim.terms) else None
    if dtype.is_float:
        return dim if abs(dim.constant) <= 1 << _BITS.get(dtype, 0) else None
    if not dtype.is_integer:
        return dim
    low = 1 << (8 * dtype.itemsize - 1) if dtype.is_signed else 0
    return Dim.of((dim.constant + low) % (1 << 8 * dtype.itemsize) - low)


def _divide(a: Dim, b: Dim) -> Dim | None:
    """Truncation equals rounding down only where both sides are known not to be negative."""
    low, by = a.least, b.least
    if b == 0 or low is None or by is None or (low < 0 and a.constant is None) or by < 1:
        return None
    return a // b if low >= 0 else -(-a // b)


def _rest(a: Dim, b: Dim) -> Dim | None:
    """What either kind of mod leaves where both sides are known not to be negative."""
    low, by = a.least, b.least
    return None if low is None or by is None or low < 0 or by < 1 else a - a // b * b


def _equal(a: Dim, b: Dim) -> Dim | None:
    difference = a - b
    low, high = difference.bounds()
    if difference.constant is not None:
        return Dim.of(int(difference == 0))
    apart = (low is not None and low > 0) or (high is not None and high < 0)
    return Dim.of(0) if apart else None


def _less(a: Dim, b: Dim) -> Dim | None:
    low, high = (a - b).bounds()
    if high is not None and high < 0:
        return Dim.of(1)
    return Dim.of(0) if low is not None and low >= 0 else None


def _not(value: Dim | None) -> Dim | None:
    return None if value is None else Dim.of(1) - value


BINARY: dict[str, Fold] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": dim_max,
    "min": dim_min,
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "lt": _less,
    "gt": lambda a, b: _less(b, a),
    "le": lambda a, b: _not(_less(b, a)),
    "ge": lambda a, b: _not(_less(a, b)),
    "and": lambda a, b: a * b,
    "or": dim_max,
}
_INTEGERS: dict[str, Fold] = {"div": _divide, "mod": _rest}
_FLOATS: dict[str, Fold] = {"div": lambda a, b: a.exact_div(b)}
_REDUCERS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "max": dim_max,
    "min": dim_min,
}


def _elementwise(name: str) -> "Rule":
    def rule(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
        floats = type.dtype.is_float
        fold = BINARY.get(name) or (_FLOATS if floats else _INTEGERS).get(name)
        pairs = zip(contents[0].ravel(), contents[1].ravel(), strict=True)
        return None if fold is None else _whole([fold(a, b) for a, b in pairs], contents[0].shape)

    return rule


def _whole(values: Sequence[Dim | None], shape: tuple[int, ...]) -> Content | None:
    found = [value for value in values if value is not None]
    return to_content(found, shape) if len(found) == len(values) else None


def _unary(function: Callable[[Dim], Dim | None]) -> "Rule":
    def rule(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
        return _whole([function(dim) for dim in contents[0].ravel()], contents[0].shape)

    return rule


def _absolute(dim: Dim) -> Dim | None:
    return dim if dim.least is not None and dim.least >= 0 else None


_BITS = {DType.INT64: 63, DType.UINT64: 64, DType.INT32: 31, DType.UINT32: 32, DType.FLOAT64: 53, DType.FLOAT32: 24}


def _cast(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
    """Wide types hold every extent that a tensor in memory can have; numbers beside them are checked one by one.

    float32 rounds extents beyond 2**24, which only Range reads as numbers, so symbols are let through.
    """
    bits = _BITS.get(type.dtype)
    signed = type.dtype not in (DType.UINT32, DType.UINT64)
    constants = [dim.constant for dim in contents[0].ravel()]
    if bits is None or not all(c is None or (-(1 << bits) < c < 1 << bits and (signed or c >= 0)) for c in constants):
        return None
    return contents[0]


def _select(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
    picks, a, b = (content.ravel() for content in contents)
    if any(pick.constant is None and x != y for pick, x, y in zip(picks, a, b, strict=True)):
        return None
    chosen = [y if pick == 0 else x for pick, x, y in zip(picks, a, b, strict=True)]
    return to_content(chosen, contents[0].shape)


def _fixed(attributes: Attributes, key: str) -> list[int] | None:
    """The extents of one attribute as numbers; None where a symbol is among them."""
    given = attributes[key]
    constants = [Dim.of(item).constant for item in given] if isinstance(given, tuple) else [None]
    return None if None in constants else [constant for constant in constants if constant is not None]


def _slice(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
    starts, sizes, steps = (_fixed(attributes, key) for key in ("starts", "sizes", "steps"))
    if starts is None or sizes is None or steps is None:
        return None
    taken = contents[0]
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        taken = np.take(taken, start + step * np.arange(size), axis=axis)
    return np.asarray(taken, object)


def _gather(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
    data, axis = contents[0], attributes["axis"]
    places = [dim.constant for dim in contents[1].ravel()]
    assert isinstance(axis, int)
    if None in places or data.shape[axis] == 0:
        return None
    clamped = [min(max(place or 0, 0), data.shape[axis] - 1) for place in places]
    return np.asarray(np.take(data, np.array(clamped, int).reshape(contents[1].shape), axis), object)


def _reduce(contents: list[Content], attributes: Attributes, type: TensorType) -> Content | None:
    axes, fold = attributes["axes"], _REDUCERS.get(str(attributes["kind"]))
    (data,) = contents
    if fold is None or not isinstance(axes, tuple) or 0 in data.shape:
        return None
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    shape = tuple(data.shape[axis] for axis in kept)
    rows = data.transpose([*kept, *(axis for axis in range(data.ndim) if axis in axes)]).reshape(
        int(np.prod(shape)), -1
    )
    return to_content([reduce(fold, row) for row in rows], shape)


def _transpose(contents: list[Content], attributes: Attributes, type: TensorType) -> Content:
    perm = attributes["perm"]
    assert isinstance(perm, tuple)
    return contents[0].transpose([int(axis) for axis in perm if isinstance(axis, int)])


def _concat(contents: list[Content], attributes: Attributes, type: TensorType) -> Content:
    axis = attributes["axis"]
    assert isinstance(axis, int)
    return np.concatenate(contents, axis)


def _shaped(move: Callable[[Content, tuple[int, ...]], Content]) -> "Rule":
    return lambda contents, attributes, type: np.asarray(move(contents[0], type.static_shape or ()), object)


Rule = Callable[[list[Content], Attributes, TensorType], Content | None]
"""(elements of the operands, attributes, result type) → elements, or None where they are no exact formulas."""

FORMULAS: dict[str, Rule] = {
    **{name: _elementwise(name) for name in (*BINARY, *_INTEGERS)},
    **{name: _unary(lambda dim: dim) for name in ("floor", "ceil", "round")},
    "neg": _unary(lambda dim: -dim),
    "not": _unary(lambda dim: Dim.of(1) - dim),
    "abs": _unary(_absolute),
    "cast": _cast,
    "select": _select,
    "broadcast_to": _shaped(np.broadcast_to),
    "reshape": _shaped(np.reshape),
    "transpose": _transpose,
    "slice": _slice,
    "concat": _concat,
    "gather": _gather,
    "reduce": _reduce,
}
