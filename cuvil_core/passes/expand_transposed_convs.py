"""Transposed convolution whose windows do not overlap: a 1x1 convolution and a rearrangement, without zeros."""

from dataclasses import dataclass
from typing import ClassVar

from cuvil_core.ir import Dim, Graph, Op, Value, product
from cuvil_core.ops import RULES, is_elementwise
from cuvil_core.passes.constants import along, per_channel, stretched
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import Editor, Facts, PassResult, Refused, apply_rules


@dataclass(frozen=True, slots=True)
class _Expand:
    """conv(x, w; base_dilations = window = s)  →  reshape(transpose(reshape(conv(x, w as 1x1))))"""

    name: ClassVar[str] = "expand-transposed-conv"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | Refused | None:
        """Where stride and window agree; the base-dilation path stays for all others."""
        if op.name != "conv" or set(op.integers("base_dilations")) == {1}:
            return None
        w = op.operands[1]
        steps = op.integers("base_dilations")
        fits = w.type.static_shape is not None and tuple(w.shape[2:]) == tuple(map(Dim.of, steps))
        simple = op.integer("groups") == 1 and set((*op.integers("strides"), *op.integers("dilations"))) == {1}
        full = op.integers("pads") == tuple(step - 1 for step in steps) * 2
        if not (fits and simple and full):
            return Refused(
                "a transposed convolution stays as it is, since window and stride differ, or pads, or groups"
            )
        return (_rearranged(op, _pointwise(op, editor), editor),)


def _pointwise(op: Op, editor: Editor) -> Value:
    """The 1x1 convolution with O * s * … channels: the window's places, unflipped, become channels."""
    x, w = op.operands
    spatial, extents = w.type.rank - 2, tuple(w.shape[2:])
    last = tuple(extent - 1 for extent in extents)
    zero, all_axes = (Dim.of(0),) * 2, (*w.shape[:2], *extents)
    plain = editor.emit("slice", w, starts=(*zero, *last), sizes=all_axes, steps=(1, 1, *(-1,) * spatial))
    places = editor.emit("transpose", plain, perm=(0, *range(2, 2 + spatial), 1))
    ones = (Dim.of(1),) * spatial
    weights = editor.emit("reshape", places, shape=(w.shape[0] * product(extents), w.shape[1], *ones))
    one = (1,) * spatial
    return editor.emit(
        "conv", x, weights, strides=one, pads=(0,) * 2 * spatial, dilations=one, base_dilations=one, groups=1
    )


def _rearranged(op: Op, y: Value, editor: Editor) -> Value:
    """N, (O, s…), H…  →  N, O, (H, s)…"""
    steps = [Dim.of(step) for step in op.integers("base_dilations")]
    spatial, outputs = len(steps), op.result.shape[1]
    apart = editor.emit("reshape", y, shape=(y.shape[0], outputs, *steps, *y.shape[2:]))
    pairs = [axis for at in range(spatial) for axis in (2 + spatial + at, 2 + at)]
    mixed = editor.emit("transpose", apart, perm=(0, 1, *pairs))
    return editor.emit("reshape", mixed, shape=op.result.shape)


@dataclass(frozen=True, slots=True)
class _ElementwiseBefore:
    """relu(reshape(transpose(reshape(conv))) + b)  →  reshape(transpose(reshape(relu(conv + b repeated))))"""

    name: ClassVar[str] = "elementwise-before-rearrangement"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        """Where the other operands are constants per channel, so that the convolution can take it as its epilogue."""
        if not is_elementwise(op.name) or not op.operands:
            return None
        steps = _steps(op.operands[0], facts)
        if steps is None:
            return None
        back, mixed, apart = steps
        y, repeat = apart.operands[0], apart.result.type.shape[2 : 2 + y_spatial(apart)]
        count = product(repeat).constant or 1
        vectors = [per_channel(operand, 1, facts) for operand in op.operands[1:]]
        operands = [y]
        for vector in vectors:
            if vector is None:
                return None
            wide = vector if vector.size == 1 else vector.repeat(count)
            operands.append(stretched(editor, along(wide, 1, y.type.rank), y.shape))
        (small,) = editor.emit_all(op.name, operands, op.attributes)
        for step in (apart, mixed, back):
            (small,) = editor.emit_all(step.name, (small,), step.attributes)
        return (small,)


def y_spatial(apart: Op) -> int:
    """The number of spatial axes: the first reshape has N, O, one step and one extent each."""
    return (apart.result.type.rank - 2) // 2


def _steps(value: Value, facts: Facts) -> tuple[Op, Op, Op] | None:
    """(last reshape, transpose, first reshape) of a rearrangement of a convolution, each with one use."""
    back = facts.producer(value, "reshape")
    mixed = facts.producer(back.operands[0], "transpose") if back is not None else None
    apart = facts.producer(mixed.operands[0], "reshape") if mixed is not None else None
    if back is None or mixed is None or apart is None:
        return None
    root = apart.operands[0]
    single = all(facts.uses(one) == 1 for one in (back.result, mixed.result, apart.result))
    if not single or not _is_rearrangement(apart, mixed) or not _from_conv(root, facts):
        return None
    return back, mixed, apart


def _is_rearrangement(apart: Op, mixed: Op) -> bool:
    spatial, source = y_spatial(apart), apart.operands[0]
    if source.type.rank != 2 + spatial or apart.result.type.rank != 2 + 2 * spatial or spatial < 1:
        return False
    pairs = tuple(axis for at in range(spatial) for axis in (2 + spatial + at, 2 + at))
    splits = apart.result.shape[2 + spatial :] == source.shape[2:] and apart.result.shape[0] == source.shape[0]
    return splits and mixed.integers("perm") == (0, 1, *pairs)


def _from_conv(value: Value, facts: Facts) -> bool:
    """True for a convolution followed by any chain of elementwise ops on it."""
    op = facts.producer(value)
    while op is not None and is_elementwise(op.name) and facts.uses(op.result) == 1:
        op = facts.producer(op.operands[0])
    return op is not None and op.name == "conv"


@dataclass(frozen=True, slots=True)
class ExpandTransposedConvs:
    """relu(conv(x, w; base_dilations = 2, window = 2) + b)  →  rearrange(relu(conv(x, w as 1x1) + b repeated))"""

    name: ClassVar[str] = "expand-transposed-convs"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """Apply the rules of this file until none matches."""
        return apply_rules(graph, (_Expand(), _ElementwiseBefore()), RULES)
