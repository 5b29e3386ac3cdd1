"""Ops over constants are computed once, here."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cuvil_core.ir import Dim, Graph, Op, Value
from cuvil_core.ops import RULES, Group, spec_of
from cuvil_core.passes.properties import Property
from cuvil_core.reference import array_of, evaluate, payload_of
from cuvil_core.rewriting import Editor, Facts, PassResult, Refused, apply_rules

_KEPT = frozenset({"constant", "broadcast_to", "in_bounds", "region", "bind", "check", "if", "loop"})
"""broadcast_to stays, since consumers read the small operand; folding it would fill the artifact with copies. Control
flow stays, since it may run for long."""
FREE_BYTES = 1 << 12
"""A result of at most so many bytes is always worth folding."""
GROWTH = 4
"""A larger one only when it is at most so many times its operands, and then at most MAX_GROWN."""
MAX_GROWN = 1 << 26
MAX_WORK = 1 << 30
"""Elements touched, products for contractions: beyond it folding would hold up the compiler."""


@dataclass(frozen=True, slots=True)
class _Fold:
    name: ClassVar[str] = "fold-constants"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | Refused | None:
        """The constant in place of an op whose operands are constants, stretched or not."""
        shape = op.result.type.static_shape if len(op.results) == 1 else None
        if op.name in _KEPT or shape is None:
            return None
        sources = [_source(operand, facts) for operand in op.operands]
        operands = [source for source in sources if source is not None]
        if len(operands) != len(sources) or any(dim.symbols for dim in _attribute_dims(op)):
            return None
        size = op.result.dtype.itemsize * int(np.prod(shape, dtype=object))
        held = sum(source.type.dtype.itemsize * (source.type.elements.constant or 0) for source in operands)
        if size > max(FREE_BYTES, held) and (size > GROWTH * held or size > MAX_GROWN):
            return Refused(f"{op.name} of constants stays, since its result of {size} bytes is too large to keep")
        if _work(op) > MAX_WORK:
            return Refused(f"{op.name} of constants stays, since computing it here would take too long")
        return (_computed(op, operands, facts, editor),)


def _work(op: Op) -> int:
    """Elements read and written; for contractions one product each: result times the elements of w a result."""
    read = sum(operand.type.elements.constant or 0 for operand in op.operands)
    written = op.result.type.elements.constant or 0
    if spec_of(op.name).group is not Group.CONTRACTION:
        return read + written
    return read + written * (op.operands[1].type.elements.constant or 0)


def _source(value: Value, facts: Facts) -> Value | None:
    """The constant behind the value; None where there is none or its stretched shape is symbolic."""
    op = facts.producer(value, "broadcast_to")
    source = value if op is None else op.operands[0]
    known = facts.payload(source) is not None and value.type.static_shape is not None
    return source if known else None


def _computed(op: Op, sources: list[Value], facts: Facts, editor: Editor) -> Value:
    arrays = []
    for operand, source in zip(op.operands, sources, strict=True):
        payload = facts.payload(source)
        assert payload is not None and operand.type.static_shape is not None
        arrays.append(np.broadcast_to(array_of(payload), operand.type.static_shape))
    (result,) = evaluate(op, {}, arrays)
    return editor.constant(payload_of(np.ascontiguousarray(result).reshape(op.result.type.static_shape or ())))


def _attribute_dims(op: Op) -> list[Dim]:
    tuples = [value for value in op.attributes.values() if isinstance(value, tuple)]
    return [item for value in tuples for item in value if isinstance(item, Dim)]


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """sqrt(add(constant, constant))  →  constant"""

    name: ClassVar[str] = "fold-constants"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Compute by the reference interpreter whatever depends on constants alone, within bounds of size."""
        return apply_rules(graph, (_Fold(),), RULES)
