"""Dims and indices as C expressions over int64 variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuvil_core.ir import Dim, Extremum, FloorDiv, Symbol
from cuvil_core.kernel_ir import Expr, Index
from cuvil_core.kernel_ir.index import Atom, AxisAtom, Indirect, Quotient

ZERO = "INT64_C(0)"
"""The text of an axis that stands at 0: its terms are left out."""
Symbols = Mapping[str, str]
"""Symbol name → C variable."""


class NamedDims(dict[str, str]):
    """Symbols of a function that computes each of its dims once: `dim_text` answers with a variable.

    Divisions by symbols cost 20 to 40 cycles, and their text would be most of a kernel.
    """

    def __init__(self, symbols: Symbols) -> None:
        super().__init__(symbols)
        self._names: dict[Dim, str] = {}

    def name(self, dim: Dim) -> str:
        """The variable of a dim that is no constant."""
        return self._names.setdefault(dim, f"d{len(self._names)}")

    def definitions(self) -> list[str]:
        """C lines that define the variables asked for so far."""
        plain = dict(self)
        return [f"const int64_t {name} = {dim_text(dim, plain)};" for dim, name in self._names.items()]


def dim_text(dim: Dim, symbols: Symbols) -> str:
    """A C expression of type int64_t, parenthesized where needed."""
    if dim.constant is not None:
        return number_text(dim.constant)
    if isinstance(symbols, NamedDims):
        return symbols.name(dim)
    parts = []
    for monomial, coefficient in dim.terms:
        factors = [_dim_atom(atom, symbols) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.append(number_text(coefficient))
        parts.append(" * ".join(factors))
    text = " + ".join(parts)
    return text if len(parts) == 1 and text.isidentifier() else f"({text})"


def constant_part(dim: Dim) -> int:
    """The term without symbols."""
    return next((coefficient for monomial, coefficient in dim.terms if not monomial), 0)


def number_text(value: int) -> str:
    """A C integer constant of type int64_t."""
    return f"INT64_C({value})" if value >= 0 else f"(-INT64_C({-value}))"


def _dim_atom(atom: Symbol | FloorDiv | Extremum, symbols: Symbols) -> str:
    if isinstance(atom, Symbol):
        return symbols[atom.name]
    if isinstance(atom, FloorDiv):
        return f"cuvil_floor({dim_text(atom.numerator, symbols)}, {dim_text(atom.denominator, symbols)})"
    text = dim_text(atom.operands[0], symbols)
    for operand in atom.operands[1:]:
        text = f"cuvil_{atom.kind}({text}, {dim_text(operand, symbols)})"
    return text


def index_text(
    index: Index, axes: Mapping[str, str], symbols: Symbols, computed: Callable[[Expr], str] | None = None
) -> str:
    """A C expression of an index; `axes` maps axis names to C expressions, `computed` looked-up terms.

    The constant part comes last, so that neighbours share everything before it.
    """
    parts = []
    for atom, coefficient in index.terms:
        base = _index_atom(atom, axes, symbols, computed)
        if base != ZERO:
            parts.append(base if coefficient.constant == 1 else f"{base} * {dim_text(coefficient, symbols)}")
    if index.offset.constant != 0 or not parts:
        parts.append(dim_text(index.offset, symbols))
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def _index_atom(atom: Atom, axes: Mapping[str, str], symbols: Symbols, computed: Callable[[Expr], str] | None) -> str:
    if isinstance(atom, AxisAtom):
        return axes[atom.axis]
    if isinstance(atom, Indirect):
        if computed is None:
            raise KeyError("an index with a looked-up term stands where none is computed")
        return computed(atom.value)
    operator = "/" if isinstance(atom, Quotient) else "%"
    inner = index_text(atom.numerator, axes, symbols, computed)
    return f"({inner} {operator} {dim_text(atom.divisor, symbols)})"
