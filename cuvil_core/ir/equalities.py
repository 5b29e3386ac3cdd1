"""Rewrites extents by what guards say is equal, so that equal extents get one spelling."""

from collections.abc import Iterable

from cuvil_core.ir.dims import Dim, Symbol, is_from_data
from cuvil_core.ir.graph import Guard, Relation

MAX_STEPS = 16
"""Guards of a broken model may rewrite in circles; then a dim keeps its last spelling."""


def spelling(dim: Dim) -> tuple[bool, bool, int, str]:
    """The order of simplicity: a number before a symbol before a longer formula; what a call binds comes last."""
    text = str(dim)
    return dim.constant is None, bool(_from_data(dim)), len(text), text


def _from_data(dim: Dim) -> frozenset[str]:
    return frozenset(filter(is_from_data, dim.symbols))


class Equalities:
    """The equality guards of a graph, as rewrites from the longer side to the shorter.

    A side that is one symbol is replaced within floor divisions too; one that is a single term c * atoms is replaced in
    every term that holds it; any other only where a whole dim is a multiple of it. No rewrite brings in a symbol from
    data, which might be used before a call binds it.
    """

    def __init__(self, guards: Iterable[Guard]) -> None:
        equal = [(guard.left, guard.right) for guard in guards if guard.relation is Relation.EQUAL]
        pairs = [_known_symbol(left - right) or sorted((left, right), key=spelling) for left, right in equal]
        self._rewrites = [(longer, shorter) for shorter, longer in pairs if _from_data(shorter) <= _from_data(longer)]
        self._known: dict[Dim, Dim] = {}

    def canonical(self, dim: Dim) -> Dim:
        """The dim in the simplest spelling that the guards allow."""
        if not self._rewrites or dim.constant is not None:
            return dim
        found = self._known.get(dim)
        return found if found is not None else self._known.setdefault(dim, self._rewritten(dim))

    def _rewritten(self, dim: Dim) -> Dim:
        for _ in range(MAX_STEPS):
            before = dim
            for longer, shorter in self._rewrites:
                dim = _rewrite(dim, longer, shorter)
            if dim == before:
                break
        return dim


def _known_symbol(zero: Dim) -> list[Dim] | None:
    """[value, symbol] where `coefficient * symbol + number == 0` says what the symbol is."""
    (monomial, coefficient), *others = zero.terms or (((), 0),)
    if len(monomial) != 1 or not isinstance(monomial[0], Symbol) or any(atoms for atoms, _ in others):
        return None
    number = sum(one for _, one in others)
    value, rest = divmod(-number, coefficient)
    least = 0 if is_from_data(monomial[0].name) else 1
    return None if rest or value < least else [Dim.of(value), Dim.symbol(monomial[0].name)]


def _rewrite(dim: Dim, longer: Dim, shorter: Dim) -> Dim:
    if dim == longer:
        return shorter
    if longer.constant is not None:
        return dim
    if str(longer) in longer.symbols:
        return dim.substitute({str(longer): shorter})
    if len(longer.terms) > 1:
        factor = dim.exact_div(longer)
        return dim if factor is None else factor * shorter
    total = Dim.of(0)
    for term in dim.terms:
        part = Dim((term,))
        factor = part.exact_div(longer)
        total = total + (part if factor is None else factor * shorter)
    return total
