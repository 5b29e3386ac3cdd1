"""Sums, means, extremes and norms over axes; places of extremes."""

from collections.abc import Callable

from cuvil_core.importer.onnx import from_data
from cuvil_core.importer.onnx.context import Context, resolve_axes, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType

Reduction = Callable[[Context, Tensor, tuple[int, ...], bool], Tensor]


def _reduction(compute: Reduction) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        x, given, keep = need(node, operands, 0), optional(operands, 1), node.flag("keepdims", True)
        if given is None or given.numbers() is not None or given.type.elements == 0:
            return compute(context, x, _axes(context, node, operands, x.rank), keep)
        moved, count, named = from_data.reduced(context, x, given)
        result = compute(context, moved, tuple(range(x.rank - count, x.rank)), False)
        return context.reshape(result, from_data.kept_shape(context, x, named)) if keep else result

    return translate


def _axes(context: Context, node: Node, operands: Operands, rank: int) -> tuple[int, ...]:
    """The axes; where none are given all, or none: then only what the node does to each element is left."""
    given = optional(operands, 1)
    if given is not None and given.type.elements == 0:
        given = None
    named = context.ints(given, "the axes") if given is not None else list(node.integers("axes", ()))
    if not named:
        return () if node.flag("noop_with_empty_axes", False) else tuple(range(rank))
    return resolve_axes(named, rank)


def _plain(kind: str) -> Reduction:
    """Of bools too: their greatest and least are any and all."""

    def compute(context: Context, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if x.dtype is not DType.BOOL:
            return context.reduce(kind, x, axes, keep)
        return context.cast(context.reduce(kind, context.cast(x, DType.UINT8), axes, keep), DType.BOOL)

    return compute


def _extreme(kind: str) -> Reduction:
    """Of bools as bytes: any and all."""

    def compute(context: Context, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if x.dtype is not DType.BOOL:
            return context.reduce(kind, x, axes, keep)
        return context.cast(context.reduce(kind, context.cast(x, DType.UINT8), axes, keep), DType.BOOL)

    return compute


def _square(context: Context, x: Tensor) -> Tensor:
    return context.emit("mul", x, x)


def _log_sum_exp(context: Context, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """log(sum of exp(x - top)) + top, with top 0 where the maximum is infinite: inf - inf is no number."""
    most = context.reduce("max", x, axes)
    top = context.emit("select", context.emit("isinf", most), context.like(most, 0), most)
    total = context.reduce("sum", context.emit("exp", context.binary("sub", x, top)), axes)
    result = context.emit("add", context.emit("log", total), top)
    shape = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
    return result if keep else context.reshape(result, shape)


def _arg(kind: str) -> Translate:
    def translate(context: Context, node: Node, operands: Operands) -> Tensor:
        x = need(node, operands, 0)
        axis = resolve_axis(node.integer("axis", 0), x.rank)
        last = node.flag("select_last_index", False)
        result = context.emit("arg_reduce", x, kind=kind, axis=axis, select_last=last)
        shape = [extent if at != axis else 1 for at, extent in enumerate(x.shape)]
        return context.reshape(result, shape) if node.flag("keepdims", True) else result

    return translate


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _plain("sum"),
    "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"),
    "ReduceProd": _plain("prod"),
    "ReduceMean": lambda context, x, axes, keep: context.mean(x, axes, keep),
    "ReduceL1": lambda context, x, axes, keep: context.reduce("sum", context.emit("abs", x), axes, keep),
    "ReduceL2": lambda context, x, axes, keep: context.emit(
        "sqrt", context.reduce("sum", _square(context, x), axes, keep)
    ),
    "ReduceSumSquare": lambda context, x, axes, keep: context.reduce("sum", _square(context, x), axes, keep),
    "ReduceLogSum": lambda context, x, axes, keep: context.emit("log", context.reduce("sum", x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
}
ENTRIES: tuple[Entry, ...] = (
    *(Entry(op_type, _reduction(compute)) for op_type, compute in _REDUCTIONS.items()),
    Entry("ArgMax", _arg("max")),
    Entry("ArgMin", _arg("min")),
)
