"""Graphs that are attributes of nodes: read when they are needed, translated in the scope of their node."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuvil_core.errors import InternalError, SizeError
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.node import Node, read_node
from cuvil_core.importer.onnx.reading import MAX_NODES
from cuvil_core.importer.onnx.scope import Names
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import tensor_of_proto


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph of a node after all checks that need no translation."""

    owner: Node
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: dict[str, Tensor | None]

    def translate(self, context: Context, inputs: Sequence[Tensor]) -> list[Tensor]:
        """What the outputs are for these inputs; emits into the context, whose scope the subgraph looks out to."""
        outer, origin = context.scope, context.provenance
        if outer is None or context.walk is None:
            raise InternalError(f"{self.owner} is translated without a scope; report this as a fault of Cuvil.")
        context.inlined += len(self.nodes)
        if context.inlined > MAX_NODES:
            raise SizeError(f"{self.owner}: the model unfolds to more than {MAX_NODES} nodes; split it.")
        known = Names(self.constants | dict(zip(self.inputs, inputs, strict=True)), outer.known)
        context.walk(context, replace(outer, known=known, calls=(*outer.calls, self.owner)), self.nodes)
        context.scope, context.provenance = outer, origin
        found = [(name, known.find(name)) for name in self.outputs]
        for name, tensor in found:
            if tensor is None:
                raise self.owner.broken(f"the output {name!r} of its subgraph is computed by no node")
        return [tensor for _, tensor in found if tensor is not None]


def read_subgraph(context: Context, node: Node, key: str, inputs: int) -> Subgraph:
    """The graph of an attribute, which must take that many inputs."""
    graph = node.attributes[key].g
    if graph.sparse_initializer or graph.quantization_annotation:
        raise node.unsupported("sparse or quantized constants")
    names = tuple(proto.name for proto in graph.input)
    constants: dict[str, Tensor | None] = {}
    for proto in graph.initializer:
        if proto.name in constants:
            raise node.broken(f"two constants of its subgraph have the name {proto.name!r}")
        where = f"Constant {proto.name!r}"
        constants[proto.name] = tensor_of_proto(proto, context.folder, where)
    if len(names) != inputs or len(set(names)) != inputs:
        raise node.broken(f"its subgraph {key} has the inputs {list(names)}, not {inputs} different ones")
    scope = context.scope
    if scope is None:
        raise InternalError(f"{node} is translated without a scope; report this as a fault of Cuvil.")
    protos = enumerate(graph.node)
    nodes = tuple(read_node(proto, scope.versions, number, scope.functions, node.within) for number, proto in protos)
    return Subgraph(node, names, tuple(proto.name for proto in graph.output), nodes, constants)
