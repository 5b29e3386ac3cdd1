"""Extents as integer polynomials over the symbols of a model's inputs.

    Dim      = sum of coefficient * atom * atom * ...       (terms sorted, no zero coefficient)
    Atom     = Symbol | FloorDiv(Dim, Dim) | Extremum(max or min, Dims)

Every operation returns the canonical form, so equal text means equal value and `==` is structural. Two different forms
may still be equal for all symbols; whoever needs that equality records a `Guard`. Extents of inputs are >= 1: the
simplifications of max, min and floor division rely on it, and ranges with a lower end below 1 are refused elsewhere.
A name that begins with an underscore is an extent that a call computes from its data (decision 0032); it is >= 0.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

from cuvil_core.errors import SizeError
from cuvil_core.ir.bounds import extremum_bounds, quotient_bounds

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_TERMS = 128
"""A dim with more terms comes from a broken or hostile model; without a cap products could grow without bound."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named extent: of a graph input, at least 1; or from data, at least 0, where the name begins with `_`."""

    name: str


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """numerator // denominator, rounded down; not exact, or it would have been simplified away."""

    numerator: "Dim"
    denominator: "Dim"


@dataclass(frozen=True, slots=True)
class Extremum:
    """The greatest or least of two or more dims."""

    kind: Literal["max", "min"]
    operands: tuple["Dim", ...]


Atom: TypeAlias = Symbol | FloorDiv | Extremum
Monomial: TypeAlias = tuple[Atom, ...]
"""A product of atoms, sorted, with repetition; the empty product is 1."""
DimLike: TypeAlias = "Dim | int"
Ranges: TypeAlias = Mapping[str, tuple[int, int | None]]
"""Symbol → (least, greatest or None)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dim:
    """An integer polynomial; make one with `Dim.of`, `Dim.symbol` and arithmetic, never from terms by hand."""

    terms: tuple[tuple[Monomial, int], ...]
    """(atoms, coefficient), by falling degree, then by text; the constant comes last."""
    _text: str = field(default="", init=False)
    """The text once it has been asked for: comparing and hashing dims is most of what verifying costs."""

    @staticmethod
    def of(value: DimLike) -> "Dim":
        """The dim of an int, or the dim itself."""
        if isinstance(value, Dim):
            return value
        return Dim((((), int(value)),)) if value else _ZERO

    @staticmethod
    def symbol(name: str) -> "Dim":
        """The dim that is the symbol `name`; ValueError for a name that its text could not be parsed back to."""
        if not _NAME.fullmatch(name) or name in ("max", "min"):
            raise ValueError(f"{name!r} is no name of a symbol; take letters, digits and underscores.")
        return _of_atom(Symbol(name))

    @property
    def constant(self) -> int | None:
        """The value when no symbol is left, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols within."""
        return frozenset(name for monomial, _ in self.terms for atom in monomial for name in _atom_symbols(atom))

    @property
    def least(self) -> int | None:
        """A lower bound for all values of the symbols, or None when none is known."""
        return self.bounds()[0]

    def bounds(self, ranges: Ranges | None = None) -> tuple[int | None, int | None]:
        """(lower, upper) bound by interval arithmetic; symbols without a range have no upper end."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in self.terms:
            least, greatest = _monomial_bounds(monomial, ranges or {})
            if coefficient < 0:
                least, greatest = greatest, least
            low = None if low is None or least is None else low + coefficient * least
            high = None if high is None or greatest is None else high + coefficient * greatest
        return low, high

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The number for given symbols; KeyError when one is missing, ZeroDivisionError for a zero denominator."""
        return sum(
            coefficient * math.prod(_evaluate_atom(atom, values) for atom in monomial)
            for monomial, coefficient in self.terms
        )

    def substitute(self, values: "Mapping[str, DimLike]") -> "Dim":
        """The dim with symbols replaced, simplified again."""
        if not self.symbols & values.keys():
            return self
        total = _ZERO
        for monomial, coefficient in self.terms:
            term = Dim.of(coefficient)
            for atom in monomial:
                term = term * _substitute_atom(atom, values)
            total = total + term
        return total

    def exact_div(self, other: DimLike) -> "Dim | None":
        """The polynomial q with q * other == self, or None when there is none."""
        divisor = Dim.of(other)
        if not divisor.terms:
            return None
        quotient, rest = _ZERO, self
        for _ in range(MAX_TERMS):
            if not rest.terms:
                return quotient
            step = _divide_term(rest.terms[0], divisor.terms[0])
            if step is None:
                return None
            quotient, rest = quotient + step, rest - step * divisor
        return None

    def ceil_div(self, other: int) -> "Dim":
        """self / other rounded up; other > 0."""
        return (self + (other - 1)) // other

    def __add__(self, other: DimLike) -> "Dim":
        return _of_terms([*self.terms, *Dim.of(other).terms])

    def __neg__(self) -> "Dim":
        return Dim(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: DimLike) -> "Dim":
        return self + -Dim.of(other)

    def __mul__(self, other: DimLike) -> "Dim":
        factor = Dim.of(other)
        return _of_terms((_times(a, b), x * y) for a, x in self.terms for b, y in factor.terms)

    def __floordiv__(self, other: DimLike) -> "Dim":
        return _floor_div(self, Dim.of(other))

    def __radd__(self, other: int) -> "Dim":
        return self + other

    def __rsub__(self, other: int) -> "Dim":
        return Dim.of(other) - self

    def __rmul__(self, other: int) -> "Dim":
        return self * other

    def __rfloordiv__(self, other: int) -> "Dim":
        return Dim.of(other) // self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            return self.terms is other.terms or str(self) == str(other)
        return isinstance(other, int) and self.constant == other

    def __hash__(self) -> int:
        constant = self.constant
        return hash(str(self)) if constant is None else hash(constant)

    def __str__(self) -> str:
        if not self._text:
            object.__setattr__(self, "_text", _text(self))
        return self._text

    def __repr__(self) -> str:
        return f"Dim({self})"


_ZERO = Dim(())


def is_from_data(name: str) -> bool:
    """True for the name of an extent that a call computes from its data."""
    return name.startswith("_")


def dim_max(*operands: DimLike) -> Dim:
    """The greatest of the dims, simplified where symbols >= 1 decide."""
    return _extremum("max", operands)


def dim_min(*operands: DimLike) -> Dim:
    """The least of the dims, simplified where symbols >= 1 decide."""
    return _extremum("min", operands)


def product(dims: Iterable[DimLike]) -> Dim:
    """The product of the dims, 1 for none: the number of elements of a shape."""
    total = Dim.of(1)
    for dim in dims:
        total = total * dim
    return total


def _of_atom(atom: Atom) -> Dim:
    return Dim((((atom,), 1),))


def _of_terms(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        sums[monomial] = sums.get(monomial, 0) + coefficient
    kept = [(monomial, coefficient) for monomial, coefficient in sums.items() if coefficient]
    if len(kept) > MAX_TERMS:
        raise SizeError(f"A symbolic extent has {len(kept)} terms, more than {MAX_TERMS}; give the input fixed shapes.")
    return Dim(tuple(sorted(kept, key=lambda term: (-len(term[0]), [_atom_text(atom) for atom in term[0]]))))


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    return tuple(sorted((*a, *b), key=_atom_text))


def _divide_term(a: tuple[Monomial, int], b: tuple[Monomial, int]) -> Dim | None:
    if a[1] % b[1]:
        return None
    rest = list(a[0])
    for atom in b[0]:
        if atom not in rest:
            return None
        rest.remove(atom)
    return Dim(((tuple(rest), a[1] // b[1]),))


def _floor_div(numerator: Dim, denominator: Dim) -> Dim:
    by = denominator.constant
    if by == 0:
        raise ZeroDivisionError("an extent is divided by zero")
    if by is not None:
        return _floor_div_constant(numerator, by) if by > 0 else _floor_div_constant(-numerator, -by)
    exact = numerator.exact_div(denominator)
    if exact is not None:
        return exact
    if denominator.bounds()[0] is not None and not numerator.terms:
        return _ZERO
    return _of_atom(FloorDiv(numerator, denominator))


def _floor_div_constant(numerator: Dim, by: int) -> Dim:
    """(k*a + b)//k = a + b//k; (g*a + c)//(g*k) = (a + c//g)//k; (n//a + c)//k = (n + a*c)//(a*k)."""
    whole = _of_terms((monomial, c // by) for monomial, c in numerator.terms if c % by == 0 or not monomial)
    rest = [(monomial, c % by if not monomial else c) for monomial, c in numerator.terms if c % by]
    symbolic = [c for monomial, c in rest if monomial]
    if not symbolic:
        return whole
    common = math.gcd(by, *symbolic)
    left, by = _of_terms((monomial, c // common) for monomial, c in rest), by // common
    if by == 1:
        return whole + left
    inner = _single_floor_div(left)
    if inner is not None:
        atom, offset, base = inner
        return whole + _floor_div_constant(atom.numerator + base * offset, base * by)
    if _within(left, by):
        return whole
    return whole + _of_atom(FloorDiv(left, Dim.of(by)))


def _within(rest: Dim, by: int) -> bool:
    """True where 0 <= rest < by for all symbols, so that the quotient is 0."""
    low, high = rest.bounds()
    return low is not None and high is not None and low >= 0 and high < by


def _single_floor_div(dim: Dim) -> tuple[FloorDiv, int, int] | None:
    """(atom, c, base) when dim is n//base + c with a constant base, else None."""
    (monomial, coefficient), *others = dim.terms
    if coefficient != 1 or len(monomial) != 1 or not isinstance(monomial[0], FloorDiv):
        return None
    base = monomial[0].denominator.constant
    if base is None or any(atoms for atoms, _ in others):
        return None
    return monomial[0], sum(c for _, c in others), base


def _extremum(kind: Literal["max", "min"], operands: Iterable[DimLike]) -> Dim:
    flat: list[Dim] = []
    for operand in map(Dim.of, operands):
        atom = operand.terms[0][0][0] if len(operand.terms) == 1 and len(operand.terms[0][0]) == 1 else None
        nested = isinstance(atom, Extremum) and atom.kind == kind and operand.terms[0][1] == 1
        flat.extend(atom.operands if nested and isinstance(atom, Extremum) else (operand,))
    distinct = sorted(set(flat), key=str)
    kept = [dim for dim in distinct if not any(_decides(kind, other, dim) for other in distinct if other != dim)]
    if len(kept) <= 1:
        return kept[0] if kept else distinct[0]
    return _of_atom(Extremum(kind, tuple(kept)))


def _decides(kind: str, winner: Dim, loser: Dim) -> bool:
    least = (winner - loser if kind == "max" else loser - winner).least
    return least is not None and least >= 0


def _atom_symbols(atom: Atom) -> frozenset[str]:
    if isinstance(atom, Symbol):
        return frozenset((atom.name,))
    parts = (atom.numerator, atom.denominator) if isinstance(atom, FloorDiv) else atom.operands
    return frozenset().union(*(part.symbols for part in parts))


def _evaluate_atom(atom: Atom, values: Mapping[str, int]) -> int:
    if isinstance(atom, Symbol):
        return values[atom.name]
    if isinstance(atom, FloorDiv):
        return atom.numerator.evaluate(values) // atom.denominator.evaluate(values)
    choose = max if atom.kind == "max" else min
    return choose(operand.evaluate(values) for operand in atom.operands)


def _substitute_atom(atom: Atom, values: Mapping[str, DimLike]) -> Dim:
    if isinstance(atom, Symbol):
        return Dim.of(values.get(atom.name, _of_atom(atom)))
    if isinstance(atom, FloorDiv):
        return atom.numerator.substitute(values) // atom.denominator.substitute(values)
    return _extremum(atom.kind, [operand.substitute(values) for operand in atom.operands])


def _monomial_bounds(monomial: Monomial, ranges: Ranges) -> tuple[int | None, int | None]:
    low, high = 1, 1
    unbounded = False
    for atom in monomial:
        least, greatest = _atom_bounds(atom, ranges)
        if least is None or least < 0:
            return (least, greatest) if len(monomial) == 1 else (None, None)
        low *= least
        unbounded = unbounded or greatest is None
        high *= greatest or 0
    return low, None if unbounded else high


def _atom_bounds(atom: Atom, ranges: Ranges) -> tuple[int | None, int | None]:
    if isinstance(atom, Symbol):
        return ranges.get(atom.name, (0 if is_from_data(atom.name) else 1, None))
    if isinstance(atom, FloorDiv):
        return quotient_bounds(atom.numerator.bounds(ranges), atom.denominator.bounds(ranges))
    return extremum_bounds(atom.kind, [operand.bounds(ranges) for operand in atom.operands])


@lru_cache(maxsize=1 << 14)
def _atom_text(atom: Atom) -> str:
    if isinstance(atom, Symbol):
        return atom.name
    if isinstance(atom, FloorDiv):
        return f"({_grouped(atom.numerator)}//{_grouped(atom.denominator)})"
    return f"{atom.kind}({', '.join(map(str, atom.operands))})"


def _grouped(dim: Dim) -> str:
    text = str(dim)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _text(dim: Dim) -> str:
    parts: list[str] = []
    for monomial, coefficient in dim.terms:
        factors = [_atom_text(atom) for atom in monomial]
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], FloorDiv):
            factors = [factors[0][1:-1]]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = ("-" if coefficient < 0 else "") if not parts else (" - " if coefficient < 0 else " + ")
        parts.append(sign + "*".join(factors))
    return "".join(parts) or "0"
