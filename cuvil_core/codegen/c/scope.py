"""A block of C under construction: its variables, and what it knows already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from cuvil_core.codegen.c.dims import Symbols, constant_part, index_text
from cuvil_core.codegen.c.types import pointer
from cuvil_core.ir import Dim, DType
from cuvil_core.kernel_ir import Accumulator, Expr, Index
from cuvil_core.kernel_ir.analysis import simplify


@dataclass(slots=True)
class Value:
    """A C variable or simple expression that holds a vector."""

    text: str
    dtype: DType
    mask: int = 0
    """For bools: bits a lane of the mask."""


@dataclass(slots=True)
class Scope:
    """What surrounds an expression: variables, lanes, and the lines written so far.

    One Scope is one C block: values computed in it are remembered and used again.
    """

    lanes: int
    vector: str | None
    """The axis along the lanes."""
    axes: dict[str, str]
    """Axis → C expression of its value at lane 0 of point 0."""
    symbols: Symbols
    extents: dict[str, Dim]
    shift: dict[str, int] = field(default_factory=dict)
    """Axis → constant distance of the point from the axis's variable."""
    partial: str | None = None
    """C expression of how many lanes are valid, None for all."""
    accumulators: tuple[Value, ...] = ()
    lines: list[str] = field(default_factory=list)
    known: dict[object, Value] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)
    on_accumulator: dict[Expr, bool] = field(default_factory=dict)

    def at(self, shift: dict[str, int], accumulators: tuple[Value, ...] = ()) -> Scope:
        """The same block at another point of the register tile."""
        return replace(self, shift=shift, accumulators=accumulators or self.accumulators)

    def name(self) -> str:
        """A fresh C identifier of this block."""
        return f"v{next(self.names)}"

    def define(self, ctype: str, text: str) -> str:
        """Writes a constant definition; gives its name."""
        name = self.name()
        self.lines.append(f"{ctype} const {name} = {text};")
        return name

    def define_mask(self, text: str, bits: int) -> Value:
        """Writes the definition of a bool; comparing bytes gives plain char, not int8_t, hence the cast."""
        kind = f"i{bits}x{self.lanes}"
        return Value(self.define(kind, f"({kind})({text})"), DType.BOOL, bits)

    def key(self, expr: Expr) -> object:
        """What tells the expression's value at this point from its others in this block."""
        point = tuple((a, d) for a, d in sorted(self.shift.items()) if d and a in expr.axes)
        return expr, point, self.accumulators[0].text if self._uses_accumulator(expr) else ""

    def _uses_accumulator(self, expr: Expr) -> bool:
        """True where the value is each register's own, so that points of a tile must not share it."""
        if expr not in self.on_accumulator:
            self.on_accumulator[expr] = any(
                isinstance(operand, Accumulator) or self._uses_accumulator(operand) for operand in expr.operands
            )
        return self.on_accumulator[expr]

    def place(self, index: Index) -> Index:
        """The index at the present point, simplified."""
        for axis, distance in self.shift.items():
            if distance:
                index = index.shifted(axis, distance)
        return simplify(index, self.extents) if not index.is_affine else index

    def element(self, buffer: str, index: Index) -> str:
        """C text of an element at a placed index; elements at constant distances share one pointer of the block."""
        distance = constant_part(index.offset)
        base = Index(index.terms, index.offset - distance)
        if not base.terms and base.offset == 0:
            return f"{pointer(buffer)}[{distance}]"
        key = ("pointer", buffer, base)
        if key not in self.known:
            text = f"{pointer(buffer)} + {self.offset(base)}"
            self.known[key] = Value(self.define("__auto_type", text), DType.INT64)
        return f"{self.known[key].text}[{distance}]"

    def offset(self, index: Index, lane: str | None = None) -> str:
        """C text of a placed index, its looked-up terms known already; `lane` is added to the vector axis."""
        axes = self.axes
        if lane is not None and self.vector is not None:
            axes = {**axes, self.vector: f"({axes[self.vector]} + {lane})"}

        def looked_up(expr: Expr) -> str:
            value = self.known[self.key(expr)]
            across = lane is not None and self.vector is not None and self.vector in expr.axes
            return f"(int64_t){value.text}[{lane if across else 0}]"

        return index_text(index, axes, self.symbols, looked_up)
