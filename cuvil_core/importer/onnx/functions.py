"""Bodies of ops that are functions: those of the model itself, and those of ONNX's own schemas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx
from onnx import AttributeProto

from cuvil_core.errors import ModelError, SizeError
from cuvil_core.importer.onnx.entry import Operands
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.reading import MAX_NODES, NEWEST_OPSET, versions_of
from cuvil_core.importer.onnx.scope import Functions, Key
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import DTYPES, ELEMENTS
from cuvil_core.ir import DType, Element

MAX_CALLS = 32
"""Functions that call functions: deeper comes from a function that calls itself."""
_CODES: dict[DType | Element, int] = {kind: code for table in (DTYPES, ELEMENTS) for code, kind in table.items()}


@dataclass(frozen=True, slots=True)
class Body:
    """A function with the attributes of one call put in."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    versions: Mapping[str, int]
    nodes: tuple[onnx.NodeProto, ...]
    """Only those that the outputs of the call need."""


def own_functions(model: onnx.ModelProto) -> Functions:
    """The model's functions by key; ModelError where two have the same or one calls itself, SizeError past a bound."""
    found: dict[Key, onnx.FunctionProto] = {}
    for function in model.functions:
        key = ("" if function.domain == "ai.onnx" else function.domain, function.name, function.overload)
        if key in found:
            raise ModelError(f"Two functions of the model have the name {function.name!r}; export it again.")
        found[key] = function
    _unfolded(model.graph.node, found, {}, ())
    return found


def _unfolded(
    nodes: Iterable[onnx.NodeProto], functions: Functions, sizes: dict[Key, int], calls: tuple[Key, ...]
) -> int:
    """How many nodes are left of these when all calls are replaced by bodies; each function is counted once."""
    total = 0
    for proto in nodes:
        key = ("" if proto.domain == "ai.onnx" else proto.domain, proto.op_type, proto.overload)
        if key in functions and key not in sizes:
            if key in calls or len(calls) >= MAX_CALLS:
                raise ModelError(
                    f"Function {proto.op_type!r} is nested more than {MAX_CALLS} deep; export the model again."
                )
            sizes[key] = _unfolded(functions[key].node, functions, sizes, (*calls, key))
        total += 1 + sizes.get(key, 0)
        total += sum(_unfolded(graph.node, functions, sizes, calls) for graph in _graphs(proto.attribute))
        if total > MAX_NODES:
            raise SizeError(f"The model's functions unfold to more than {MAX_NODES} nodes; split the model.")
    return total


def own_body(function: onnx.FunctionProto, node: Node) -> Body:
    """The body of a call of one of the model's functions, the call checked against what the function takes."""
    defaults = {attribute.name: attribute for attribute in function.attribute_proto}
    unknown = node.attributes.keys() - defaults.keys() - set(function.attribute)
    missing = [name for name in function.attribute if name not in node.attributes]
    if unknown or missing:
        raise node.broken(f"the attributes {sorted(unknown) or missing} do not fit the function")
    if len(node.inputs) > len(function.input) or len(node.outputs) > len(function.output):
        raise node.broken(f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs, more than the function")
    return _body(function, node, {**defaults, **node.attributes})


def has_body(node: Node) -> bool:
    """True where ONNX's schema of the op is a function, at least for some dtypes and attributes."""
    schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    return bool(schema.has_function or schema.has_context_dependent_function)


def schema_body(node: Node, operands: Operands, versions: Mapping[str, int]) -> Body | None:
    """The body that ONNX's schema of the op gives in the node's opset; None where it gives none.

    `versions` are the caller's, which hold for the domains that the body does not name.
    """
    schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    data = b""
    if schema.has_function:
        version = _newest(schema.function_opset_versions, node.opset)
        data = b"" if version is None else schema.get_function_with_opset_version(version)
    if not data and schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, node.opset)
        types = [_type(operand) for operand in operands]
        call = _call(node)
        get = schema.get_context_dependent_function_with_opset_version
        data = b"" if version is None else get(version, call, types)
    if not data:
        return None
    defaults = {name: known.default_value for name, known in schema.attributes.items() if known.default_value.type}
    body = _body(onnx.FunctionProto.FromString(data), node, {**defaults, **node.attributes})
    # a preview's body names its own domain alone, though it is made of ops of the newest opset
    return replace(body, versions={**versions, "": NEWEST_OPSET, **body.versions})


def _newest(versions: Sequence[int], opset: int) -> int | None:
    return max((version for version in versions if version <= opset), default=None)


def _call(node: Node) -> bytes:
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain, input=node.inputs, output=node.outputs)
    proto.attribute.extend(node.attributes.values())
    return bytes(proto.SerializeToString())


def _type(operand: Tensor | None) -> bytes:
    """What is known of an operand, as ONNX writes types; an empty type for one that is left out."""
    proto = onnx.TypeProto()
    if operand is None:
        return bytes(proto.SerializeToString())
    tensor = proto.tensor_type if operand.items is None else proto.sequence_type.elem_type.tensor_type
    tensor.elem_type = _CODES[operand.element or operand.dtype]
    if operand.items is not None:
        return bytes(proto.SerializeToString())
    tensor.shape.SetInParent()
    for extent in operand.shape:
        dim = tensor.shape.dim.add()
        if extent.constant is None:
            dim.dim_param = str(extent)
        else:
            dim.dim_value = extent.constant
    return bytes(proto.SerializeToString())


def _body(function: onnx.FunctionProto, node: Node, attributes: Mapping[str, AttributeProto]) -> Body:
    outputs = tuple(function.output)
    wanted = {name for name, given in zip(outputs, node.outputs, strict=False) if given}
    nodes = [_bound(proto, attributes) for proto in _needed(function.node, wanted)]
    return Body(tuple(function.input), outputs, versions_of(function.opset_import), tuple(nodes))


def _needed(nodes: Sequence[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    """The nodes that the wanted names depend on, in their order."""
    kept: list[onnx.NodeProto] = []
    for proto in reversed(nodes):
        if not wanted.isdisjoint(proto.output):
            kept.append(proto)
            wanted.update(_read_by(proto))
    return kept[::-1]


def _read_by(proto: onnx.NodeProto) -> Iterator[str]:
    """The names that a node and the graphs within it read."""
    yield from proto.input
    for graph in _graphs(proto.attribute):
        yield from (output.name for output in graph.output)
        for inner in graph.node:
            yield from _read_by(inner)


def _graphs(attributes: Iterable[AttributeProto]) -> Iterator[onnx.GraphProto]:
    for attribute in attributes:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _bound(proto: onnx.NodeProto, given: Mapping[str, AttributeProto]) -> onnx.NodeProto:
    """The node with references to the function's attributes replaced; one that the call leaves out has no default."""
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is not None:
            made.attribute.add().CopyFrom(source)
            made.attribute[-1].name = attribute.name
    for graph in _graphs(made.attribute):
        bound = [_bound(inner, given) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(bound)
    return made
