"""Matrices and running totals: EyeLike, Hardmax, Det, CumSum, CumProd."""

from cuvil_core.importer.onnx import from_data
from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of, need
from cuvil_core.importer.onnx.lookups import counted
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import dtype_of
from cuvil_core.ir import Dim, product

BEYOND_TENSORS = 1 << 40
"""A diagonal so far off lies outside of any tensor, and a row added to it within 64 bits."""
MAX_DET = 16
"""Elimination is written out step by step; larger matrices want a library."""


def _eye_like(context: Context, node: Node, operands: Operands) -> Tensor:
    x = need(node, operands, 0)
    if x.rank != 2:
        raise node.broken("its input must be a matrix")
    dtype = dtype_of(node.integer("dtype"), str(node)) if node.has("dtype") else x.dtype
    shift = max(-BEYOND_TENSORS, min(node.integer("k", 0), BEYOND_TENSORS))
    edge = context.number("add", counted(context, x.shape, 0), shift)
    return context.cast(context.emit("eq", counted(context, x.shape, 1), edge), dtype)


def _hardmax(context: Context, node: Node, operands: Operands) -> Tensor:
    """1 at the first greatest element along the axis, else 0; before opset 13 along all axes from it on."""
    x = need(node, operands, 0)
    if node.opset >= 13:
        return _one_at_extreme(context, x, resolve_axis(node.integer("axis", -1), x.rank))
    axis = resolve_axis(node.integer("axis", 1), x.rank)
    flat = context.reshape(x, [product(x.shape[:axis]), product(x.shape[axis:])])
    return context.reshape(_one_at_extreme(context, flat, 1), x.shape)


def _one_at_extreme(context: Context, x: Tensor, axis: int) -> Tensor:
    place = context.emit("arg_reduce", x, kind="max", axis=axis, select_last=False)
    column = context.reshape(place, [Dim.of(1) if at == axis else extent for at, extent in enumerate(x.shape)])
    hit = context.emit("eq", context.stretch(column, x.shape), counted(context, x.shape, axis))
    return context.cast(hit, x.dtype)


def _det(context: Context, node: Node, operands: Operands) -> Tensor:
    """The product of the pivots, negative for an odd number of exchanged rows."""
    x = need(node, operands, 0)
    if x.rank < 2:
        raise node.broken("its input must hold matrices")
    context.guard(x.shape[-1], x.shape[-2])
    size = x.shape[-1].constant if x.shape[-1].constant is not None else x.shape[-2].constant
    if size is None or not 1 <= size <= MAX_DET:
        raise node.unsupported(f"matrices of other extents than 1 to {MAX_DET}")
    batch = product(x.shape[:-2])
    rest = context.reshape(x, [batch, size, size])
    result: Tensor | None = None
    while rest.shape[1] != 1:
        pivot, rest = _eliminated(context, rest)
        result = pivot if result is None else context.emit("mul", result, pivot)
    last = context.reshape(rest, [batch])
    return context.reshape(last if result is None else context.emit("mul", result, last), x.shape[:-2])


def _eliminated(context: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """(pivot with the sign of the exchange, what is left without its row and the first column)."""
    batch, size = x.shape[0], x.shape[1]
    column = context.slice(x, 2, 0, 1)
    flat = context.reshape(context.emit("abs", column), [batch, size])
    place = context.emit("arg_reduce", flat, kind="max", axis=1, select_last=False)
    chosen = context.emit(
        "eq", counted(context, [batch, size], 1), context.stretch(context.reshape(place, [batch, 1]), (batch, size))
    )
    mask = context.stretch(context.reshape(chosen, [batch, size, 1]), x.shape)
    row = context.reduce("sum", context.emit("select", mask, x, context.like(x, 0)), [1])
    first = context.stretch(context.slice(x, 1, 0, 1), x.shape)
    lower = context.slice(context.emit("select", mask, first, x), 1, 1, size - 1)
    pivot = context.slice(row, 2, 0, 1)
    zero = context.number("eq", pivot, 0)
    divisor = context.emit("select", zero, context.like(pivot, 1), pivot)
    factors = context.binary("div", context.slice(lower, 2, 0, 1), divisor)
    step = context.binary("mul", factors, context.slice(row, 2, 1, size - 1))
    left = context.emit("sub", context.slice(lower, 2, 1, size - 1), step)
    value = context.reshape(pivot, [batch])
    kept = context.number("eq", place, 0)
    return context.emit("select", kept, value, context.emit("neg", value)), left


def _running(kind: str, identity: int) -> Translate:
    """Totals up to each element; exclusive without itself, reverse from the other end."""

    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        x, given = all_of(node, operands)
        if given.type.elements != 1 or x.rank == 0:
            raise node.broken("it needs one axis")

        def along(axis: int) -> Tensor:
            return _total(context, node, x, axis, kind, identity)

        if from_data.only_in_call(given):
            return from_data.along_axis(context, x.rank, given, along)
        return along(resolve_axis(context.ints(given, "the axis")[0], x.rank))

    return translate


def _total(context: Context, node: Node, x: Tensor, axis: int, kind: str, identity: int) -> Tensor:
    reverse = node.flag("reverse", False)
    x = _backward(context, x, axis) if reverse else x
    if node.flag("exclusive", False):
        x = _shifted(context, x, axis, identity)
    total = context.emit("prefix_reduce", x, kind=kind, axis=axis)
    return _backward(context, total, axis) if reverse else total


def _backward(context: Context, x: Tensor, axis: int) -> Tensor:
    extent = x.shape[axis]
    return x if extent == 1 else context.slice(x, axis, extent - 1, extent, -1)


def _shifted(context: Context, x: Tensor, axis: int, identity: int) -> Tensor:
    """The identity, then all elements but the last."""
    low, high = [Dim.of(0)] * x.rank, [Dim.of(0)] * x.rank
    low[axis] = Dim.of(1)
    return context.slice(pad(context, x, low, high, identity), axis, 0, x.shape[axis])


ENTRIES: tuple[Entry, ...] = (
    Entry("EyeLike", _eye_like, since=9),
    Entry("Hardmax", _hardmax),
    Entry("Det", _det, since=11),
    Entry("CumSum", _running("sum", 0), since=11),
    Entry("CumProd", _running("prod", 1), since=26),
)
