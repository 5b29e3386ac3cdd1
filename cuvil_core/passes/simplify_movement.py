"""Movement: fewer steps, later copies."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Dim, Graph, Op, Value
from cuvil_core.ops import RULES, Group, spec_of
from cuvil_core.passes.canonicalize import DropIdentity
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Editor, Facts, PassResult, apply_rules


@dataclass(frozen=True, slots=True)
class _MergeSame:
    """reshape(reshape(x))  →  reshape(x); likewise broadcast_to, transpose, slice and concat"""

    name: ClassVar[str] = "merge-movement"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """One op in place of two of the same kind."""
        inner = facts.producer(op.operands[0], op.name) if op.operands else None
        if inner is None:
            return None
        source = inner.operands[0]
        if op.name == "reshape":
            return (editor.emit("reshape", source, shape=op.dims("shape")),)
        if op.name == "broadcast_to":
            return (editor.emit("broadcast_to", source, shape=op.dims("shape")),)
        if op.name == "transpose":
            perm = inner.integers("perm")
            return (editor.emit("transpose", source, perm=tuple(perm[axis] for axis in op.integers("perm"))),)
        return _merged_slice(op, inner, source, editor) if op.name == "slice" else None


def _merged_slice(op: Op, inner: Op, source: Value, editor: Editor) -> tuple[Value, ...]:
    steps = tuple(a * b for a, b in zip(inner.integers("steps"), op.integers("steps"), strict=True))
    starts = tuple(
        first + start * step
        for first, start, step in zip(inner.dims("starts"), op.dims("starts"), inner.integers("steps"), strict=True)
    )
    return (editor.emit("slice", source, starts=starts, sizes=op.dims("sizes"), steps=steps),)


@dataclass(frozen=True, slots=True)
class _TransposeToReshape:
    """transpose that moves only axes of extent 1  →  reshape, which copies nothing"""

    name: ClassVar[str] = "transpose-to-reshape"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where the axes of other extents keep their order."""
        if op.name != "transpose":
            return None
        moved = [axis for axis in op.integers("perm") if op.operands[0].shape[axis] != 1]
        return (editor.emit("reshape", op.operands[0], shape=op.result.shape),) if moved == sorted(moved) else None


@dataclass(frozen=True, slots=True)
class _BroadcastLater:
    """exp(broadcast_to(x))  →  broadcast_to(exp(x)); with a second operand that is one number too"""

    name: ClassVar[str] = "broadcast-later"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Compute on the small tensor and stretch the result."""
        if spec_of(op.name).group not in (Group.UNARY, Group.BINARY, Group.TERNARY):
            return None
        wide = [facts.producer(operand, "broadcast_to") for operand in op.operands]
        sources = [stretch.operands[0] for stretch in wide if stretch is not None]
        if not wide or len(sources) != len(wide):
            return None
        shape = _common([source.shape for source in sources if source.type.elements != 1])
        if shape is None or shape == op.result.shape:
            return None
        operands = [_stretch(editor, source, shape) for source in sources]
        (small,) = editor.emit_all(op.name, operands, op.attributes)
        return (editor.emit("broadcast_to", small, shape=op.result.shape),)


def _common(shapes: list[tuple[Dim, ...]]) -> tuple[Dim, ...] | None:
    """The one shape of all operands that are more than a number, () when all are numbers."""
    if not shapes:
        return ()
    return shapes[0] if all(shape == shapes[0] for shape in shapes) else None


def _stretch(editor: Editor, source: Value, shape: tuple[Dim, ...]) -> Value:
    if source.shape == shape:
        return source
    if source.type.rank > len(shape):
        source = editor.emit("reshape", source, shape=())
    return editor.emit("broadcast_to", source, shape=shape)


@dataclass(frozen=True, slots=True)
class _FlattenConcat:
    """concat(concat(a, b), c)  →  concat(a, b, c) along one axis"""

    name: ClassVar[str] = "flatten-concat"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where the inner one has no other use."""
        if op.name != "concat":
            return None
        parts: list[Value] = []
        for operand in op.operands:
            inner = facts.producer(operand, "concat")
            joins = inner is not None and inner.integer("axis") == op.integer("axis") and facts.uses(operand) == 1
            parts.extend(inner.operands if inner is not None and joins else (operand,))
        return editor.emit_all("concat", parts, op.attributes) if len(parts) > len(op.operands) else None


@dataclass(frozen=True, slots=True)
class SimplifyMovement:
    """transpose(transpose(x))  →  transpose(x);  exp(broadcast_to(x))  →  broadcast_to(exp(x))"""

    name: ClassVar[str] = "simplify-movement"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Apply the rules of this file until none matches."""
        table = (DropIdentity(), _MergeSame(), _TransposeToReshape(), _BroadcastLater(), _FlattenConcat())
        return apply_rules(graph, table, RULES)
