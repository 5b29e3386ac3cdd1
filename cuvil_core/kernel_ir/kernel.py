"""Statements over axes, and the kernel that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from cuvil_core.ir import Dim, DimLike, DType
from cuvil_core.kernel_ir.expressions import Expr, Load
from cuvil_core.kernel_ir.index import Access, Index, Quotient, Remainder, Within


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop variable that runs over 0 … extent-1; names are unique within a kernel."""

    name: str
    extent: Dim

    @staticmethod
    def of(name: str, extent: DimLike) -> Axis:
        """An axis with an extent given as int or Dim."""
        return Axis(name, Dim.of(extent))


class Use(Enum):
    """What a kernel does with a buffer."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    """Reads and writes."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer parameter: `extent` elements of `dtype`, aligned to 64 bytes unless it is a caller's tensor."""

    name: str
    dtype: DType
    extent: Dim
    use: Use

    @staticmethod
    def of(name: str, dtype: DType, extent: DimLike, use: Use = Use.READ) -> Buffer:
        """A buffer with an extent given as int or Dim."""
        return Buffer(name, dtype, Dim.of(extent), use)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A private array of each turn of the outer axes, on the stack; at most MAX_SCRATCH bytes in a kernel."""

    name: str
    dtype: DType
    extent: int


MAX_SCRATCH = 64 << 10
"""Bytes of scratch a kernel may hold: workers run on stacks of a few hundred KiB."""


@dataclass(frozen=True, slots=True)
class Store:
    """`buffer[index] = value`, only where all conditions hold."""

    access: Access
    value: Expr
    within: tuple[Within, ...] = ()


@dataclass(frozen=True, slots=True)
class Map:
    """At each point of the axes: compute every value, then do the stores. Points are independent, in any order."""

    axes: tuple[Axis, ...]
    stores: tuple[Store, ...]

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        """None."""
        return ()

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The expressions evaluated."""
        return tuple(store.value for store in self.stores)


class Combine(Enum):
    """How a Fold joins elements. Order is free: sums and products may differ in the last bits between schedules."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    """max and min give NaN when any element is NaN."""
    ALL = "all"
    ANY = "any"
    ARG_MAX_FIRST = "arg_max_first"
    ARG_MAX_LAST = "arg_max_last"
    ARG_MIN_FIRST = "arg_min_first"
    ARG_MIN_LAST = "arg_min_last"
    """Position (int64) along the only reduce axis of the extreme element; a NaN is the most extreme, as in NumPy."""

    @property
    def is_arg(self) -> bool:
        """True where the result is a position."""
        return self.value.startswith("arg")


@dataclass(frozen=True, slots=True)
class Reducer:
    """One accumulator of a Fold: it starts at the identity of `combine` and takes the element at each point."""

    combine: Combine
    element: Expr

    @property
    def dtype(self) -> DType:
        """int64 for positions, else the element's."""
        return DType.INT64 if self.combine.is_arg else self.element.dtype


@dataclass(frozen=True, slots=True)
class Fold:
    """At each point of the axes: fold each reducer over the reduce axes, then do the stores.

    Stores may use `Accumulator(dtype, position)`, reducer by reducer.
    """

    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    reducers: tuple[Reducer, ...]
    stores: tuple[Store, ...]

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The expressions evaluated."""
        return tuple(r.element for r in self.reducers) + tuple(store.value for store in self.stores)


@dataclass(frozen=True, slots=True)
class Contraction:
    """At each point of the axes: the sum of left · right over the reduce axes by FMA, then the stores (the epilogue).

    Stores may use `Accumulator(dtype)`. `left` and `right` are of the accumulator's dtype (cast first).
    """

    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    left: Expr
    right: Expr
    stores: tuple[Store, ...]

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The expressions evaluated."""
        return (self.left, self.right, *(store.value for store in self.stores))


Statement: TypeAlias = Map | Fold | Contraction


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch: at each point of the outer axes, the statements in turn.

    With no outer axes there is one statement. Buffers are passed in this order; no two may overlap unless the kernel
    allows it (see `analysis.may_share`). `name` is a C identifier, unique in its program.
    """

    name: str
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    outer: tuple[Axis, ...] = ()
    scratch: tuple[Scratch, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that the kernel takes, sorted: all those in extents, coefficients and offsets."""
        found: set[str] = set()
        for buffer in self.buffers:
            found |= buffer.extent.symbols
        for axis in (*self.outer, *(a for s in self.body for a in (*s.axes, *s.reduce_axes))):
            found |= axis.extent.symbols
        for statement in self.body:
            for index in indices(statement):
                found |= _index_symbols(index)
            for condition in conditions(statement):
                found |= condition.extent.symbols
        return tuple(sorted(found))


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every expression reachable from the roots once, operands before users."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            yield expr
        elif id(expr) not in seen:
            seen.add(id(expr))
            stack.append((expr, True))
            stack.extend((operand, False) for operand in reversed(expr.operands))


def statement_expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression of a statement once, those inside store indices included."""
    in_stores = [
        value
        for store in statement.stores
        for index in (store.access.index, *(w.index for w in store.within))
        for value in index.computed
    ]
    yield from walk(*statement.roots, *in_stores)


def loads(statement: Statement) -> Iterator[Load]:
    """Every Load of a statement once."""
    yield from (expr for expr in statement_expressions(statement) if isinstance(expr, Load))


def conditions(statement: Statement) -> Iterator[Within]:
    """Every condition of loads and stores."""
    for load in loads(statement):
        yield from load.within
    for store in statement.stores:
        yield from store.within


def indices(statement: Statement) -> Iterator[Index]:
    """Every index of loads, stores, conditions and positions."""
    for expr in statement_expressions(statement):
        if isinstance(expr, Load):
            yield expr.access.index
        elif hasattr(expr, "index"):
            yield expr.index
    for store in statement.stores:
        yield store.access.index
    for condition in conditions(statement):
        yield condition.index


def _index_symbols(index: Index) -> frozenset[str]:
    found = index.offset.symbols
    for atom, coefficient in index.terms:
        found |= coefficient.symbols
        if isinstance(atom, (Quotient, Remainder)):
            found |= _index_symbols(atom.numerator) | atom.divisor.symbols
    return found
