"""Checks of indices go where the indices are known to be right; known to be wrong, they are the model's error."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.errors import ModelError
from cuvil_core.ir import Dim, Graph, Op, Value
from cuvil_core.ops import RULES
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Editor, Facts, PassResult, apply_rules

Interval = tuple[int | None, int | None]
"""Least and greatest element; None where it is not known."""
UNKNOWN: Interval = (None, None)
MAX_DEPTH = 16
"""Ops looked through: what proves an index stands right before it."""


@dataclass(frozen=True, slots=True)
class _DropCheck:
    name: ClassVar[str] = "drop-check"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """The operand where all its elements lie in 0 .. extent - 1."""
        if op.name != "in_bounds":
            return None
        (source,), (extent,) = op.operands, op.dims("extent")
        least, greatest = interval(source, facts)
        if source.type.elements == 0 or _inside(least, greatest, extent):
            return (source,)
        if facts.payload(source) is not None and _outside(least, greatest, extent):
            raise ModelError(f"{op.provenance} has an index outside of {-extent} .. {extent - 1}; correct the model.")
        return None


def _inside(least: int | None, greatest: int | None, extent: Dim) -> bool:
    fewest = extent.bounds()[0]
    return None not in (least, greatest, fewest) and 0 <= (least or 0) <= (greatest or 0) < (fewest or 0)


def _outside(least: int | None, greatest: int | None, extent: Dim) -> bool:
    most = extent.bounds()[1]
    above = None not in (greatest, most) and (greatest or 0) >= (most or 0)
    return above or (least is not None and least < 0)


def interval(value: Value, facts: Facts, depth: int = MAX_DEPTH) -> Interval:
    """Between which numbers all elements of an integer value lie."""
    op = facts.producer(value)
    if op is None or depth == 0:
        return UNKNOWN
    payload = facts.payload(value)
    if payload is not None:
        numbers = payload.values() if payload.dtype.is_integer else ()
        return (int(min(numbers)), int(max(numbers))) if numbers else UNKNOWN
    if op.name in _ORIGINS:
        return _ORIGINS[op.name](op)
    if op.name == "select":
        return _select(op, facts, depth)
    if op.name not in _JOINS:
        return UNKNOWN
    return _JOINS[op.name](*(interval(operand, facts, depth - 1) for operand in op.operands))


def _select(op: Op, facts: Facts, depth: int) -> Interval:
    """Of both sides; of one where the condition asks whether a number that never is negative is below 0."""
    then, other = (interval(operand, facts, depth - 1) for operand in op.operands[1:])
    test = facts.producer(op.operands[0], "lt")
    if test is not None and facts.scalar(test.operands[1]) == 0:
        least, _ = interval(test.operands[0], facts, depth - 1)
        if least is not None and least >= 0:
            return other
    return _union(then, other)


def _union(*parts: Interval) -> Interval:
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    low = None if None in lows else min(one for one in lows if one is not None)
    return low, None if None in highs else max(one for one in highs if one is not None)


def _greater(left: Interval, right: Interval) -> Interval:
    lows = [low for low in (left[0], right[0]) if low is not None]
    return max(lows, default=None), _union(left, right)[1]


def _lesser(left: Interval, right: Interval) -> Interval:
    highs = [high for high in (left[1], right[1]) if high is not None]
    return _union(left, right)[0], min(highs, default=None)


def _position(op: Op) -> Interval:
    most = op.operands[0].shape[op.integer("axis")].bounds()[1]
    return 0, None if most is None else most - 1


def _count(op: Op) -> Interval:
    most = op.dims("shape")[op.integer("axis")].bounds()[1]
    return 0, None if most is None else most - 1


_ORIGINS: dict[str, Callable[[Op], Interval]] = {"arg_reduce": _position, "iota": _count}
_JOINS: dict[str, Callable[..., Interval]] = {
    **dict.fromkeys(("reshape", "transpose", "slice", "broadcast_to", "concat"), _union),
    "max": _greater,
    "min": _lesser,
}


@dataclass(frozen=True, slots=True)
class ProveIndices:
    """gather(x, in_bounds(arg_reduce(y)))  →  gather(x, arg_reduce(y)) where y has no more elements than x has rows"""

    name: ClassVar[str] = "prove-indices"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Drop what is proved; ModelError for constants that are outside."""
        return apply_rules(graph, (_DropCheck(),), RULES)
