"""Algebra over constants: neutral elements, powers, chains of additions and of multiplications."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cuvil_core.ir import Graph, Op, Value
from cuvil_core.ops import RULES, Group, spec_of
from cuvil_core.passes.constants import merged, small_constant, stretched
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import AnyValue, Constant, Editor, Facts, PassResult, Prim, Refused, apply_rules, match


@dataclass(frozen=True, slots=True)
class _Neutral:
    """x + 0, x - 0, x * 1, x / 1, x ** 1  →  x"""

    name: ClassVar[str] = "drop-neutral"
    neutral: ClassVar[dict[str, float]] = {"add": 0, "sub": 0, "mul": 1, "div": 1, "pow": 1}

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """The left operand where the right one is neutral; -0.0 + 0.0 would be 0.0, so only -0.0 is dropped there."""
        wanted = self.neutral.get(op.name)
        if wanted is None or op.operands[0].shape != op.result.shape:
            return None
        number = facts.scalar(op.operands[1])
        if number != wanted or (op.name == "add" and op.result.dtype.is_float and math.copysign(1, number) > 0):
            return None
        return (op.operands[0],)


@dataclass(frozen=True, slots=True)
class _Power:
    """x ** 2  →  x * x;  x ** 0.5  →  sqrt x"""

    name: ClassVar[str] = "expand-power"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """The product or the root; sqrt(-inf) is NaN where the power is inf, which no model relies on."""
        exponent = facts.scalar(op.operands[1]) if op.name == "pow" else None
        x = op.operands[0] if op.operands else None
        if x is None or exponent is None:
            return None
        if exponent == 2:
            return (editor.emit("mul", x, x),)
        return (editor.emit("sqrt", x),) if exponent == 0.5 and x.dtype.is_float else None


@dataclass(frozen=True, slots=True)
class _SubtractionToAddition:
    """x - constant  →  x + (-constant), exact"""

    name: ClassVar[str] = "add-negative"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Only for floats: the least integer has no negative."""
        array = small_constant(op.operands[1], facts) if op.name == "sub" else None
        if array is None or not op.result.dtype.is_float or small_constant(op.operands[0], facts) is not None:
            return None
        return (editor.emit("add", op.operands[0], stretched(editor, np.negative(array), op.operands[1].shape)),)


@dataclass(frozen=True, slots=True)
class _DivisionToProduct:
    """x / constant  →  x * (1 / constant)"""

    name: ClassVar[str] = "multiply-reciprocal"
    approximate: bool
    """Also where the reciprocal is rounded: the result is then off by at most one unit in the last place."""
    rounded: frozenset[Value] = frozenset()
    """Results that are rounded to whole numbers: there one unit decides a tie, as between two levels of a quantizer."""

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | Refused | None:
        """Exact where every divisor is a power of two in the normal range."""
        array = small_constant(op.operands[1], facts) if op.name == "div" else None
        if array is None or not op.result.dtype.is_float or small_constant(op.operands[0], facts) is not None:
            return None
        with np.errstate(all="ignore"):
            inverse = np.asarray(array.dtype.type(1) / array)
        normal = np.isfinite(inverse) & (np.abs(inverse) >= np.finfo(np.float32).tiny) & np.isfinite(array)
        approximate = self.approximate and op.result not in self.rounded
        if not normal.all() or not (approximate or bool((np.frexp(array)[0] == np.copysign(0.5, array)).all())):
            return Refused("a division stays, since the reciprocal of its divisor is not exact")
        return (editor.emit("mul", op.operands[0], stretched(editor, inverse, op.operands[1].shape)),)


@dataclass(frozen=True, slots=True)
class _MergeChain:
    """(x + a) + b  →  x + (a + b);  (x * a) * b  →  x * (a * b)"""

    name: ClassVar[str] = "merge-chain"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """For float constants; the inner result must have no other use, else it would be computed anyway."""
        if op.name not in ("add", "mul") or not op.result.dtype.is_float:
            return None
        found = match(
            Prim(op.name, Prim(op.name, AnyValue("x"), Constant("a"), bind="inner"), Constant("b")), op, facts
        )
        if found is None or facts.uses(found["inner"]) > 1 or small_constant(found["x"], facts) is not None:
            return None
        a, b = small_constant(found["a"], facts), small_constant(found["b"], facts)
        if a is None or b is None:
            return None
        joined = merged(op.name, a, b)
        return (
            None if joined is None else (editor.emit(op.name, found["x"], stretched(editor, joined, op.result.shape)),)
        )


def _rounded(graph: Graph) -> frozenset[Value]:
    """What is rounded to whole numbers at once, or behind casts, limits and movement."""
    found: set[Value] = set()
    for op in reversed(graph.ops):
        whole = op.name in ("round", "floor", "ceil") or (op.name == "cast" and not op.result.dtype.is_float)
        passes = op.name in ("cast", "min", "max") or spec_of(op.name).group is Group.MOVEMENT
        if whole or (passes and op.result in found):
            found.update(operand for operand in op.operands if operand.dtype.is_float)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class SimplifyAlgebra:
    """pow(x, 2) / 8  →  (x * x) * 0.125"""

    name: ClassVar[str] = "simplify-algebra"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    approximate: bool = False
    """Divisions by any constant become products."""

    def run(self, graph: Graph) -> PassResult:
        """Apply the rules of this file until none matches."""
        division = _DivisionToProduct(self.approximate, _rounded(graph))
        return apply_rules(graph, (_Neutral(), _Power(), _SubtractionToAddition(), division, _MergeChain()), RULES)
