"""ai.onnx.ml on features that are numbers: extracted, compared, encoded, scaled, normalized, filled in."""

import math
from collections.abc import Sequence

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need
from cuvil_core.importer.onnx.lookups import places_of
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import payload_of_proto
from cuvil_core.ir import Dim, DType, Payload

DOMAIN = "ai.onnx.ml"
MAX_KEYS = 1 << 12
"""Each element is compared with each key."""


def _extract(context: Context, node: Node, operands: Operands) -> Tensor:
    """The named columns of the last axis; a vector counts as one row."""
    x, indices = all_of(node, operands)
    if x.rank == 0:
        raise node.broken("its input has no features")
    count = indices.type.elements
    places = places_of(context, context.reshape(indices, [count]), x.shape[-1])
    picked = context.emit("gather", x, places, axis=x.rank - 1)
    return context.reshape(picked, [Dim.of(1), count]) if x.rank == 1 else picked


def _binarize(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    return context.cast(context.number("gt", x, _threshold(node, x)), x.dtype)


def _threshold(node: Node, x: Tensor) -> float:
    threshold = node.number("threshold", 0.0)
    if not x.dtype.is_float and not threshold.is_integer():
        raise node.unsupported(f"the threshold {threshold} on {x.dtype}")
    return threshold


def _encode(context: Context, node: Node, operands: Operands) -> Tensor:
    """The value beside the last key that equals the element (a NaN equals a NaN), else the default."""
    x = need(node, operands, 0)
    keys = _listed(node, "keys")
    values = _listed(node, "values")
    if keys.elements != values.elements or not 1 <= keys.elements <= MAX_KEYS:
        raise node.broken(f"it has {keys.elements} keys and {values.elements} values; from 1 to {MAX_KEYS} are needed")
    if keys.dtype is not x.dtype:
        raise node.broken(f"its keys are {keys.dtype} and its input {x.dtype}")
    shape = (*x.shape, Dim.of(keys.elements))
    column = context.stretch(context.reshape(x, [*x.shape, Dim.of(1)]), shape)
    line = context.stretch(_vector(keys), shape)
    hit = context.emit("eq", column, line)
    if x.dtype.is_float:
        both = context.emit("and", context.emit("isnan", column), context.emit("isnan", line))
        hit = context.emit("or", hit, both)
    marks = context.cast(hit, DType.INT32)
    last = context.emit("arg_reduce", marks, kind="max", axis=x.rank, select_last=True)
    found = context.number("gt", context.reduce("max", marks, [x.rank], keepdims=False), 0)
    picked = context.emit("gather", _vector(values), last, axis=0)
    return context.emit("select", found, picked, context.stretch(_default(context, node, values.dtype), x.shape))


def _vector(payload: Payload) -> Tensor:
    return Tensor.of_payload(Payload(payload.dtype, (payload.elements,), payload.data))


def _listed(node: Node, kind: str) -> Payload:
    """Keys or values, of whichever attribute is given."""
    if node.has(f"{kind}_int64s"):
        numbers = node.integers(f"{kind}_int64s")
        return Payload.of(DType.INT64, (len(numbers),), list(numbers))
    if node.has(f"{kind}_floats"):
        floats = node.numbers(f"{kind}_floats")
        return Payload.of(DType.FLOAT32, (len(floats),), list(floats))
    if node.has(f"{kind}_tensor"):
        return payload_of_proto(node.attributes[f"{kind}_tensor"].t, None, str(node))
    raise node.unsupported("strings") if node.has(f"{kind}_strings") else node.broken(f"it lacks its {kind}")


def _default(context: Context, node: Node, dtype: DType) -> Tensor:
    if node.has("default_tensor"):
        payload = payload_of_proto(node.attributes["default_tensor"].t, None, str(node))
        if payload.elements != 1 or payload.dtype is not dtype:
            raise node.broken("its default must be one element of the dtype of its values")
        return Tensor.of_payload(Payload(payload.dtype, (), payload.data))
    if dtype is DType.INT64:
        return context.scalar(dtype, node.integer("default_int64", -1))
    return context.scalar(dtype, node.number("default_float", -0.0) if dtype.is_float else -1)


def _per_feature(node: Node, x: Tensor, numbers: Sequence[float], what: str) -> Tensor:
    """One number for all features, or one each."""
    if not numbers or (len(numbers) > 1 and x.shape[-1].constant not in (None, len(numbers))):
        raise node.broken(f"its {what} does not fit {x.shape[-1]} features")
    return Tensor.of_payload(Payload.of(DType.FLOAT32, (len(numbers),), list(numbers)))


def _scale(context: Context, node: Node, operands: Operands) -> Tensor:
    """(x - offset) · scale, float32"""
    x = need(node, operands, 0)
    if x.rank == 0:
        raise node.broken("its input has no features")
    offset = _per_feature(node, x, node.numbers("offset", (0.0,)), "offset")
    scale = _per_feature(node, x, node.numbers("scale", (1.0,)), "scale")
    shifted = context.binary("sub", context.cast(x, DType.FLOAT32), offset)
    return context.binary("mul", shifted, scale)


def _normalize(context: Context, node: Node, operands: Operands) -> Tensor:
    """Each row by its greatest magnitude, its sum of magnitudes, or its length; a row of zeros stays."""
    x, norm = context.cast(need(node, operands, 0), DType.FLOAT32), node.text("norm", "MAX")
    if x.rank not in (1, 2) or norm not in ("MAX", "L1", "L2"):
        raise node.broken(f"it needs rows and one of the norms MAX, L1 and L2, not {norm}")
    axis = (x.rank - 1,)
    if norm == "MAX":
        # The ML text says max; runtimes differ on rows whose greatest magnitude is negative.
        raise node.unsupported("the norm MAX, on which runtimes differ")
    if norm == "L1":
        size = context.reduce("sum", context.emit("abs", x), axis)
    else:
        size = context.emit("sqrt", context.reduce("sum", context.emit("mul", x, x), axis))
    size = context.stretch(size, x.shape)
    return context.emit("select", context.number("eq", size, 0), x, context.emit("div", x, size))


def _impute(context: Context, node: Node, operands: Operands) -> Tensor:
    """The feature's own number in place of the one that stands for `missing`."""
    x = need(node, operands, 0)
    if x.rank == 0:
        raise node.broken("its input has no features")
    kind = "floats" if x.dtype.is_float else "int64s"
    numbers: Sequence[float | int]
    numbers = (
        node.numbers("imputed_value_floats", ()) if x.dtype.is_float else node.integers("imputed_value_int64s", ())
    )
    if not numbers or (len(numbers) > 1 and x.shape[-1].constant not in (None, len(numbers))):
        raise node.broken(f"its imputed_value_{kind} do not fit {x.shape[-1]} features")
    values = Tensor.of_payload(Payload.of(x.dtype, (len(numbers),), list(numbers)))
    if x.dtype.is_float:
        replaced = node.number("replaced_value_float", 0.0)
        missing = context.emit("isnan", x) if math.isnan(replaced) else context.number("eq", x, replaced)
    else:
        missing = context.number("eq", x, node.integer("replaced_value_int64", 0))
    if len(numbers) > 1:
        context.guard(x.shape[-1], len(numbers))
    return context.emit("select", missing, context.stretch(values, x.shape), x)


ENTRIES: tuple[Entry, ...] = (
    Entry("ArrayFeatureExtractor", _extract, since=1, domain=DOMAIN),
    Entry("Binarizer", _binarize, since=1, domain=DOMAIN),
    Entry("LabelEncoder", _encode, since=2, domain=DOMAIN),
    Entry("Scaler", _scale, since=1, domain=DOMAIN),
    Entry("Normalizer", _normalize, since=1, domain=DOMAIN),
    Entry("Imputer", _impute, since=1, domain=DOMAIN),
)
