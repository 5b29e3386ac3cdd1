"""Element offsets: affine forms over axes and Dims, with `//`, `%` and looked-up terms where they cannot be avoided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cuvil_core.ir import Dim, DimLike

if TYPE_CHECKING:
    from cuvil_core.kernel_ir.expressions import Expr


@dataclass(frozen=True, slots=True)
class AxisAtom:
    """The value of one axis, by name."""

    axis: str


@dataclass(frozen=True, slots=True)
class Quotient:
    """Floor division of an index that is never negative by a positive Dim."""

    numerator: Index
    divisor: Dim


@dataclass(frozen=True, slots=True)
class Remainder:
    """What floor division of an index that is never negative by a positive Dim leaves."""

    numerator: Index
    divisor: Dim


@dataclass(frozen=True, slots=True)
class Indirect:
    """An integer that is itself computed, such as a loaded row number of a gather.

    The value must be within bounds for the buffer whenever it is used: whoever builds it clamps or refuses it.
    """

    value: Expr


Atom: TypeAlias = AxisAtom | Quotient | Remainder | Indirect


@dataclass(frozen=True, slots=True)
class Index:
    """`sum(coefficient · atom) + offset`, one term an atom, in order of first use; zero coefficients are dropped.

    `Index.axis("i") * 16 + Index.axis("j")` builds one; `//` and `%` take ints or Dims and simplify where they can.
    """

    terms: tuple[tuple[Atom, Dim], ...] = ()
    offset: Dim = field(default_factory=lambda: Dim.of(0))

    @staticmethod
    def axis(name: str) -> Index:
        """The index that equals an axis."""
        return Index(((AxisAtom(name), Dim.of(1)),))

    @staticmethod
    def of(value: IndexLike) -> Index:
        """An index from an axis name, an int, a Dim, or itself."""
        if isinstance(value, Index):
            return value
        if isinstance(value, str):
            return Index.axis(value)
        return Index((), Dim.of(value))

    @staticmethod
    def indirect(value: Expr) -> Index:
        """The index that a computed integer gives."""
        return Index(((Indirect(value), Dim.of(1)),))

    def __add__(self, other: IndexLike) -> Index:
        right = Index.of(other)
        return _collect((*self.terms, *right.terms), self.offset + right.offset)

    __radd__ = __add__

    def __sub__(self, other: IndexLike) -> Index:
        return self + Index.of(other) * -1

    def __mul__(self, factor: DimLike) -> Index:
        by = Dim.of(factor)
        return _collect(((atom, coefficient * by) for atom, coefficient in self.terms), self.offset * by)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: DimLike) -> Index:
        by = Dim.of(divisor)
        if by.constant == 1:
            return self
        inside, outside = _split_multiples(self, by)
        if not inside.terms and inside.offset.constant == 0:
            return outside
        if not inside.terms and inside.offset.constant is not None and by.constant is not None:
            return outside + inside.offset.constant // by.constant
        return outside + Index(((Quotient(inside, by), Dim.of(1)),))

    def __mod__(self, divisor: DimLike) -> Index:
        by = Dim.of(divisor)
        if by.constant == 1:
            return Index()
        inside, _ = _split_multiples(self, by)
        if not inside.terms and inside.offset.constant is not None and by.constant is not None:
            return Index.of(inside.offset.constant % by.constant)
        return Index(((Remainder(inside, by), Dim.of(1)),))

    @property
    def is_affine(self) -> bool:
        """True when every term is a plain axis."""
        return all(isinstance(atom, AxisAtom) for atom, _ in self.terms)

    @property
    def axes(self) -> frozenset[str]:
        """Names of the axes that the value depends on, those inside `//`, `%` and looked-up terms included."""
        return frozenset(_atom_axes(atom for atom, _ in self.terms))

    @property
    def computed(self) -> tuple[Expr, ...]:
        """The expressions of looked-up terms, those inside `//` and `%` included."""
        found: list[Expr] = []
        for atom, _ in self.terms:
            if isinstance(atom, Indirect):
                found.append(atom.value)
            elif isinstance(atom, (Quotient, Remainder)):
                found.extend(atom.numerator.computed)
        return tuple(found)

    def coefficient(self, axis: str) -> Dim | None:
        """Step of the value as the axis grows by one; None when that is not the same everywhere."""
        if any(axis in _atom_axes((atom,)) for atom, _ in self.terms if not isinstance(atom, AxisAtom)):
            return None
        return next((c for atom, c in self.terms if atom == AxisAtom(axis)), Dim.of(0))

    def shifted(self, axis: str, distance: int) -> Index:
        """The index at `axis + distance`; much cheaper than `replace` where the axis occurs only in plain terms."""
        step = self.coefficient(axis)
        if step is None:
            return self.replace(axis, Index.axis(axis) + distance)
        return Index(self.terms, self.offset + step * distance)

    def replace(self, axis: str, value: IndexLike) -> Index:
        """The same index with an axis replaced by another index; looked-up terms are left alone."""
        result = Index((), self.offset)
        for atom, coefficient in self.terms:
            result = result + _replace_in_atom(atom, axis, Index.of(value)) * coefficient
        return result


IndexLike: TypeAlias = Index | Dim | int | str


@dataclass(frozen=True, slots=True)
class Access:
    """A flat element offset into a buffer, counted in elements of the buffer."""

    buffer: str
    index: Index


@dataclass(frozen=True, slots=True)
class Within:
    """The condition `0 <= index < extent`."""

    index: Index
    extent: Dim


def _collect(terms: Iterable[tuple[Atom, Dim]], offset: Dim) -> Index:
    sums: dict[Atom, Dim] = {}
    for atom, coefficient in terms:
        sums[atom] = sums[atom] + coefficient if atom in sums else coefficient
    return Index(tuple((a, c) for a, c in sums.items() if c.constant != 0), offset)


def _split_multiples(index: Index, by: Dim) -> tuple[Index, Index]:
    """`index = inside + outside · by`, with every term that is visibly a multiple moved outside."""
    inside, outside = Index(), Index()
    for atom, coefficient in index.terms:
        part = Index(((atom, Dim.of(1)),))
        exact = coefficient.exact_div(by)
        if exact is None:
            inside = inside + part * coefficient
        else:
            outside = outside + part * exact
    exact = index.offset.exact_div(by)
    if exact is not None:
        outside = outside + exact
    else:
        lift = _lift(index.offset, by)
        inside, outside = inside + (index.offset + by * lift), outside - lift
    # What stays inside must not be negative by itself, or the target's truncating division would round it up.
    return (inside, outside) if _is_never_negative(inside) else (index, Index())


def _lift(offset: Dim, by: Dim) -> int:
    """How often a constant divisor must be added to a constant offset until it is not negative."""
    if offset.constant is None or by.constant is None or offset.constant >= 0 or by.constant <= 0:
        return 0
    return -(offset.constant // by.constant)


def _is_never_negative(index: Index) -> bool:
    """Sufficient: atoms are never negative, so coefficients and offset that are not either are enough."""
    bounds = [index.offset.least, *(coefficient.least for _, coefficient in index.terms)]
    return all(bound is not None and bound >= 0 for bound in bounds)


def _atom_axes(atoms: Iterable[Atom]) -> Iterator[str]:
    for atom in atoms:
        if isinstance(atom, AxisAtom):
            yield atom.axis
        elif isinstance(atom, Indirect):
            yield from atom.value.axes
        else:
            yield from atom.numerator.axes


def _replace_in_atom(atom: Atom, axis: str, value: Index) -> Index:
    if isinstance(atom, AxisAtom):
        return value if atom.axis == axis else Index(((atom, Dim.of(1)),))
    if isinstance(atom, Quotient):
        return atom.numerator.replace(axis, value) // atom.divisor
    if isinstance(atom, Remainder):
        return atom.numerator.replace(axis, value) % atom.divisor
    return Index(((atom, Dim.of(1)),))
