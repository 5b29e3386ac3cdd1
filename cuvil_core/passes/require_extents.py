"""Guards that keep every extent from falling below what its op allows, where that cannot be proved."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from cuvil_core.errors import ModelError
from cuvil_core.ir import Dim, FloorDiv, Graph, Guard, Op, Provenance, Relation
from cuvil_core.passes.properties import Property
from cuvil_core.rewriting import PassResult


@dataclass(frozen=True, slots=True)
class RequireExtents:
    """conv of a window of 7 over x[N, C, H]  →  the same, and the guard 7 <= H"""

    name: ClassVar[str] = "require-extents"
    requires: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.NO_REGIONS})

    def run(self, graph: Graph) -> PassResult:
        """A window must fit once, an extreme needs an element; extents of slices and formulas must not be negative.

        Two negative extents have a positive product, so a check of sizes alone would let them through.
        """
        for guard in graph.guards:
            _refuse_impossible(guard, graph)
        needs = _Needs(graph)
        for op in graph.ops:
            for least, extent in _wanted(op):
                needs.want(least, extent, op.provenance)
        guards = tuple(needs.guards())
        return PassResult(replace(graph, guards=(*graph.guards, *guards)), bool(guards))


def _refuse_impossible(guard: Guard, graph: Graph) -> None:
    """ModelError for a guard that no allowed extents fulfil: each call would be refused."""
    least, greatest = (guard.right - guard.left).bounds(graph.ranges)
    below = greatest is not None and greatest < 0
    above = guard.relation is Relation.EQUAL and least is not None and least > 0
    if below or above:
        raise ModelError(f"{guard.provenance} needs {guard}, which no allowed shape fulfils; correct model or bounds.")


def _wanted(op: Op) -> Iterator[tuple[int, Dim]]:
    """(least, extent) for all that the op makes: windows that must fit, and new extents."""
    given = {extent for operand in op.operands for extent in operand.shape}
    windows = op.name in ("conv", "window_reduce")
    for result in op.results:
        for axis, extent in enumerate(result.shape):
            if extent.constant is None and extent not in given:
                yield int(windows and axis >= 2), extent
    if op.name == "arg_reduce":
        yield 1, op.operands[0].shape[op.integer("axis")]
    for widths in ("low", "high") if op.name == "pad" else ():
        yield from ((0, width) for width in op.dims(widths) if width.constant is None)


class _Needs:
    """The strongest lower bound wanted of each formula; what symbols must reach counts as known from then on."""

    def __init__(self, graph: Graph) -> None:
        self._ranges = dict(graph.ranges)
        self._found: dict[Dim, tuple[int, Provenance]] = {}
        self._known: set[Dim] = set()
        """Sums that are known not to be negative."""
        for guard in graph.guards:
            least = guard.left.constant
            if guard.relation is Relation.AT_MOST and least is not None:
                self._learn(*_solved(least, guard.right))

    def want(self, least: int, extent: Dim, origin: Provenance) -> None:
        """Record that the extent must reach `least`, unless it does for all symbols."""
        held = self._holds(least, extent)
        if len(extent.terms) > 1:
            self._known.add(extent)
        if held:
            return
        least, extent = _solved(least, extent)
        greatest = extent.bounds(self._ranges)[1]
        if greatest is not None and greatest < least:
            raise ModelError(
                f"{origin} needs {least} <= {extent}, but that is at most {greatest}; allow larger inputs."
            )
        known = self._found.get(extent)
        if known is None or known[0] < least:
            self._found[extent] = least, origin
        self._learn(least, extent)

    def guards(self) -> Iterator[Guard]:
        """One guard a formula, in order of first need."""
        for extent, (least, origin) in self._found.items():
            yield Guard(Dim.of(least), extent, Relation.AT_MOST, origin)

    def _learn(self, least: int, extent: Dim) -> None:
        name = str(extent)
        if name in self._ranges:
            low, high = self._ranges[name]
            self._ranges[name] = max(low, least), high
        elif least >= 0 and len(extent.terms) > 1:
            self._known.add(extent)

    def _holds(self, least: int, extent: Dim) -> bool:
        if self._reaches(least, extent):
            return True
        solved, rest = _solved(least, extent)
        known = self._found.get(rest)
        if (known is not None and known[0] >= solved) or self._reaches(solved, rest):
            return True
        return least <= 0 and self._never_negative(extent)

    def _reaches(self, least: int, extent: Dim) -> bool:
        low = extent.bounds(self._ranges)[0]
        return low is not None and low >= least

    def _never_negative(self, extent: Dim) -> bool:
        """True for what is known, and for products and quotients of it: their expanded form hides the factors."""
        if self._reaches(0, extent):
            return True
        (monomial, factor), *others = extent.terms
        if not others and len(monomial) == 1 and isinstance(monomial[0], FloorDiv) and factor > 0:
            return self._reaches(1, monomial[0].denominator) and self._never_negative(monomial[0].numerator)
        quotients = (extent.exact_div(one) for one in self._known if one != extent)
        return extent in self._known or any(one is not None and self._never_negative(one) for one in quotients)


def _solved(least: int, extent: Dim) -> tuple[int, Dim]:
    """`7 <= (H + 1)//2` as `13 <= H`: offsets, positive factors and divisors by numbers go to the other side."""
    while True:
        offset = sum(coefficient for monomial, coefficient in extent.terms if not monomial)
        least, extent = least - offset, extent - offset
        if len(extent.terms) != 1 or extent.terms[0][1] < 1:
            return least, extent
        monomial, least = extent.terms[0][0], -(-least // extent.terms[0][1])
        extent = Dim(((monomial, 1),))
        atom = monomial[0]
        divisor = atom.denominator.constant if len(monomial) == 1 and isinstance(atom, FloorDiv) else None
        if not isinstance(atom, FloorDiv) or divisor is None or divisor < 1:
            return least, extent
        least, extent = least * divisor, atom.numerator
