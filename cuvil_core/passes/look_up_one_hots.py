"""A dot with a one-hot tensor is a table look-up, and what follows row by row can be done on the table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cuvil_core.ir import DType, Graph, Op, Payload, TensorType, Value
from cuvil_core.ops import RULES, is_elementwise
from cuvil_core.passes.constants import Array, per_channel, small_constant
from cuvil_core.passes.properties import Property
from cuvil_core.reference import evaluate, payload_of
from cuvil_core.rewriting import Editor, Facts, PassResult, apply_rules

MAX_TABLE_ELEMENTS = 1 << 22


@dataclass(frozen=True, slots=True)
class _DotToGather:
    """dot(cast(i == (0, 1, …)), w)  →  gather(w with a row of zeros, i or that row)"""

    name: ClassVar[str] = "one-hot-to-gather"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where w is a finite constant; an index outside of the classes finds the row of zeros, as the dot does."""
        if op.name != "dot" or op.operands[1].type.rank != 2 or op.integers("contract_b") != (0,):
            return None
        one_hot, table = op.operands[0], small_constant(op.operands[1], facts)
        if table is None or table.shape != op.operands[1].type.static_shape or not np.isfinite(table).all():
            return None
        if op.integers("contract_a") != (one_hot.type.rank - 1,):
            return None
        indices = _indices(one_hot, facts)
        if indices is None:
            return None
        extended = np.concatenate([table, np.zeros_like(table[:1])])
        flat = editor.emit("reshape", indices, shape=one_hot.shape[:-1])
        picked = _within(flat, len(table), editor)
        return (editor.emit("gather", editor.constant(payload_of(extended)), picked, axis=0),)


def _indices(one_hot: Value, facts: Facts) -> Value | None:
    """The indices, their last extent 1, when the value is 1 where they equal the place on the last axis."""
    cast = facts.producer(one_hot, "cast")
    test = facts.producer(cast.operands[0], "eq") if cast is not None else None
    if test is None:
        return None
    for places, other in (test.operands, test.operands[::-1]):
        counted = per_channel(places, places.type.rank - 1, facts)
        stretch = facts.producer(other, "broadcast_to")
        if counted is None or stretch is None or counted.size != one_hot.shape[-1]:
            continue
        source = stretch.operands[0]
        fits = (
            source.dtype.is_integer
            and source.type.rank > 0
            and source.shape[:-1] == one_hot.shape[:-1]
            and source.shape[-1] == 1
        )
        if fits and np.array_equal(counted, np.arange(counted.size)):
            return source
    return None


def _within(indices: Value, count: int, editor: Editor) -> Value:
    """The index where it is one of `count` classes, else `count`."""

    def number(value: int) -> Value:
        scalar = editor.constant(Payload.scalar(indices.dtype, value))
        return editor.emit("broadcast_to", scalar, shape=indices.shape)

    low, high = editor.emit("ge", indices, number(0)), editor.emit("lt", indices, number(count))
    return editor.emit("select", editor.emit("and", low, high), indices, number(count))


@dataclass(frozen=True, slots=True)
class _ElementwiseOnTable:
    """relu(gather(table, i) + b)  →  gather(relu(table + b), i)"""

    name: ClassVar[str] = "elementwise-on-table"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where the table is a constant smaller than what is gathered, and b a constant that varies by column."""
        if not is_elementwise(op.name):
            return None
        looked = [_gather_of_rows(operand, facts) for operand in op.operands]
        gathers = [gather for gather in looked if gather is not None]
        if not gathers or len({(gather.operands[1], gather.operands[0].shape) for gather in gathers}) != 1:
            return None
        shape = gathers[0].operands[0].type.static_shape or ()
        arrays = [_on_table(value, gather, shape, facts) for value, gather in zip(op.operands, looked, strict=True)]
        known = [array for array in arrays if array is not None]
        if len(known) != len(arrays) or not _pays(shape, op.result):
            return None
        table = editor.constant(payload_of(_computed(op, known)))
        return (editor.emit("gather", table, gathers[0].operands[1], axis=0),)


def _gather_of_rows(value: Value, facts: Facts) -> Op | None:
    op = facts.producer(value, "gather")
    rows = op is not None and op.integer("axis") == 0 and op.operands[0].type.rank == 2
    return op if op is not None and rows and facts.payload(op.operands[0]) is not None else None


def _on_table(value: Value, gather: Op | None, shape: tuple[int, ...], facts: Facts) -> Array | None:
    """The table itself, or a constant of columns stretched to it."""
    if gather is not None:
        return small_constant(gather.operands[0], facts)
    vector = per_channel(value, value.type.rank - 1, facts)
    return None if vector is None else np.broadcast_to(vector, shape)


def _pays(shape: tuple[int, ...], result: Value) -> bool:
    size, least = int(np.prod(shape, dtype=object)), result.type.elements.bounds()[0] or 0
    return size <= min(least, MAX_TABLE_ELEMENTS)


def _computed(op: Op, arrays: Sequence[Array]) -> Array:
    dtype: DType = op.result.dtype
    result = Value("table", TensorType.of(dtype, list(arrays[0].shape)))
    (array,) = evaluate(replace(op, results=(result,)), {}, arrays)
    return array


@dataclass(frozen=True, slots=True)
class LookUpOneHots:
    """gelu(dot(cast(i == (0, 1, …)), w) + b)  →  gather(gelu(w + b), i)"""

    name: ClassVar[str] = "look-up-one-hots"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Apply the rules of this file until none matches."""
        return apply_rules(graph, (_DotToGather(), _ElementwiseOnTable()), RULES)
