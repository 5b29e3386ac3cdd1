"""Makes graphs op by op, with the result types of the op table."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from cuvil_core.errors import InternalError
from cuvil_core.ir.dims import Dim, DimLike, is_from_data
from cuvil_core.ir.dtypes import DType
from cuvil_core.ir.elements import Element, Elements
from cuvil_core.ir.equalities import Equalities
from cuvil_core.ir.graph import UNKNOWN, Attribute, Block, Graph, Guard, Op, Provenance, Relation, SymbolRange, Value
from cuvil_core.ir.graph import freeze as _freeze
from cuvil_core.ir.payload import Payload
from cuvil_core.ir.types import Rules, TensorType


class GraphBuilder:
    """Collects inputs, ops and guards; `finish` gives the frozen graph.

    Values get the names `0`, `1`, … in order of creation. Guards that always hold are dropped, and a repeated one is
    kept once.
    """

    def __init__(self, rules: Rules, equalities: Equalities | None = None) -> None:
        """With `equalities` every extent of attributes and results gets the spelling that these allow."""
        self._rules = rules
        self._equalities = equalities or Equalities(())
        self._inputs: list[Value] = []
        self._input_names: list[str] = []
        self._input_elements: list[Element | None] = []
        self._ops: list[Op] = []
        self._guards: dict[tuple[object, ...], Guard] = {}
        self._symbols: dict[str, SymbolRange] = {}
        self._count = 0
        self._constants: dict[str, Value] = {}

    @property
    def ops(self) -> tuple[Op, ...]:
        """The ops so far."""
        return tuple(self._ops)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards so far."""
        return tuple(self._guards.values())

    def value(self, type: TensorType) -> Value:
        """A fresh value that no op makes yet."""
        self._count += 1
        return Value(str(self._count - 1), type)

    def symbol(self, name: str, least: int = 1, greatest: int | None = None) -> None:
        """Declare a symbol and its range."""
        self._symbols[name] = SymbolRange(name, least, greatest)

    def input(self, name: str, type: TensorType, element: Element | None = None) -> Value:
        """A graph input, which callers pass as `element` where that is given.

        Its symbols are declared with the open range unless they were before.
        """
        for symbol in (s for extent in type.shape for s in sorted(extent.symbols)):
            self._symbols.setdefault(symbol, SymbolRange(symbol))
        value = self.value(type)
        self._inputs.append(value)
        self._input_names.append(name)
        self._input_elements.append(element)
        return value

    def emit(
        self,
        name: str,
        operands: Sequence[Value] = (),
        attributes: Mapping[str, Attribute] | None = None,
        provenance: Provenance = UNKNOWN,
    ) -> Value:
        """Append an op with one result and return that."""
        (result,) = self.emit_all(name, operands, attributes, None, provenance)
        return result

    def emit_all(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Attribute] | None = None,
        region: Block | None = None,
        provenance: Provenance = UNKNOWN,
        blocks: tuple[Block, ...] = (),
    ) -> tuple[Value, ...]:
        """Append an op and return its results; ModelError where the op table refuses it."""
        spelled = name != "bind"
        given = (attributes or {}).items()
        frozen = _freeze({key: self._spelled(value) if spelled else value for key, value in given})
        types = self._rules.infer(name, tuple(operand.type for operand in operands), frozen, region, blocks)
        results = tuple(self.value(self.spell(type)) for type in types)
        self._ops.append(Op(name, tuple(operands), results, frozen, region, provenance, blocks))
        return results

    def bind(self, extent: Value, provenance: Provenance = UNKNOWN, wanted: str = "") -> Dim:
        """A fresh symbol, named like the wanted one, for the extent that one int64 of the data is at run time."""
        base = f"_{wanted}_" if wanted else "_"
        symbol = next(f"{base}{number}" for number in count(1) if f"{base}{number}" not in self._symbols)
        self.symbol(symbol, 0)
        self.emit("bind", (extent,), {"symbol": (Dim.symbol(symbol),)}, provenance)
        return Dim.symbol(symbol)

    def spell(self, type: TensorType) -> TensorType:
        """The type with the spelling of extents that the equalities allow."""
        return TensorType(type.dtype, tuple(map(self._equalities.canonical, type.shape)))

    def _spelled(self, value: Attribute) -> Attribute:
        if not isinstance(value, tuple) or not value or not isinstance(value[0], Dim):
            return value
        return tuple(self._equalities.canonical(item) for item in value if isinstance(item, Dim))

    def mark(self) -> tuple[int, int, int, int]:
        """The state to which `back_to` returns."""
        return len(self._ops), len(self._guards), len(self._constants), len(self._symbols)

    def back_to(self, mark: tuple[int, int, int, int]) -> None:
        """Take back all ops, guards, constants and symbols since the mark; they must not be used any more."""
        ops, *counts = mark
        del self._ops[ops:]
        tables: tuple[dict[Any, Any], ...] = (self._guards, self._constants, self._symbols)
        for kept, held in zip(counts, tables, strict=True):
            while len(held) > kept:
                held.popitem()

    def append(self, op: Op) -> None:
        """Append an op as it is; its results keep their identity, so its names must not clash at `finish`."""
        self._ops.append(op)

    def constant(self, payload: Payload, provenance: Provenance = UNKNOWN) -> Value:
        """The constant op of a payload; an equal payload is emitted once."""
        known = self._constants.get(payload.digest)
        if known is None:
            known = self.emit("constant", (), {"value": payload}, provenance)
            self._constants[payload.digest] = known
        return known

    def scalar(self, dtype: DType, value: float | int | bool, provenance: Provenance = UNKNOWN) -> Value:
        """A rank-0 constant."""
        return self.constant(Payload.scalar(dtype, value), provenance)

    def guard(
        self, left: DimLike, right: DimLike, relation: Relation = Relation.EQUAL, provenance: Provenance = UNKNOWN
    ) -> None:
        """Record what must hold of the symbols; what always holds is dropped."""
        from_dims = Guard(Dim.of(left), Dim.of(right), relation, provenance)
        least = (from_dims.right - from_dims.left).least
        if from_dims.left == from_dims.right or (relation is Relation.AT_MOST and least is not None and least >= 0):
            return
        self._guards.setdefault((from_dims.left, from_dims.right, relation), from_dims)

    def inner(self) -> "GraphBuilder":
        """A builder for a block: values of its own, while guards and symbols are those of the whole graph."""
        builder = GraphBuilder(self._rules, self._equalities)
        builder._guards, builder._symbols = self._guards, self._symbols
        return builder

    def finish_block(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Block:
        """What has been built as a block over these arguments."""
        return Block(tuple(inputs), tuple(self._ops), tuple(outputs))

    def finish(self, outputs: Sequence[Value], names: Sequence[str] | None = None, elements: Elements = ()) -> Graph:
        """The graph; names default to the outputs' own."""
        labels = tuple(names) if names is not None else tuple(value.name for value in outputs)
        if len(labels) != len(outputs):
            raise InternalError("Outputs and their names differ in number; report this as a fault of Cuvil.")
        return Graph(
            tuple(self._inputs),
            tuple(outputs),
            tuple(self._ops),
            tuple(self._guards.values()),
            tuple(sorted(self._symbols.values(), key=lambda one: is_from_data(one.name))),
            tuple(self._input_names),
            labels,
            tuple(self._input_elements) if any(self._input_elements) else (),
            elements if any(elements) else (),
        )
