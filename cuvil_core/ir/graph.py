"""Values, ops, blocks and graphs: frozen SSA."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from cuvil_core.errors import InternalError
from cuvil_core.ir.dims import Dim, Ranges, is_from_data
from cuvil_core.ir.dtypes import DType
from cuvil_core.ir.elements import Elements, each
from cuvil_core.ir.payload import Payload
from cuvil_core.ir.types import TensorType

Attribute: TypeAlias = bool | int | float | str | DType | Payload | tuple[int, ...] | tuple[Dim, ...]


def freeze(attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """A read-only copy of the attributes."""
    return MappingProxyType(dict(attributes))


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an op comes from in the model file, for error sentences and profiles."""

    file: str = ""
    node: str = ""
    op_type: str = ""
    path: str = ""
    """The way through subgraphs and passes, such as `fold-batch-norm`; empty at the top."""

    def __str__(self) -> str:
        return f"{self.op_type or 'op'} {self.node!r}" if self.node or self.op_type else "an op without origin"


UNKNOWN = Provenance()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One SSA value, compared by identity; the name is unique in its graph and carries no meaning."""

    name: str
    type: TensorType

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of the type."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the type."""
        return self.type.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One primitive applied to values; compared by identity."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: freeze({}))
    region: "Block | None" = None
    """What one kernel computes, of a `region` op."""
    provenance: Provenance = UNKNOWN
    blocks: "tuple[Block, ...]" = ()
    """What an op of control flow runs once, never, or many times."""

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def integer(self, key: str) -> int:
        """An integer attribute."""
        value = self.attributes.get(key)
        if isinstance(value, int):
            return value
        raise self._wrong(key, "an integer")

    def integers(self, key: str) -> tuple[int, ...]:
        """A tuple of integers."""
        value = self.attributes.get(key)
        if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
            return tuple(item for item in value if isinstance(item, int))
        raise self._wrong(key, "integers")

    def dims(self, key: str) -> tuple[Dim, ...]:
        """A tuple of dims."""
        value = self.attributes.get(key)
        if isinstance(value, tuple):
            return tuple(Dim.of(item) for item in value)
        raise self._wrong(key, "extents")

    def text(self, key: str) -> str:
        """A string attribute."""
        value = self.attributes.get(key)
        if isinstance(value, str):
            return value
        raise self._wrong(key, "a string")

    def dtype(self, key: str = "dtype") -> DType:
        """A dtype attribute."""
        value = self.attributes.get(key)
        if isinstance(value, DType):
            return value
        raise self._wrong(key, "a dtype")

    def payload(self, key: str = "value") -> Payload:
        """A payload attribute."""
        value = self.attributes.get(key)
        if isinstance(value, Payload):
            return value
        raise self._wrong(key, "a payload")

    def body(self) -> "Block":
        """The region of an op that has one."""
        if self.region is None:
            raise InternalError(f"Op {self.name} has no region; report this as a fault of Cuvil.")
        return self.region

    def _wrong(self, key: str, wanted: str) -> InternalError:
        return InternalError(f"Attribute {key} of op {self.name} is not {wanted}; report this as a fault of Cuvil.")


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Ops over block arguments: the body of a region, or what an op of control flow runs. It sees nothing else."""

    inputs: tuple[Value, ...]
    ops: tuple[Op, ...]
    outputs: tuple[Value, ...]


class Relation(Enum):
    """How the two sides of a guard must stand."""

    EQUAL = "=="
    AT_MOST = "<="


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold of the symbols for the graph to be right; checked as soon as a call knows all that it names."""

    left: Dim
    right: Dim
    relation: Relation
    provenance: Provenance = UNKNOWN

    def holds(self, values: Mapping[str, int]) -> bool:
        """True where the relation holds for these symbols; a zero denominator breaks it."""
        try:
            left, right = self.left.evaluate(values), self.right.evaluate(values)
        except ZeroDivisionError:
            return False
        return left == right if self.relation is Relation.EQUAL else left <= right

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols within."""
        return self.left.symbols | self.right.symbols

    def __str__(self) -> str:
        return f"{self.left} {self.relation.value} {self.right}"


@dataclass(frozen=True, slots=True)
class SymbolRange:
    """A symbol of the graph with the extents it may take."""

    name: str
    least: int = 1
    greatest: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A whole model: ops in topological order between named inputs and outputs."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    ops: tuple[Op, ...]
    guards: tuple[Guard, ...] = ()
    symbols: tuple[SymbolRange, ...] = ()
    """Every symbol: those of the input shapes in order of first appearance, then those that ops bind from data."""
    input_names: tuple[str, ...] = ()
    """The model's own names, one an input."""
    output_names: tuple[str, ...] = ()
    """The model's own names, one an output; one value may be an output twice."""
    input_elements: Elements = ()
    """What callers pass where that is a narrow type, one an input; empty where there is none."""
    output_elements: Elements = ()
    """What callers get where that is a narrow type, one an output; empty where there is none."""

    @property
    def inputs_as(self) -> Elements:
        """The narrow type of each input, or None."""
        return each(self.input_elements, self.inputs)

    @property
    def outputs_as(self) -> Elements:
        """The narrow type of each output, or None."""
        return each(self.output_elements, self.outputs)

    @property
    def ranges(self) -> Ranges:
        """Symbol → (least, greatest) for `Dim.bounds`."""
        return {symbol.name: (symbol.least, symbol.greatest) for symbol in self.symbols}

    @property
    def input_symbols(self) -> tuple[SymbolRange, ...]:
        """The symbols that the shapes of the inputs give."""
        return tuple(symbol for symbol in self.symbols if not is_from_data(symbol.name))

    def values(self) -> Iterator[Value]:
        """All values of the outer level, inputs first."""
        yield from self.inputs
        for op in self.ops:
            yield from op.results

    def inner(self, block: "Block") -> "Graph":
        """A block of one of the ops as a graph of its own, under the same guards and symbols."""
        inputs = tuple(value.name for value in block.inputs)
        outputs = tuple(map(str, range(len(block.outputs))))
        return Graph(block.inputs, block.outputs, block.ops, self.guards, self.symbols, inputs, outputs)

    def producers(self) -> dict[Value, Op]:
        """Value → the op that makes it; inputs are absent."""
        return {result: op for op in self.ops for result in op.results}

    def uses(self) -> dict[Value, list[Op]]:
        """Value → ops of the outer level that read it, once an operand position; blocks read through operands alone."""
        found: dict[Value, list[Op]] = {}
        for op in self.ops:
            for operand in op.operands:
                found.setdefault(operand, []).append(op)
        return found
