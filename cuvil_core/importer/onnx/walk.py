"""Walks nodes in their order: each by the model's own function, by the table, or by the body of ONNX's schema."""

from collections.abc import Iterable
from dataclasses import replace

from cuvil_core.errors import CuvilError, InternalError, ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands
from cuvil_core.importer.onnx.functions import MAX_CALLS, Body, has_body, own_body, schema_body
from cuvil_core.importer.onnx.narrow import translate
from cuvil_core.importer.onnx.node import Node, read_node, unknown_op
from cuvil_core.importer.onnx.old_opsets import upgraded
from cuvil_core.importer.onnx.reading import MAX_NODES
from cuvil_core.importer.onnx.schema import check_types
from cuvil_core.importer.onnx.scope import Scope, owns
from cuvil_core.importer.onnx.table import entry_for
from cuvil_core.importer.onnx.tensor import Tensor

Results = tuple[Tensor | None, ...]


def walk(context: Context, scope: Scope, nodes: Iterable[Node]) -> None:
    """Translate the nodes; each finds its inputs in the scope and puts its outputs there."""
    for node in nodes:
        context.scope, context.provenance = scope, scope.provenance(node)
        _define(node, scope, _guarded(context, scope, node, _operands(node, scope)))


def _operands(node: Node, scope: Scope) -> Operands:
    """The node's inputs; nodes stand in topological order, so an unknown name is missing, or part of a cycle."""
    for name in node.inputs:
        if name and name not in scope.known:
            raise node.broken(f"its input {name!r} is not computed by any node before it")
    return tuple(scope.known[name] if name else None for name in node.inputs)


def _guarded(context: Context, scope: Scope, node: Node, operands: Operands) -> Results:
    """The results; every error names the node."""
    try:
        return _results(context, scope, node, operands)
    except UnsupportedOpError as error:
        raise (
            error if str(error).startswith("Node ") else UnsupportedOpError(f"{node}: {str(error).rstrip('.')}.")
        ) from error
    except ModelError as error:
        text = str(error).rstrip(".")
        raise error if text.startswith("Node ") else node.broken(text) from error
    except (CuvilError, RecursionError, MemoryError):
        raise
    except Exception as error:
        raise InternalError(f"{node} cannot be translated ({error!r}); report this as a fault of Cuvil.") from error


def _results(context: Context, scope: Scope, node: Node, operands: Operands) -> Results:
    own = scope.functions.get(node.key)
    if own is not None:
        return _inlined(context, scope, node, operands, own_body(own, node))
    entry = entry_for(node)
    if entry is None and not has_body(node):
        raise unknown_op(node)
    check_types(node, operands)
    if entry is not None:
        return _by_entry(context, scope, *upgraded(context, node, operands), entry)
    body = schema_body(node, operands, scope.versions)
    if body is None:
        raise unknown_op(node)
    return _inlined(context, scope, node, operands, body)


def _by_entry(context: Context, scope: Scope, node: Node, operands: Operands, entry: Entry) -> Results:
    """By the table; a form that it refuses by the body of the schema. What was begun before is taken back."""
    mark = context.builder.mark()
    try:
        return translate(entry, context, node, operands)
    except UnsupportedOpError as refusal:
        body = None if entry.final else schema_body(node, operands, scope.versions)
        if body is None:
            raise
        context.builder.back_to(mark)
        try:
            return _inlined(context, scope, node, operands, body)
        except (ModelError, UnsupportedOpError):
            raise refusal from None


def _inlined(context: Context, scope: Scope, node: Node, operands: Operands, body: Body) -> Results:
    """The body's nodes in a scope of their own, so that its names cannot meet those of the caller."""
    calls = (*scope.calls, node)
    context.inlined += len(body.nodes)
    if len(calls) > 2 * MAX_CALLS:
        raise node.broken("its functions call ops of ONNX that call them again")
    if context.inlined > MAX_NODES:
        raise SizeError(f"{node}: the functions of the model hold more than {MAX_NODES} nodes; split the model.")
    given = (*operands, *[None] * (len(body.inputs) - len(operands)))
    inner = replace(scope, versions=body.versions, known=dict(zip(body.inputs, given, strict=True)), calls=calls)
    walk(context, inner, _nodes(inner, body, node))
    context.scope, context.provenance = scope, scope.provenance(node)
    return tuple(inner.known.get(name) for name in body.outputs)


def _nodes(scope: Scope, body: Body, call: Node) -> Iterable[Node]:
    for number, proto in enumerate(body.nodes):
        yield read_node(proto, scope.versions, number, scope.functions, str(call))


def _define(node: Node, scope: Scope, results: Results) -> None:
    for at, name in enumerate(node.outputs):
        found = results[at] if at < len(results) else None
        if name and owns(scope.known, name):
            raise node.broken(f"its output {name!r} is defined twice")
        if name and found is None:
            raise node.unsupported(f"its output {at}")
        if name:
            scope.known[name] = found
