"""Shapes of expressions, matched from their last op backwards.

match(Prim("mul", Prim("add", AnyValue("x"), Constant("b")), Constant("s")), op, facts)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cuvil_core.ir import Op, Value
from cuvil_core.rewriting.facts import Facts

COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})
"""Ops whose operands a pattern may match in either order."""


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Any value, bound under the name."""

    bind: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant, or one that broadcast_to stretches; the value is bound under the name."""

    bind: str


@dataclass(frozen=True, slots=True, init=False)
class Prim:
    """An op by name over operand patterns; its result is bound when a name is given."""

    name: str
    operands: tuple["Pattern", ...]
    bind: str

    def __init__(self, name: str, *operands: "Pattern", bind: str = "") -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "bind", bind)


Pattern = AnyValue | Constant | Prim


@dataclass(frozen=True, slots=True)
class Match:
    """What the names of a pattern stand for."""

    op: Op
    """The op that the whole pattern matched."""
    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values[name]


def match(pattern: Prim, op: Op, facts: Facts) -> Match | None:
    """The bindings when the op and what it reads have the shape of the pattern, else None."""
    bound = _match_op(pattern, op, facts, {})
    return None if bound is None else Match(op, bound)


def _match_op(pattern: Prim, op: Op, facts: Facts, bound: dict[str, Value]) -> dict[str, Value] | None:
    if op.name != pattern.name or (pattern.operands and len(op.operands) != len(pattern.operands)):
        return None
    orders = [op.operands]
    if op.name in COMMUTATIVE and len(op.operands) == 2:
        orders.append((op.operands[1], op.operands[0]))
    for operands in orders if pattern.operands else orders[:1]:
        found: dict[str, Value] | None = {**bound, **({pattern.bind: op.result} if pattern.bind else {})}
        for part, value in zip(pattern.operands, operands, strict=False):
            found = None if found is None else _match_value(part, value, facts, found)
        if found is not None:
            return found
    return None


def _match_value(pattern: Pattern, value: Value, facts: Facts, bound: dict[str, Value]) -> dict[str, Value] | None:
    if isinstance(pattern, Prim):
        op = facts.producer(value)
        return None if op is None else _match_op(pattern, op, facts, bound)
    if isinstance(pattern, Constant) and not _is_constant(value, facts):
        return None
    if bound.get(pattern.bind, value) is not value:
        return None
    return {**bound, pattern.bind: value}


def _is_constant(value: Value, facts: Facts) -> bool:
    op = facts.producer(value, "broadcast_to")
    return facts.payload(op.operands[0] if op is not None else value) is not None
