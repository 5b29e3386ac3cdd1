"""The translation table: op type and opset → translation."""

from cuvil_core.importer.onnx import (
    activations,
    constants,
    contractions,
    einsum,
    elementwise,
    grids,
    lookups,
    matrices,
    movement,
    ngrams,
    normalization,
    padding,
    pooling,
    reductions,
    regions,
    resize,
    scatters,
    selection,
    signal,
    slicing,
)
from cuvil_core.importer.onnx.entry import Entry
from cuvil_core.importer.onnx.node import Node, unknown_op

FAMILIES = (
    activations,
    constants,
    contractions,
    einsum,
    elementwise,
    grids,
    lookups,
    matrices,
    movement,
    ngrams,
    normalization,
    padding,
    pooling,
    reductions,
    regions,
    resize,
    scatters,
    selection,
    signal,
    slicing,
)


def _by_op_type() -> dict[str, tuple[Entry, ...]]:
    found: dict[str, tuple[Entry, ...]] = {}
    for family in FAMILIES:
        for entry in family.ENTRIES:
            found[entry.op_type] = (*found.get(entry.op_type, ()), entry)
    return found


TABLE: dict[str, tuple[Entry, ...]] = _by_op_type()


def entry_for(node: Node) -> Entry:
    """The entry that covers the node's op and opset; UnsupportedOpError when there is none."""
    for entry in TABLE.get(node.op_type, ()):
        if entry.covers(node.opset):
            return entry
    raise unknown_op(node)
