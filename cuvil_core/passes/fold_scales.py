"""Batch normalization and other scales per output channel vanish into weights."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Graph, Op, Value
from cuvil_core.ops import RULES
from cuvil_core.passes.constants import Array, along, merged, per_channel, small_constant, stretched
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import AnyValue, Constant, Editor, Facts, PassResult, Prim, Refused, apply_rules, match


@dataclass(frozen=True, slots=True)
class _ScaleIntoWeights:
    """mul(conv(x, w), s)  →  conv(x, w * s);  likewise dot with a constant on the right"""

    name: ClassVar[str] = "scale-into-weights"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | Refused | None:
        """Where s is constant and varies along the output channels alone."""
        root = facts.producer(op.operands[0]) if op.name == "mul" else None
        if root is None or root.name not in ("conv", "dot"):
            return None
        weights = small_constant(root.operands[1], facts)
        scale = small_constant(op.operands[1], facts)
        if scale is None or weights is None:
            return None
        if facts.uses(root.result) > 1:
            return Refused(f"a scale stays, since {root.provenance} has another use")
        factor = _factor(root, op.operands[1], facts)
        if factor is None:
            return Refused("a scale stays, since it varies along other axes than the output channels")
        scaled = merged("mul", weights, factor)
        if scaled is None:
            return Refused("a scale stays, since weights times it overflow or vanish")
        editor.provenance = root.provenance
        w = stretched(editor, scaled, root.operands[1].shape)
        return editor.emit_all(root.name, (root.operands[0], w), root.attributes)


def _factor(root: Op, scale: Value, facts: Facts) -> Array | None:
    """The scale as an array that multiplies the weights."""
    rank = root.result.type.rank
    if root.name == "conv":
        vector = per_channel(scale, 1, facts)
        return None if vector is None else along(vector, 0, root.operands[1].type.rank)
    weights = root.operands[1].type
    free = [
        axis for axis in range(weights.rank) if axis not in (*root.integers("contract_b"), *root.integers("batch_b"))
    ]
    vector = per_channel(scale, rank - 1, facts) if len(free) == 1 else None
    return None if vector is None else along(vector, free[0], weights.rank)


@dataclass(frozen=True, slots=True)
class _ScalePastShift:
    """mul(add(conv(x, w), b), s)  →  add(mul(conv(x, w), s), b * s)"""

    name: ClassVar[str] = "scale-past-shift"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where b and s are constant and neither sum nor convolution has another use."""
        found = match(Prim("mul", Prim("add", AnyValue("x"), Constant("b"), bind="sum"), Constant("s")), op, facts)
        if found is None or facts.uses(found["sum"]) > 1 or facts.uses(found["x"]) > 1:
            return None
        root = facts.producer(found["x"])
        shift, scale = small_constant(found["b"], facts), small_constant(found["s"], facts)
        if root is None or root.name not in ("conv", "dot") or shift is None or scale is None:
            return None
        if small_constant(root.operands[1], facts) is None or _factor(root, found["s"], facts) is None:
            return None
        moved = merged("mul", shift, scale)
        if moved is None:
            return None
        product = editor.emit("mul", found["x"], found["s"])
        facts.use_counts[found["x"]] = 1
        return (editor.emit("add", product, stretched(editor, moved, op.result.shape)),)


@dataclass(frozen=True, slots=True)
class _MergeShifts:
    """add(add(conv(x, w), a), b)  →  add(conv(x, w), a + b)"""

    name: ClassVar[str] = "merge-shifts"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where a and b are constant and the inner sum has no other use."""
        found = match(Prim("add", Prim("add", AnyValue("x"), Constant("a"), bind="sum"), Constant("b")), op, facts)
        if found is None or facts.uses(found["sum"]) > 1 or small_constant(found["x"], facts) is not None:
            return None
        a, b = small_constant(found["a"], facts), small_constant(found["b"], facts)
        if a is None or b is None or not op.result.dtype.is_float:
            return None
        joined = merged("add", a, b)
        return None if joined is None else (editor.emit("add", found["x"], stretched(editor, joined, op.result.shape)),)


@dataclass(frozen=True, slots=True)
class FoldScales:
    """(conv(x, w) + b) * s + t  →  conv(x, w * s) + (b * s + t)"""

    name: ClassVar[str] = "fold-scales"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Move constant scales into weights and join constant shifts; rounding changes by a few last places."""
        return apply_rules(graph, (_ScaleIntoWeights(), _ScalePastShift(), _MergeShifts()), RULES)
