"""Sequences and optionals whose length is known while importing: only their tensors reach the graph.

A sequence is a Tensor with `items`; its type holds the element type of them all. Positions must be known too. What
only a call brings, a sequence or an optional of its own, has no length here and is refused by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.from_data import only_in_call
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.subgraphs import read_subgraph
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.importer.onnx.tensors import kind_of
from cuvil_core.ir import Dim, DType, Element, Payload

MAX_ITEMS = 1024
"""Longer sequences are those of loops over data, which have no place in a graph of tensors."""


def _made(node: Node, items: Sequence[Tensor], dtype: DType, element: Element | None) -> Tensor:
    if len(items) > MAX_ITEMS:
        raise node.unsupported(f"a sequence of {len(items)} tensors")
    return Tensor.of_items(dtype, element, tuple(items))


def _items(node: Node, operands: Operands, index: int = 0) -> tuple[Tensor, ...]:
    found = need(node, operands, index)
    if found.items is None:
        raise node.broken(f"its input {index} is no sequence")
    return found.items


def _empty(context: Context, node: Node, operands: Operands) -> Tensor:
    return _made(node, (), *kind_of(node.integer("dtype", 1), str(node)))


def _construct(context: Context, node: Node, operands: Operands) -> Tensor:
    items = all_of(node, operands)
    return _made(node, items, items[0].dtype, items[0].element)


def _insert(context: Context, node: Node, operands: Operands) -> Tensor:
    sequence, items, x = need(node, operands, 0), list(_items(node, operands)), need(node, operands, 1)
    if (x.dtype, x.element) != (sequence.dtype, sequence.element):
        raise node.broken(f"it puts {x.element or x.dtype} into a sequence of {sequence.element or sequence.dtype}")
    given = optional(operands, 2)
    at = len(items) if given is None else _place(context, node, given, len(items), len(items))
    return _made(node, [*items[:at], x, *items[at:]], x.dtype, x.element)


def _place(context: Context, node: Node, given: Tensor, length: int, greatest: int) -> int:
    """A known place in -length .. greatest, counted from the front."""
    place = _number(context, node, given, "the position")
    if not -length <= place <= greatest:
        raise node.broken(f"the position {place} is outside of a sequence of {length}")
    return place + length if place < 0 else place


def _number(context: Context, node: Node, given: Tensor, what: str) -> int:
    numbers = context.ints(given, what)
    if len(numbers) != 1:
        raise node.broken(f"{what} is not one number")
    return numbers[0]


def _erase(context: Context, node: Node, operands: Operands) -> Tensor:
    sequence, items, given = need(node, operands, 0), list(_items(node, operands)), optional(operands, 1)
    if not items:
        raise node.broken("there is nothing to erase in an empty sequence")
    at = len(items) - 1 if given is None else _place(context, node, given, len(items), len(items) - 1)
    return _made(node, [*items[:at], *items[at + 1 :]], sequence.dtype, sequence.element)


def _at(context: Context, node: Node, operands: Operands) -> Tensor:
    items, given = _items(node, operands), need(node, operands, 1)
    return items[_place(context, node, given, len(items), len(items) - 1)]


def _length(context: Context, node: Node, operands: Operands) -> Tensor:
    return Tensor.of_content(DType.INT64, to_content([len(_items(node, operands))], ()))


def _concat(context: Context, node: Node, operands: Operands) -> Tensor:
    """Along an axis that the items have, or along a new one."""
    items = _items(node, operands)
    if not items or any(item.rank != items[0].rank for item in items):
        raise node.broken("it needs tensors of one rank, at least one")
    new = node.flag("new_axis", False)
    axis = resolve_axis(node.integer("axis"), items[0].rank + new)
    rows = [context.reshape(one, [*one.shape[:axis], 1, *one.shape[axis:]]) for one in items] if new else items
    return replace(context.concat(rows, axis), element=items[0].element)


def _split(context: Context, node: Node, operands: Operands) -> Tensor:
    """Parts of one size, the last one smaller; parts of given sizes; or one an element, with or without its axis."""
    x, given = need(node, operands, 0), optional(operands, 1)
    axis = resolve_axis(node.integer("axis", 0), x.rank)
    sizes = _sizes(context, node, x.shape[axis], given)
    starts = [sum(sizes[:at], Dim.of(0)) for at in range(len(sizes))]
    parts = [context.slice(x, axis, start, size) for start, size in zip(starts, sizes, strict=True)]
    if given is None and not node.flag("keepdims", True):
        parts = [context.reshape(part, [*x.shape[:axis], *x.shape[axis + 1 :]]) for part in parts]
    return _made(node, [replace(part, element=x.element) for part in parts], x.dtype, x.element)


def _sizes(context: Context, node: Node, extent: Dim, given: Tensor | None) -> list[Dim]:
    if given is not None and given.rank == 1:
        sizes = context.extents(given) if only_in_call(given) else context.dims(given, "the sizes")
        context.guard(sum(sizes, Dim.of(0)), extent)
        return sizes
    size = 1 if given is None else _number(context, node, given, "the size of the parts")
    if size < 1:
        raise node.broken(f"parts of size {size} make no sequence")
    if extent.constant is None or extent.constant > MAX_ITEMS * size:
        raise node.unsupported(f"a sequence of as many parts as the extent {extent} has")
    return [Dim.of(min(size, extent.constant - at)) for at in range(0, extent.constant, size)]


def _map(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    """The body on the items at each place; tensors beside them stay the same."""
    length, given = len(_items(node, operands)), all_of(node, operands)
    if any(one.items is not None and len(one.items) != length for one in given):
        raise node.broken("its sequences differ in length")
    if not length:
        raise node.unsupported("an empty sequence, whose results have no type")
    body = read_subgraph(context, node, "body", len(given))
    turns = [
        body.translate(context, [one if one.items is None else one.items[at] for one in given]) for at in range(length)
    ]
    columns = zip(*turns, strict=True)
    return tuple(_made(node, column, column[0].dtype, column[0].element) for column in columns)


def _optional(context: Context, node: Node, operands: Operands) -> Tensor:
    """An optional that holds something is what it holds."""
    found = optional(operands, 0)
    if found is None:
        raise node.unsupported("an optional without an element")
    return found


def _has_element(context: Context, node: Node, operands: Operands) -> Tensor:
    return Tensor.of_payload(Payload.scalar(DType.BOOL, optional(operands, 0) is not None))


def _get_element(context: Context, node: Node, operands: Operands) -> Tensor:
    return need(node, operands, 0)


_TRANSLATIONS: dict[str, tuple[int, Callable[[Context, Node, Operands], Tensor | tuple[Tensor, ...]]]] = {
    "SequenceEmpty": (11, _empty),
    "SequenceConstruct": (11, _construct),
    "SequenceInsert": (11, _insert),
    "SequenceErase": (11, _erase),
    "SequenceAt": (11, _at),
    "SequenceLength": (11, _length),
    "ConcatFromSequence": (11, _concat),
    "SplitToSequence": (11, _split),
    "SequenceMap": (17, _map),
    "Optional": (15, _optional),
    "OptionalHasElement": (15, _has_element),
    "OptionalGetElement": (15, _get_element),
}
ENTRIES: tuple[Entry, ...] = tuple(
    Entry(op_type, translate, since=since, reads_elements=True) for op_type, (since, translate) in _TRANSLATIONS.items()
)
