"""Einsum: repeated labels to diagonals, then operand by operand: sums, products, dots; at last the order of the output.

A label is a letter, or `.0`, `.1`, … for an axis of the ellipsis, counted from its end.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of
from cuvil_core.importer.onnx.movement import pad
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim

_TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A tensor with one distinct label an axis."""

    tensor: Tensor
    labels: tuple[str, ...]


def _einsum(context: Context, node: Node, operands: Operands) -> Tensor:
    tensors = all_of(node, operands)
    terms, output = _parsed(node, tensors)
    parts = [_distinct(context, tensor, labels) for tensor, labels in zip(tensors, terms, strict=True)]
    extents = _extents(context, parts)
    for label in output:
        if label not in extents:
            raise node.broken(f"the output names the label {label!r}, which no input has")
    parts = [_without_units(context, part, extents) for part in parts]
    result = _summed(context, parts[0], _needed(parts[1:], output))
    for at, part in enumerate(parts[1:], 2):
        result = _product(context, result, part, _needed(parts[at:], output))
    return _ordered(context, result, output, extents)


def _parsed(node: Node, tensors: Sequence[Tensor]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Labels of each operand, and of the output: when not given, the ellipsis and then what occurs once, by letter."""
    equation = node.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(tensors):
        raise node.broken(f"the equation has {len(texts)} terms for {len(tensors)} inputs")
    terms = [_labels(node, text, tensor.rank) for text, tensor in zip(texts, tensors, strict=True)]
    widest = max(sum(label.startswith(".") for label in term) for term in terms)
    if arrow:
        return terms, _term_labels(node, right, widest, output=True)
    counts = Counter(label for term in terms for label in term if not label.startswith("."))
    ones = sorted(label for label, count in counts.items() if count == 1)
    return terms, (*_dots(widest), *ones)


def _labels(node: Node, text: str, rank: int) -> tuple[str, ...]:
    letters = len(text.replace("...", ""))
    rest = rank - letters
    if rest < 0 or (rest > 0 and "..." not in text):
        raise node.broken(f"the term {text!r} does not fit rank {rank}")
    return _term_labels(node, text, rest, output=False)


def _term_labels(node: Node, text: str, dots: int, output: bool) -> tuple[str, ...]:
    match = _TERM.fullmatch(text)
    if match is None:
        raise node.broken(f"the term {text!r} is not made of letters and one ellipsis")
    middle = _dots(dots) if match[2] else ()
    labels = (*match[1], *middle, *match[3])
    if output and len(set(labels)) != len(labels):
        raise node.broken("the output names a label twice")
    return labels


def _dots(count: int) -> tuple[str, ...]:
    return tuple(f".{at}" for at in reversed(range(count)))


def _distinct(context: Context, tensor: Tensor, labels: tuple[str, ...]) -> _Labelled:
    """Of two axes with one label the diagonal."""
    for label in labels:
        if labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = [at for at in range(len(labels)) if at not in (first, second)]
            moved = context.transpose(tensor, [*rest, first, second])
            return _distinct(context, _diagonal(context, moved), (*(labels[at] for at in rest), label))
    return _Labelled(tensor, labels)


def _diagonal(context: Context, x: Tensor) -> Tensor:
    """Of the last two axes: in rows that are one longer the diagonal is the first column."""
    lead, size = x.shape[:-2], x.shape[-1]
    context.guard(x.shape[-2], size)
    flat = context.reshape(x, [*lead, size * size])
    low, high = [Dim.of(0)] * flat.rank, [Dim.of(0)] * flat.rank
    high[-1] = size
    wide = context.reshape(pad(context, flat, low, high, 0), [*lead, size, size + 1])
    return context.reshape(context.slice(wide, wide.rank - 1, 0, 1), [*lead, size])


def _extents(context: Context, parts: Sequence[_Labelled]) -> dict[str, Dim]:
    """Label → extent; one of 1 stretches."""
    found: dict[str, Dim] = {}
    for part in parts:
        for label, extent in zip(part.labels, part.tensor.shape, strict=True):
            known = found.get(label)
            found[label] = extent if known is None else context.common([(known,), (extent,)])[0]
    return found


def _without_units(context: Context, part: _Labelled, extents: dict[str, Dim]) -> _Labelled:
    """Axes of extent 1 that others stretch go."""
    kept = [at for at, label in enumerate(part.labels) if part.tensor.shape[at] != 1 or extents[label] == 1]
    tensor = context.reshape(part.tensor, [part.tensor.shape[at] for at in kept])
    return _Labelled(tensor, tuple(part.labels[at] for at in kept))


def _needed(later: Sequence[_Labelled], output: Sequence[str]) -> set[str]:
    return {*output, *(label for part in later for label in part.labels)}


def _summed(context: Context, part: _Labelled, needed: set[str]) -> _Labelled:
    """Over the labels that nobody needs."""
    gone = [at for at, label in enumerate(part.labels) if label not in needed]
    if not gone:
        return part
    tensor = context.reduce("sum", part.tensor, gone, keepdims=False)
    return _Labelled(tensor, tuple(label for label in part.labels if label in needed))


def _product(context: Context, a: _Labelled, b: _Labelled, needed: set[str]) -> _Labelled:
    """A dot where common labels vanish, else an elementwise product."""
    a, b = _summed(context, a, needed | set(b.labels)), _summed(context, b, needed | set(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    gone = [label for label in shared if label not in needed]
    batch = [label for label in shared if label in needed]
    free_a = [label for label in a.labels if label not in shared]
    free_b = [label for label in b.labels if label not in shared]
    labels = (*batch, *free_a, *free_b)
    if not gone:
        left, right = _laid_out(context, a, labels), _laid_out(context, b, labels)
        return _Labelled(context.binary("mul", left, right), labels)
    for label in shared:
        context.guard(a.tensor.shape[a.labels.index(label)], b.tensor.shape[b.labels.index(label)])
    result = context.emit(
        "dot",
        a.tensor,
        b.tensor,
        batch_a=tuple(map(a.labels.index, batch)),
        batch_b=tuple(map(b.labels.index, batch)),
        contract_a=tuple(map(a.labels.index, gone)),
        contract_b=tuple(map(b.labels.index, gone)),
    )
    return _Labelled(result, labels)


def _laid_out(context: Context, part: _Labelled, labels: Sequence[str]) -> Tensor:
    """The axes in the order of the labels, with 1 for those that it lacks."""
    order = [part.labels.index(label) for label in labels if label in part.labels]
    moved = context.transpose(part.tensor, order)
    own = iter(moved.shape)
    return context.reshape(moved, [next(own) if label in part.labels else Dim.of(1) for label in labels])


def _ordered(context: Context, part: _Labelled, output: tuple[str, ...], extents: dict[str, Dim]) -> Tensor:
    part = _summed(context, part, set(output))
    return context.stretch(_laid_out(context, part, output), tuple(extents[label] for label in output))


ENTRIES: tuple[Entry, ...] = (Entry("Einsum", _einsum, since=12),)
