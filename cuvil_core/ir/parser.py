"""Text → Graph: the inverse of `printer`, by recursive descent over docs/ir.md's grammar."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from cuvil_core.errors import ModelError
from cuvil_core.ir.dims import Dim, dim_max, dim_min
from cuvil_core.ir.dtypes import DType
from cuvil_core.ir.elements import Element, Elements
from cuvil_core.ir.graph import (
    UNKNOWN,
    Attribute,
    Block,
    Graph,
    Guard,
    Op,
    Provenance,
    Relation,
    SymbolRange,
    Value,
    freeze,
)
from cuvil_core.ir.lexer import Cursor
from cuvil_core.ir.payload import Payload
from cuvil_core.ir.types import TensorType

Scope = dict[str, Value]
T = TypeVar("T")


def parse_graph(text: str, payloads: Mapping[str, Payload] | None = None) -> Graph:
    """The graph of a text; `payloads` gives what the text names by digest only.

    Raises ModelError with the line where the text is not of the grammar, uses an undefined value or a missing payload.
    """
    cursor = Cursor(text)
    graph = _readable(cursor, _GraphParser(cursor, payloads or {}).graph)
    if cursor.next.kind != "end":
        raise cursor.error("the end is expected")
    return graph


def parse_dim(text: str) -> Dim:
    """The dim of a text such as `(H + 1)//2`."""
    cursor = Cursor(text)
    dim = _readable(cursor, lambda: _dim(cursor))
    if cursor.next.kind != "end":
        raise cursor.error("the end of the extent is expected")
    return dim


def _readable(cursor: Cursor, parse: Callable[[], T]) -> T:
    """What `parse` gives; numbers, names and hex digits that Python refuses become errors with a line."""
    try:
        return parse()
    except (ValueError, RecursionError) as error:
        raise cursor.error("something well formed is expected before this") from error


class _GraphParser:
    def __init__(self, cursor: Cursor, payloads: Mapping[str, Payload]) -> None:
        self._cursor = cursor
        self._payloads = payloads

    def graph(self) -> Graph:
        cursor, scope = self._cursor, Scope()
        symbols: list[SymbolRange] = []
        inputs: list[tuple[Value, str, Element | None]] = []
        outputs: list[tuple[Value, str, Element | None]] = []
        guards: list[Guard] = []
        ops: list[Op] = []
        cursor.expect("graph")
        cursor.expect("{")
        while not cursor.skip("}"):
            if cursor.skip("symbol"):
                symbols.append(_symbol_range(cursor))
            elif cursor.skip("input"):
                name = cursor.take("value")
                label = cursor.string()
                inputs.append((self._define(scope, name, self._typed()), label, _element(cursor)))
            elif cursor.skip("guard"):
                guards.append(self._guard())
            elif cursor.skip("output"):
                outputs.append((self._use(scope), cursor.string(), _element(cursor)))
            else:
                ops.append(self._op(scope))
        return Graph(
            tuple(value for value, _, _ in inputs),
            tuple(value for value, _, _ in outputs),
            tuple(ops),
            tuple(guards),
            tuple(symbols),
            tuple(label for _, label, _ in inputs),
            tuple(label for _, label, _ in outputs),
            _elements(element for _, _, element in inputs),
            _elements(element for _, _, element in outputs),
        )

    def _typed(self) -> TensorType:
        self._cursor.expect(":")
        return self._type()

    def _type(self) -> TensorType:
        dtype = _dtype(self._cursor)
        self._cursor.expect("[")
        return TensorType(dtype, _list(self._cursor, "]"))

    def _define(self, scope: Scope, name: str, type: TensorType) -> Value:
        if name in scope:
            raise ModelError(f"IR text defines {name} twice; give every value its own name.")
        return scope.setdefault(name, Value(name[1:], type))

    def _use(self, scope: Scope) -> Value:
        error = self._cursor.error("a value defined above is expected")
        value = scope.get(self._cursor.take("value"))
        if value is None:
            raise error
        return value

    def _op(self, scope: Scope) -> Op:
        cursor = self._cursor
        names = [cursor.take("value")]
        while cursor.skip(","):
            names.append(cursor.take("value"))
        cursor.expect("=")
        name = cursor.take("name")
        operands: list[Value] = []
        while cursor.next.kind == "value":
            operands.append(self._use(scope))
            if not cursor.skip(","):
                break
        attributes = self._attributes() if cursor.skip("{") else {}
        types = [self._typed()]
        while cursor.skip(","):
            types.append(self._type())
        provenance = self._provenance()
        region = self._block() if cursor.skip("do") else None
        blocks: list[Block] = []
        while cursor.skip("block"):
            blocks.append(self._block())
        if len(types) != len(names):
            raise cursor.error(f"{len(names)} result types of {name} are expected")
        results = tuple(self._define(scope, label, type) for label, type in zip(names, types, strict=True))
        return Op(name, tuple(operands), results, freeze(attributes), region, provenance, tuple(blocks))

    def _block(self) -> Block:
        cursor, scope = self._cursor, Scope()
        inputs: list[Value] = []
        ops: list[Op] = []
        while not cursor.skip("yield"):
            if cursor.skip("input"):
                inputs.append(self._define(scope, cursor.take("value"), self._typed()))
            else:
                ops.append(self._op(scope))
        outputs = [self._use(scope)]
        while cursor.skip(","):
            outputs.append(self._use(scope))
        cursor.expect("end")
        return Block(tuple(inputs), tuple(ops), tuple(outputs))

    def _guard(self) -> Guard:
        left = _dim(self._cursor)
        relation = Relation.EQUAL if self._cursor.skip("==") else Relation.AT_MOST
        if relation is Relation.AT_MOST:
            self._cursor.expect("<=")
        return Guard(left, _dim(self._cursor), relation, self._provenance())

    def _provenance(self) -> Provenance:
        if not self._cursor.skip("@"):
            return UNKNOWN
        self._cursor.expect("(")
        fields = [self._cursor.string()]
        while self._cursor.skip(","):
            fields.append(self._cursor.string())
        self._cursor.expect(")")
        if len(fields) != 4:
            raise self._cursor.error("a file, node, op type and path are expected before this")
        return Provenance(*fields)

    def _attributes(self) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        while not self._cursor.skip("}"):
            key = self._cursor.take("name")
            self._cursor.expect("=")
            found[key] = self._attribute()
            if not self._cursor.peek("}"):
                self._cursor.expect(",")
        return found

    def _attribute(self) -> Attribute:
        cursor = self._cursor
        if cursor.next.kind == "string":
            return cursor.string()
        if cursor.next.kind == "float":
            return float(cursor.take("float"))
        if cursor.skip("<"):
            return _list(cursor, ">")
        if cursor.skip("["):
            return tuple(_constant(dim, cursor) for dim in _list(cursor, "]"))
        if cursor.peek("true") or cursor.peek("false"):
            return cursor.take("name") == "true"
        if cursor.skip("payload"):
            return self._payload()
        return cursor.integer() if cursor.next.kind == "number" or cursor.peek("-") else _dtype(cursor)

    def _payload(self) -> Payload:
        cursor = self._cursor
        cursor.expect("(")
        dtype = _dtype(cursor)
        cursor.expect(",")
        shape = _extents(cursor)
        cursor.expect(",")
        if cursor.next.kind == "digest":
            payload = self._named_payload(dtype, shape, cursor.take("digest"))
        else:
            cursor.expect("[")
            payload = Payload.of(dtype, shape, _numbers(cursor))
        cursor.expect(")")
        return payload

    def _named_payload(self, dtype: DType, shape: tuple[int, ...], name: str) -> Payload:
        if name.startswith("hex:"):
            return Payload(dtype, shape, bytes.fromhex(name.removeprefix("hex:")))
        payload = self._payloads.get(name.removeprefix("sha256:"))
        if payload is None or (payload.dtype, payload.shape) != (dtype, shape):
            raise ModelError(f"IR text names the payload {name[:19]}…, which the payload table lacks; pass its table.")
        return payload


def _symbol_range(cursor: Cursor) -> SymbolRange:
    name = cursor.take("name")
    cursor.expect("in")
    least = cursor.integer()
    cursor.expect("..")
    return SymbolRange(name, least, cursor.integer() if cursor.next.kind == "number" else None)


def _dtype(cursor: Cursor) -> DType:
    error = cursor.error("a dtype is expected")
    try:
        return DType(cursor.take("name"))
    except ValueError:
        raise error from None


def _element(cursor: Cursor) -> Element | None:
    """`as int4` behind a port."""
    if not cursor.skip("as"):
        return None
    error = cursor.error("a narrow element type is expected")
    try:
        return Element(cursor.take("name"))
    except ValueError:
        raise error from None


def _elements(found: Iterable[Element | None]) -> Elements:
    elements = tuple(found)
    return elements if any(elements) else ()


def _extents(cursor: Cursor) -> tuple[int, ...]:
    if cursor.skip("scalar"):
        return ()
    text = cursor.take("extents") if cursor.next.kind == "extents" else cursor.take("number")
    return tuple(int(extent) for extent in text.split("x"))


def _numbers(cursor: Cursor) -> list[float]:
    found: list[float] = []
    while not cursor.skip("]"):
        if cursor.next.kind == "float":
            found.append(float(cursor.take("float")))
        elif cursor.next.kind == "name":
            found.append(cursor.take("name") == "true")
        else:
            found.append(cursor.integer())
        if not cursor.peek("]"):
            cursor.expect(",")
    return found


def _list(cursor: Cursor, end: str) -> tuple[Dim, ...]:
    found: list[Dim] = []
    while not cursor.skip(end):
        found.append(_dim(cursor))
        if not cursor.peek(end):
            cursor.expect(",")
    return tuple(found)


def _constant(dim: Dim, cursor: Cursor) -> int:
    if dim.constant is None:
        raise cursor.error("only numbers are expected within [ ]")
    return dim.constant


def _dim(cursor: Cursor) -> Dim:
    total = -_product(cursor) if cursor.skip("-") else _product(cursor)
    while cursor.peek("+") or cursor.peek("-"):
        sign = 1 if cursor.skip("+") else -1
        if sign < 0:
            cursor.expect("-")
        total = total + sign * _product(cursor)
    return total


def _product(cursor: Cursor) -> Dim:
    total = _factor(cursor)
    while cursor.peek("*") or cursor.peek("//"):
        if cursor.skip("*"):
            total = total * _factor(cursor)
            continue
        cursor.expect("//")
        error = cursor.error("a divisor other than zero is expected")
        try:
            total = total // _factor(cursor)
        except ZeroDivisionError:
            raise error from None
    return total


def _factor(cursor: Cursor) -> Dim:
    if cursor.skip("("):
        dim = _dim(cursor)
        cursor.expect(")")
        return dim
    if cursor.next.kind == "number":
        return Dim.of(int(cursor.take("number")))
    name = cursor.take("name")
    if name not in ("max", "min") or not cursor.skip("("):
        return Dim.symbol(name)
    operands = _list(cursor, ")")
    if not operands:
        raise cursor.error(f"{name} of at least one extent is expected before this")
    return dim_max(*operands) if name == "max" else dim_min(*operands)
