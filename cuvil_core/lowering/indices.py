"""Arithmetic on indices: strides, splitting of flat positions, joining of divisions, rewriting inside expressions."""

from collections.abc import Mapping, Sequence

from cuvil_core.ir import Dim, Equalities, product
from cuvil_core.kernel_ir import Access, AxisIndex, Expr, Index, Load, Within
from cuvil_core.kernel_ir.analysis import simplify
from cuvil_core.kernel_ir.expressions import Accumulator, Binary, Bitcast, Cast, Fma, Literal, Select, Unary
from cuvil_core.kernel_ir.index import Atom, AxisAtom, Indirect, Quotient, Remainder


def row_major(extents: Sequence[Dim]) -> tuple[Dim, ...]:
    """Strides of a dense array, last axis fastest."""
    strides: list[Dim] = []
    step = Dim.of(1)
    for extent in reversed(extents):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def flatten(indices: Sequence[Index], shape: Sequence[Dim]) -> Index:
    """The row-major position of an element."""
    total = Index()
    for index, stride in zip(indices, row_major(shape), strict=True):
        total = total + index * stride
    return total


def unflatten(position: Index, shape: Sequence[Dim], extents: Mapping[str, Dim]) -> tuple[Index, ...]:
    """The indices of the element at a row-major position; unit axes get 0, the outermost needs no remainder."""
    strides = row_major(shape)
    found: list[Index] = []
    outermost = True
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1 or stride == 0:  # an empty tensor has no element to index
            found.append(Index())
            continue
        quotient = simplify(position // stride, extents)
        found.append(quotient if outermost else simplify(quotient % extent, extents))
        outermost = False
    return tuple(found)


def reshape_indices(
    indices: Sequence[Index],
    target: Sequence[Dim],
    source: Sequence[Dim],
    extents: Mapping[str, Dim],
    equalities: Equalities,
) -> tuple[Index, ...]:
    """Indices into `source` of the element at `indices` of its reshape to `target`.

    Axes are paired off in groups of equal products, so that untouched axes keep their index; a group that cannot be
    proved equal, by the guards neither, swallows the rest.
    """
    found: list[Index] = []
    at_source = at_target = 0
    while at_source < len(source) or at_target < len(target):
        end_source, end_target = _next_group(source, target, at_source, at_target, equalities)
        position = flatten(indices[at_target:end_target], target[at_target:end_target])
        found.extend(unflatten(join_divisions(position), source[at_source:end_source], extents))
        at_source, at_target = end_source, end_target
    return tuple(found)


def _next_group(
    source: Sequence[Dim], target: Sequence[Dim], s: int, t: int, equalities: Equalities
) -> tuple[int, int]:
    def elements(extents: Sequence[Dim]) -> Dim:
        return equalities.canonical(product(extents))

    for width in range(1, len(source) - s + len(target) - t + 1):
        for count in range(width + 1):
            end_s, end_t = s + count, t + width - count
            if end_s > len(source) or end_t > len(target):
                continue
            # The rest must be able to pair off too: never leave axes on one side alone that are not 1.
            both = end_s < len(source) and end_t < len(target)
            if elements(source[s:end_s]) == elements(target[t:end_t]) and (
                both or elements(source[end_s:]) == elements(target[end_t:])
            ):
                return end_s, end_t
    return len(source), len(target)


def join_divisions(index: Index) -> Index:
    """`a·d·(x // d) + a·(x % d)` becomes `a·x`."""
    terms = dict(index.terms)
    for atom, coefficient in index.terms:
        if not isinstance(atom, Remainder) or atom not in terms:
            continue
        partner = Quotient(atom.numerator, atom.divisor)
        if terms.get(partner) == coefficient * atom.divisor:
            rest = Index(tuple((a, c) for a, c in terms.items() if a not in (atom, partner)), index.offset)
            return join_divisions(rest + atom.numerator * coefficient)
    return index


class Rewriter:
    """Puts other indices in place of axes throughout a DAG of expressions; shared objects stay shared."""

    def __init__(self, substitutes: Mapping[str, Index]) -> None:
        self._substitutes = substitutes
        self._done: dict[int, Expr] = {}
        self._kept: list[Expr] = []

    def index(self, index: Index) -> Index:
        """The index over the new axes."""
        total = Index.of(index.offset)
        for atom, coefficient in index.terms:
            total = total + self._atom(atom) * coefficient
        return total

    def within(self, condition: Within) -> Within:
        """The condition over the new axes."""
        return Within(self.index(condition.index), condition.extent)

    def access(self, access: Access) -> Access:
        """The access over the new axes."""
        return Access(access.buffer, self.index(access.index))

    def expr(self, expr: Expr) -> Expr:
        """The expression over the new axes."""
        done = self._done.get(id(expr))
        if done is None:
            done = self._build(expr)
            self._done[id(expr)] = done
            self._kept.append(expr)
        return done

    def _atom(self, atom: Atom) -> Index:
        if isinstance(atom, AxisAtom):
            return self._substitutes.get(atom.axis, Index.axis(atom.axis))
        if isinstance(atom, Quotient):
            return self.index(atom.numerator) // atom.divisor
        if isinstance(atom, Remainder):
            return self.index(atom.numerator) % atom.divisor
        return Index(((Indirect(self.expr(atom.value)), Dim.of(1)),))

    def _build(self, expr: Expr) -> Expr:
        match expr:
            case Load():
                within = tuple(map(self.within, expr.within))
                return Load(self.access(expr.access), expr.dtype, within, expr.otherwise)
            case AxisIndex():
                return AxisIndex(self.index(expr.index), expr.dtype)
            case Unary():
                return Unary(expr.name, self.expr(expr.operand))
            case Binary():
                return Binary(expr.name, self.expr(expr.left), self.expr(expr.right))
            case Fma():
                return Fma(self.expr(expr.left), self.expr(expr.right), self.expr(expr.addend))
            case Select():
                return Select(self.expr(expr.condition), self.expr(expr.then), self.expr(expr.other))
            case Cast():
                return Cast(self.expr(expr.operand), expr.dtype)
            case Bitcast():
                return Bitcast(self.expr(expr.operand), expr.dtype)
            case Literal() | Accumulator():
                return expr
