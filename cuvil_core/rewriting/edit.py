"""Rebuilding graphs: new ops with the table's types, values replaced, names made regular."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cuvil_core.ir import (
    UNKNOWN,
    Attribute,
    Block,
    Dim,
    Graph,
    Op,
    Payload,
    Provenance,
    Rules,
    TensorType,
    Value,
    freeze,
)
from cuvil_core.rewriting.facts import Facts


@dataclass(slots=True)
class Editor:
    """Emits ops into a list and keeps the facts true; one editor makes one graph."""

    rules: Rules
    facts: Facts
    first_name: int
    ops: list[Op] = field(default_factory=list)
    provenance: Provenance = UNKNOWN
    """The origin that new ops get."""

    def emit(self, name: str, *operands: Value, **attributes: Attribute) -> Value:
        """A new op with one result."""
        (result,) = self.emit_all(name, operands, attributes)
        return result

    def emit_all(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Attribute],
        region: Block | None = None,
    ) -> tuple[Value, ...]:
        """A new op with any results."""
        frozen = freeze(attributes)
        types = self.rules.infer(name, tuple(operand.type for operand in operands), frozen, region)
        op = Op(name, tuple(operands), tuple(map(self.value, types)), frozen, region, self.provenance)
        self.keep(op)
        self.facts.count_uses(operands)
        return op.results

    def value(self, type: TensorType) -> Value:
        """A fresh value."""
        self.first_name += 1
        return Value(str(self.first_name - 1), type)

    def constant(self, payload: Payload) -> Value:
        """A constant op."""
        return self.emit("constant", value=payload)

    def keep(self, op: Op) -> None:
        """An op as it is."""
        self.ops.append(op)
        self.facts.add(op)


def next_name(graph: Graph) -> int:
    """The least number above all numeric names of the outer level."""
    return 1 + max((int(value.name) for value in graph.values() if value.name.isdigit()), default=-1)


def with_operands(op: Op, replaced: Mapping[Value, Value]) -> Op:
    """The op reading other values; the op itself where nothing changes."""
    if not any(operand in replaced for operand in op.operands):
        return op
    return replace(op, operands=tuple(replaced.get(operand, operand) for operand in op.operands))


def remove_unused(graph: Graph) -> Graph:
    """The graph without ops whose results, and without binds whose symbols, nobody needs; guards and inputs stay."""
    needed = set(graph.outputs)
    symbols = {name for guard in graph.guards for name in guard.symbols}
    symbols |= {name for value in graph.outputs for name in _symbols_of(value)}
    kept: list[Op] = []
    for op in reversed(graph.ops):
        if not _is_needed(op, needed, symbols):
            continue
        needed.update(op.operands)
        symbols |= symbols_of(op)
        kept.append(op)
    return graph if len(kept) == len(graph.ops) else replace(graph, ops=tuple(reversed(kept)))


def _is_needed(op: Op, values: set[Value], symbols: set[str]) -> bool:
    """True for what makes one of the values or symbols, and for checks, which may end the call."""
    binds = op.name == "bind" and str(op.dims("symbol")[0]) in symbols
    return binds or op.name == "check" or not values.isdisjoint(op.results)


def symbols_of(op: Op) -> set[str]:
    """The symbols in the op's attributes and in the types of its results, also those of its region."""
    dims = [item for value in op.attributes.values() if isinstance(value, tuple) for item in value]
    found = {name for item in dims if isinstance(item, Dim) for name in item.symbols}
    found |= {name for value in op.results for name in _symbols_of(value)}
    blocks = (*op.blocks, *([op.region] if op.region is not None else []))
    return found.union(*(symbols_of(inner) for block in blocks for inner in block.ops))


def _symbols_of(value: Value) -> set[str]:
    return {name for extent in value.shape for name in extent.symbols}


def renumber(graph: Graph) -> Graph:
    """The graph with values named 0, 1, … in order of definition, in blocks too."""
    names: dict[Value, Value] = {}
    inputs = _rename(graph.inputs, names)
    ops = tuple(_renumber_op(op, names) for op in graph.ops)
    return replace(graph, inputs=inputs, ops=ops, outputs=tuple(names[value] for value in graph.outputs))


def _rename(values: Iterable[Value], names: dict[Value, Value]) -> tuple[Value, ...]:
    found: list[Value] = []
    for value in values:
        names[value] = Value(str(len(names)), value.type)
        found.append(names[value])
    return tuple(found)


def _renumber_op(op: Op, names: dict[Value, Value]) -> Op:
    operands = tuple(names[operand] for operand in op.operands)
    region = None if op.region is None else _renumber_block(op.region)
    blocks = tuple(map(_renumber_block, op.blocks))
    return replace(op, operands=operands, results=_rename(op.results, names), region=region, blocks=blocks)


def _renumber_block(block: Block) -> Block:
    names: dict[Value, Value] = {}
    inputs = _rename(block.inputs, names)
    ops = tuple(_renumber_op(op, names) for op in block.ops)
    return Block(inputs, ops, tuple(names[value] for value in block.outputs))
