"""What can be proved about a kernel: ranges of indices, and which buffers may be one."""

from __future__ import annotations

from collections.abc import Mapping

from cuvil_core.ir import Dim
from cuvil_core.kernel_ir.expressions import Expr, Load
from cuvil_core.kernel_ir.index import Atom, AxisAtom, Index, Quotient, Remainder
from cuvil_core.kernel_ir.kernel import Contraction, Fold, Kernel, Map, Statement, Use, loads, walk

Extents = Mapping[str, Dim]
"""Axis name → extent."""


def extents_of(kernel: Kernel) -> dict[str, Dim]:
    """The extent of every axis of a kernel."""
    axes = [*kernel.outer, *(axis for s in kernel.body for axis in (*s.axes, *s.reduce_axes))]
    return {axis.name: axis.extent for axis in axes}


def is_never_negative(dim: Dim) -> bool:
    """True where the dim is provably >= 0 for all symbols >= 1."""
    least = dim.least
    return least is not None and least >= 0


def index_range(index: Index, extents: Extents) -> tuple[Dim | None, Dim | None]:
    """(least, greatest) value over all points of the axes, as Dims; None where unknown."""
    low: Dim | None = index.offset
    high: Dim | None = index.offset
    for atom, coefficient in index.terms:
        least, greatest = _atom_range(atom, extents)
        if is_never_negative(-coefficient):
            least, greatest = greatest, least
        elif not is_never_negative(coefficient):
            return None, None
        low = None if low is None or least is None else low + least * coefficient
        high = None if high is None or greatest is None else high + greatest * coefficient
    return low, high


def simplify(index: Index, extents: Extents) -> Index:
    """The same index without the `//` and `%` that the axes' ranges decide."""
    result = Index((), index.offset)
    for atom, coefficient in index.terms:
        result = result + _simplify_atom(atom, extents) * coefficient
    return result


def _atom_range(atom: Atom, extents: Extents) -> tuple[Dim | None, Dim | None]:
    if isinstance(atom, AxisAtom):
        extent = extents.get(atom.axis)
        return Dim.of(0), None if extent is None else extent - 1
    if isinstance(atom, Remainder):
        return Dim.of(0), atom.divisor - 1
    if isinstance(atom, Quotient):
        low, high = index_range(atom.numerator, extents)
        return (None if low is None else low // atom.divisor), (None if high is None else high // atom.divisor)
    return None, None


def _simplify_atom(atom: Atom, extents: Extents) -> Index:
    plain = Index(((atom, Dim.of(1)),))
    if not isinstance(atom, (Quotient, Remainder)):
        return plain
    numerator = simplify(atom.numerator, extents)
    low, high = index_range(numerator, extents)
    fits = (
        low is not None and high is not None and is_never_negative(low) and is_never_negative(atom.divisor - 1 - high)
    )
    if isinstance(atom, Quotient):
        return Index() if fits else numerator // atom.divisor
    return numerator if fits else numerator % atom.divisor


def may_share(kernel: Kernel, written: str, read: str) -> bool:
    """True where one buffer may stand for both: every point that writes an element is the only one to read it.

    That holds for kernels of one Map whose loads of `read` have the very index of the only store to `written`, and for
    the epilogues of Folds and Contractions, as long as `read` has no other loads. Register tiles that overlap
    (`Tail.OVERLAP`) exclude it whatever this says.
    """
    uses = {buffer.name: buffer for buffer in kernel.buffers}
    if len(kernel.body) != 1 or kernel.outer or uses[written].use is not Use.WRITE or uses[read].use is not Use.READ:
        return False
    if uses[written].dtype.itemsize != uses[read].dtype.itemsize:
        return False
    statement = kernel.body[0]
    stores = [store for store in statement.stores if store.access.buffer == written]
    if len(stores) != 1 or not stores[0].access.index.is_affine:
        return False
    if not isinstance(statement, Map) and any(
        load.access.buffer == read for root in _elements(statement) for load in _loads_below(root)
    ):
        return False
    found = [load for load in loads(statement) if load.access.buffer == read]
    extents = extents_of(kernel)
    target = _canonical(stores[0].access.index, extents)
    return all(_canonical(load.access.index, extents) == target for load in found)


def _canonical(index: Index, extents: Extents) -> tuple[frozenset[tuple[Atom, Dim]], Dim]:
    plain = simplify(index, extents)
    return frozenset(plain.terms), plain.offset


def _elements(statement: Statement) -> tuple[Expr, ...]:
    """The expressions evaluated at each point of the reduce axes."""
    if isinstance(statement, Contraction):
        return (statement.left, statement.right)
    if isinstance(statement, Fold):
        return tuple(reducer.element for reducer in statement.reducers)
    return ()


def _loads_below(root: Expr) -> list[Load]:
    return [expr for expr in walk(root) if isinstance(expr, Load)]
