"""Graph → text, one op a line; `parser` is the inverse. The grammar is on docs/ir.md."""

import json
import math
from collections.abc import Iterable, Iterator

from cuvil_core.ir.dims import Dim
from cuvil_core.ir.dtypes import DType
from cuvil_core.ir.elements import Element
from cuvil_core.ir.graph import UNKNOWN, Attribute, Block, Graph, Op, Provenance, Value
from cuvil_core.ir.payload import Payload

INLINE_ELEMENTS = 16
"""A payload of at most so many elements prints in place, a larger one as its digest."""


def print_graph(graph: Graph, *, provenance: bool = False) -> str:
    """The graph as text; with `provenance` it parses back to the same graph, else to one without origins."""
    lines = ["graph {"]
    for symbol in graph.symbols:
        lines.append(f"  symbol {symbol.name} in {symbol.least}..{'' if symbol.greatest is None else symbol.greatest}")
    for value, name, element in zip(graph.inputs, graph.input_names, graph.inputs_as, strict=True):
        lines.append(f"  input %{value.name} {json.dumps(name)} : {value.type}{_seen_as(element)}")
    for op in graph.ops:
        lines.extend(f"  {line}" for line in _op_lines(op, provenance))
    for guard in graph.guards:
        lines.append(f"  guard {guard}{_origin(guard.provenance, provenance)}")
    for value, name, element in zip(graph.outputs, graph.output_names, graph.outputs_as, strict=True):
        lines.append(f"  output %{value.name} {json.dumps(name)}{_seen_as(element)}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _seen_as(element: Element | None) -> str:
    return "" if element is None else f" as {element}"


def print_op(op: Op, *, provenance: bool = False) -> str:
    """One op as text, over several lines when it has a region."""
    return "\n".join(_op_lines(op, provenance))


def payload_table(graph: Graph) -> dict[str, Payload]:
    """Digest → payload of all payloads that the text leaves out."""
    return {
        payload.digest: payload
        for op in _all_ops(graph.ops)
        for payload in op.attributes.values()
        if isinstance(payload, Payload) and not _is_inline(payload)
    }


def _all_ops(ops: Iterable[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        for block in (*op.blocks, *([op.region] if op.region is not None else [])):
            yield from _all_ops(block.ops)


def _op_lines(op: Op, provenance: bool) -> list[str]:
    results = ", ".join(f"%{value.name}" for value in op.results)
    operands = ", ".join(f"%{value.name}" for value in op.operands)
    attributes = ", ".join(f"{key} = {_attribute(value)}" for key, value in sorted(op.attributes.items()))
    head = f"{results} = {op.name}" + (f" {operands}" if operands else "")
    head += f" {{{attributes}}}" if attributes else ""
    head += " : " + ", ".join(str(value.type) for value in op.results) + _origin(op.provenance, provenance)
    lines = [head if op.region is None else head + " do"]
    for block in op.blocks if op.region is None else (op.region,):
        lines += ["block"] if op.region is None else []
        lines += [*(f"  {line}" for line in _block_lines(block, provenance)), "end"]
    return lines


def _block_lines(block: Block, provenance: bool) -> list[str]:
    lines = [f"input %{value.name} : {value.type}" for value in block.inputs]
    for op in block.ops:
        lines.extend(_op_lines(op, provenance))
    return [*lines, "yield " + ", ".join(f"%{value.name}" for value in block.outputs)]


def _origin(origin: Provenance, wanted: bool) -> str:
    if not wanted or origin == UNKNOWN:
        return ""
    fields = (origin.file, origin.node, origin.op_type, origin.path)
    return f" @({', '.join(json.dumps(item) for item in fields)})"


def _attribute(value: Attribute) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Payload):
        return _payload(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        text = ", ".join(map(str, value))
        return f"<{text}>" if value and isinstance(value[0], Dim) else f"[{text}]"
    return str(value) if isinstance(value, DType | int) else _float(value)


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else ("inf" if value > 0 else "-inf"))


def _is_inline(payload: Payload) -> bool:
    return payload.elements <= INLINE_ELEMENTS


def _payload(payload: Payload) -> str:
    shape = "x".join(map(str, payload.shape)) or "scalar"
    return f"payload({payload.dtype}, {shape}, {_payload_content(payload)})"


def _payload_content(payload: Payload) -> str:
    """Numbers where they give the bytes back (a NaN's bits may not), else hex, else the digest."""
    if not _is_inline(payload):
        return f"sha256:{payload.digest}"
    values = payload.values()
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        return f"hex:{payload.data.hex()}"
    return "[" + ", ".join(_number(value) for value in values) + "]"


def _number(value: float | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _float(value) if isinstance(value, float) else str(value)


def describe(value: Value) -> str:
    """`%3 : float32[N, 3]`, for error sentences."""
    return f"%{value.name} : {value.type}"
