"""The translation table: op type and opset → translation."""

from cuvil_core.importer.onnx import (
    activations,
    bits,
    casting,
    constants,
    contractions,
    control,
    einsum,
    elementwise,
    features,
    grids,
    lookups,
    matrices,
    movement,
    ngrams,
    normalization,
    optimizers,
    padding,
    pooling,
    quantization,
    recurrent,
    reductions,
    regions,
    resize,
    scatters,
    selection,
    sequences,
    signal,
    slicing,
    trees,
)
from cuvil_core.importer.onnx.entry import Entry
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.old_opsets import FIRST_TRANSLATED

FAMILIES = (
    activations,
    bits,
    casting,
    constants,
    contractions,
    control,
    einsum,
    elementwise,
    features,
    grids,
    lookups,
    matrices,
    movement,
    ngrams,
    normalization,
    optimizers,
    padding,
    pooling,
    quantization,
    recurrent,
    reductions,
    regions,
    resize,
    selection,
    scatters,
    sequences,
    signal,
    slicing,
    trees,
)


def _by_op_type() -> dict[str, tuple[Entry, ...]]:
    found: dict[str, tuple[Entry, ...]] = {}
    for family in FAMILIES:
        for entry in family.ENTRIES:
            found[entry.op_type] = (*found.get(entry.op_type, ()), entry)
    return found


TABLE: dict[str, tuple[Entry, ...]] = _by_op_type()


def entry_for(node: Node) -> Entry | None:
    """The entry that covers the node's op and opset, an old one being upgraded; None when there is none."""
    opset = node.opset if node.domain else max(node.opset, FIRST_TRANSLATED)
    entries = (entry for entry in TABLE.get(node.op_type, ()) if entry.domain == node.domain)
    return next((entry for entry in entries if entry.covers(opset)), None)
