"""What becomes of element types that kernels do not compute in: narrow ones and bfloat16.

A narrow tensor is bytes with a name (`Tensor.element`). Translations that read the name say so in their entry. Those of
MOVES never look at elements: they get the bytes, and ONNX's schema says which results have the operand's type. All
others would compute with bit patterns, so they are refused here, by name.
bfloat16 is a dtype of the graph that kernels move, choose and cast. Every other node is computed in float32, and its
results are rounded: once a node, as ONNX has it, not once a primitive.
"""

from dataclasses import replace

import numpy as np
import onnx

from cuvil_core.importer.onnx.casting import widen
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import MAX_CONTENT, Tensor
from cuvil_core.ir import DType, Element, Payload

MOVES = frozenset((
    "Concat", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad", "Reshape",
    "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    "TensorScatter", "Where", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Compress",
))  # fmt: skip
"""Ops whose results hold operands' elements as they are; scatters only without a reduction."""
ASKS = frozenset(("IsInf", "IsNaN"))
"""Ops that ask numbers what they are, which a narrow float's widened number answers."""
BODIES = frozenset(("If", "Loop", "Scan", "SequenceMap"))
"""Ops whose bodies are translated node by node, so that each node there asks again."""


def translate(entry: Entry, context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    """The results of an entry, in the types that the schema gives them."""
    if entry.reads_elements:
        return _tuple(entry.translate(context, node, operands))
    narrow = next((one.element for one in operands if one is not None and one.element is not None), None)
    if narrow is not None and node.op_type in ASKS:
        return _tuple(entry.translate(context, node, tuple(one and widen(context, one) for one in operands)))
    if narrow is not None:
        return _moved(entry, context, node, operands, narrow)
    halves = any(one is not None and one.dtype is DType.BFLOAT16 for one in operands)
    if halves and not _moves(node) and node.op_type not in BODIES:
        return _in_float32(entry, context, node, operands)
    return _tuple(entry.translate(context, node, operands))


def _moves(node: Node) -> bool:
    return node.op_type in MOVES and node.text("reduction", "none") == "none"


def _moved(entry: Entry, context: Context, node: Node, operands: Operands, found: Element) -> tuple[Tensor, ...]:
    if not _moves(node):
        raise node.unsupported(f"elements of type {found}")
    if node.op_type == "Pad" and found is Element.FLOAT8_E8M0 and (len(operands) < 3 or operands[2] is None):
        raise node.unsupported(f"a border of zeros, which {found} does not have")
    plain = tuple(one if one is None else replace(one, element=None) for one in operands)
    results = _tuple(entry.translate(context, node, plain))
    elements = {key: one.element for key, one in _typed(node, operands).items()}
    return tuple(replace(one, element=elements.get(key)) for key, one in _results(node, results))


def _in_float32(entry: Entry, context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    wide = tuple(_widened(context, one) for one in operands)
    results = _tuple(entry.translate(context, node, wide))
    typed = _typed(node, operands)
    halves = {key for key, one in typed.items() if one.dtype is DType.BFLOAT16}
    return tuple(context.cast(one, DType.BFLOAT16) if key in halves else one for key, one in _results(node, results))


def _widened(context: Context, x: Tensor | None) -> Tensor | None:
    """As float32; small constants stay constants, whose numbers translations read."""
    if x is None or x.dtype is not DType.BFLOAT16:
        return x
    if x.payload is None or x.payload.elements > MAX_CONTENT:
        return context.cast(x, DType.FLOAT32)
    bits = np.frombuffer(x.payload.data, "<u2").astype("<u4") << np.uint32(16)
    return Tensor.of_payload(Payload(DType.FLOAT32, x.payload.shape, bits.astype("<u4").tobytes()))


def _tuple(results: "Tensor | tuple[Tensor, ...]") -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def _typed(node: Node, operands: Operands) -> dict[str, Tensor]:
    """The schema's name of a type → an operand that has it."""
    schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    last = len(schema.inputs) - 1
    return {schema.inputs[min(at, last)].type_str: one for at, one in enumerate(operands) if one is not None}


def _results(node: Node, results: tuple[Tensor, ...]) -> list[tuple[str, Tensor]]:
    """Each result with the schema's name of its type."""
    schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    last = len(schema.outputs) - 1
    return [(schema.outputs[min(at, last)].type_str, one) for at, one in enumerate(results)]
