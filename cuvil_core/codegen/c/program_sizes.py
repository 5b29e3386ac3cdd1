"""Sizes that follow the symbols, checked against overflow before they are trusted."""

from collections.abc import Iterable, Iterator, Mapping

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.ir import Dim, Extremum, FloorDiv, Symbol
from cuvil_core.program import Program, due

EXACT = 62
"""Bits within which int64 arithmetic on sizes stays exact."""


def dims_of(program: Program, when: int = 0) -> list[Dim]:
    """Every distinct dim that becomes known then (`program.due`): sizes, turns of loops, guards, output extents."""
    found = [buffer.bytes for buffer in program.buffers]
    found += [extent for call in program.calls for extent in call.extents]
    found += [loop.turns for loop in program.loops if isinstance(loop.turns, Dim)]
    found += [extent for port in program.outputs for extent in port.type.shape]
    for guard in program.guards:
        found += [guard.left, guard.right]
    arrivals = program.arrivals
    return [dim for dim in dict.fromkeys(found) if dim.constant is None and due(arrivals, (dim,)) == when]


def nonsense(dims: Iterable[Dim], symbols: Mapping[str, str]) -> Iterator[str]:
    """C conditions, true when any dim could leave int64; `symbols` gives expressions of type int64_t.

    Magnitudes are bounded in double: the sum of the absolute terms, so that no cancellation hides an overflow.
    """
    listed = list(dims)
    doubles = {name: f"(double){text}" for name, text in symbols.items()}
    for dim in listed:
        yield f"{magnitude(dim, doubles)} > 0x1p{EXACT}"
    for divisor in sorted({text for dim in listed for text in divisors(dim, symbols)}):
        yield f"{divisor} < 1"


def magnitude(dim: Dim, symbols: Mapping[str, str]) -> str:
    """A C expression of type double that is at least |dim| and at least each of its partial sums."""
    parts = []
    for monomial, coefficient in dim.terms:
        factors = [f"{float(abs(coefficient))!r}", *(_atom(atom, symbols) for atom in monomial)]
        parts.append(" * ".join(factors))
    return f"({' + '.join(parts) or '0.0'})"


def _atom(atom: Symbol | FloorDiv | Extremum, symbols: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        return symbols[atom.name]
    if isinstance(atom, FloorDiv):
        return f"({magnitude(atom.numerator, symbols)} + {magnitude(atom.denominator, symbols)})"
    return f"({' + '.join(magnitude(operand, symbols) for operand in atom.operands)})"


def divisors(dim: Dim, symbols: Mapping[str, str]) -> Iterator[str]:
    """C expressions of the divisors within that are no constants."""
    for monomial, _ in dim.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv):
                yield from divisors(atom.numerator, symbols)
                yield from divisors(atom.denominator, symbols)
                if atom.denominator.constant is None:
                    yield dim_text(atom.denominator, symbols)
            elif isinstance(atom, Extremum):
                for operand in atom.operands:
                    yield from divisors(operand, symbols)
