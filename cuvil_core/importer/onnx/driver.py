"""Reads a model and builds its graph, in rounds."""

from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from cuvil_core.contract import InputSpec
from cuvil_core.errors import CuvilError, InternalError, ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.functions import own_functions
from cuvil_core.importer.onnx.node import Node, read_node
from cuvil_core.importer.onnx.reading import opsets, read
from cuvil_core.importer.onnx.scope import Functions, Scope
from cuvil_core.importer.onnx.signature import Signature, read_signature
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.importer.onnx.tensors import tensor_of_proto
from cuvil_core.importer.onnx.walk import walk
from cuvil_core.ir import Equalities, Graph, GraphBuilder, Guard, verify
from cuvil_core.ops import RULES

MAX_ROUNDS = 4
"""Each round knows the guards of the former; real models need two."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A model file after all checks that need no translation."""

    name: str
    nodes: tuple[Node, ...]
    versions: dict[str, int]
    functions: Functions
    folder: Path | None
    constants: dict[str, Tensor]
    signature: Signature
    outputs: tuple[str, ...]


def load(source: Path | str | bytes, inputs: tuple[InputSpec, ...] = ()) -> Graph:
    """The graph of an ONNX file, verified.

    `inputs` gives names and bounds to dimensions: a name in place of a number of the file makes that extent symbolic.
    Where two extents must be equal and that cannot be proved, a guard says so and the translation is repeated with that
    knowledge, so that equal extents have one spelling throughout the graph.
    """
    try:
        checked = _read(Path(source) if isinstance(source, str) else source, inputs)
        graph = _translate(checked)
    except CuvilError:
        raise
    except RecursionError as error:
        raise ModelError("The model's extents are nested too deeply; give its inputs fixed shapes.") from error
    except MemoryError as error:
        raise SizeError("The model does not fit into memory while it is read; use a larger machine.") from error
    except Exception as error:
        raise InternalError(f"The model cannot be read ({error!r}); report this as a fault of Cuvil.") from error
    verify(graph, RULES)
    return graph


def _read(source: Path | bytes, specs: tuple[InputSpec, ...]) -> _Source:
    model, folder = read(source)
    graph, versions = model.graph, opsets(model)
    if graph.sparse_initializer or graph.quantization_annotation:
        raise UnsupportedOpError("The model has sparse or quantized constants, which Cuvil does not compile.")
    constants = _constants(graph, folder)
    functions = own_functions(model)
    nodes = tuple(read_node(proto, versions, number, functions) for number, proto in enumerate(graph.node))
    signature = read_signature((proto for proto in graph.input if proto.name not in constants), specs)
    outputs = tuple(proto.name for proto in graph.output)
    if len(set(outputs)) != len(outputs):
        raise ModelError("Two outputs of the model have the same name; export it again.")
    name = source.name if isinstance(source, Path) else ""
    return _Source(name, nodes, versions, functions, folder, constants, signature, outputs)


def _constants(graph: onnx.GraphProto, folder: Path | None) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for proto in graph.initializer:
        if proto.name in found:
            raise ModelError(f"Two constants of the model have the name {proto.name!r}; export it again.")
        found[proto.name] = tensor_of_proto(proto, folder, f"Constant {proto.name!r}")
    return found


def _translate(source: _Source) -> Graph:
    guards: tuple[Guard, ...] = ()
    for _ in range(MAX_ROUNDS):
        graph = _translate_once(source, guards)
        if len(graph.guards) == len(guards):
            break
        guards = graph.guards
    return graph


def _translate_once(source: _Source, guards: tuple[Guard, ...]) -> Graph:
    builder = GraphBuilder(RULES, Equalities(guards))
    for guard in guards:
        builder.guard(guard.left, guard.right, guard.relation, guard.provenance)
    for symbol, (least, greatest) in source.signature.bounds.items():
        builder.symbol(symbol, least, greatest)
    context = Context(builder, source.signature.rebatched, walk, source.folder)
    known: dict[str, Tensor | None] = dict(source.constants)
    for name, type in source.signature.inputs:
        element = source.signature.elements.get(name)
        known[name] = replace(Tensor.of_value(builder.input(name, type, element)), element=element)
    walk(context, Scope(source.name, source.versions, source.functions, known), source.nodes)
    outputs = [known.get(name) for name in source.outputs]
    found = [one for one in outputs if one is not None]
    missing = [name for name, tensor in zip(source.outputs, outputs, strict=True) if tensor is None]
    if missing:
        raise ModelError(f"Output {missing[0]!r} is computed by no node; export the model again.")
    named = [pair for name, one in zip(source.outputs, found, strict=True) for pair in _given_out(name, one)]
    names, tensors = [name for name, _ in named], [tensor for _, tensor in named]
    if len(set(names)) != len(names):
        raise ModelError("An output of the model has the name of a sequence's item; export it with other names.")
    return builder.finish([context.value(one) for one in tensors], names, tuple(one.element for one in tensors))


def _given_out(name: str, tensor: Tensor) -> list[tuple[str, Tensor]]:
    """An output by its name; the items of a sequence as `name[0]`, `name[1]`, …"""
    if tensor.items is None:
        return [(name, tensor)]
    if not tensor.items:
        raise UnsupportedOpError(f"Output {name!r} is an empty sequence, which has nothing to give out.")
    return [(f"{name}[{at}]", item) for at, item in enumerate(tensor.items)]
