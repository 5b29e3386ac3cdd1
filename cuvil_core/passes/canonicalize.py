"""Ops that do nothing, and operands in the order that later passes expect."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Graph, Op, Value
from cuvil_core.ops import RULES
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Editor, Facts, PassResult, apply_rules

_COMMUTATIVE = frozenset({"add", "mul", "max", "min"})


@dataclass(frozen=True, slots=True)
class DropIdentity:
    """reshape x to its own shape  →  x; likewise broadcast_to, transpose, slice, pad, cast, concat, reduce"""

    name: ClassVar[str] = "drop-identity"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """The operand where the op changes nothing."""
        test = _IDENTITY.get(op.name)
        return (op.operands[0],) if test is not None and test(op) else None


def _same_shape(op: Op) -> bool:
    return op.operands[0].shape == op.result.shape


def _whole_slice(op: Op) -> bool:
    return _same_shape(op) and all(s == 0 for s in op.dims("starts")) and set(op.integers("steps")) <= {1}


_IDENTITY: dict[str, Callable[[Op], bool]] = {
    "broadcast_to": _same_shape,
    "reshape": _same_shape,
    "transpose": lambda op: op.integers("perm") == tuple(range(op.result.type.rank)),
    "slice": _whole_slice,
    "pad": _same_shape,
    "cast": lambda op: op.operands[0].dtype is op.result.dtype,
    "concat": lambda op: len(op.operands) == 1,
    "reduce": lambda op: not op.integers("axes"),
}


@dataclass(frozen=True, slots=True)
class _ConstantRight:
    """add(constant, x)  →  add(x, constant); likewise mul, max, min"""

    name: ClassVar[str] = "constant-right"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """The operands exchanged where only the left one is constant."""
        if op.name not in _COMMUTATIVE:
            return None
        left, right = op.operands
        if not _constant(left, facts) or _constant(right, facts):
            return None
        return (editor.emit(op.name, right, left),)


def _constant(value: Value, facts: Facts) -> bool:
    source = facts.producer(value, "broadcast_to")
    return facts.payload(source.operands[0] if source is not None else value) is not None


@dataclass(frozen=True, slots=True)
class Canonicalize:
    """add(constant, reshape x to its own shape)  →  add(x, constant)"""

    name: ClassVar[str] = "canonicalize"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Drop identities and put constants to the right of ops that commute."""
        return apply_rules(graph, (DropIdentity(), _ConstantRight()), RULES)
