"""Indices simplify, substitute and evaluate as integers do."""

from __future__ import annotations

import itertools

import pytest

from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Axis, Index
from cuvil_core.kernel_ir.analysis import index_range, simplify
from cuvil_core.kernel_ir.printer import print_index

N = Dim.symbol("N")
HERE, J = Index.axis("i"), Index.axis("j")


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (HERE * 16 + J + 3, "16*i + j + 3"),
        (HERE + HERE, "2*i"),
        (HERE - HERE, "0"),
        ((HERE * 16 + J) // 16, "i + (j // 16)"),
        ((HERE * 16 + J) % 16, "(j % 16)"),
        (HERE * N // N, "i"),
        ((HERE * 32 + 35) // 16, "2*i + 2"),
        ((HERE * N + J) % N, "(j % N)"),
        (HERE // 1, "i"),
        (HERE % 1, "0"),
        (2 * HERE + N, "2*i + N"),
    ],
)
def test_canonical_form(index: Index, text: str) -> None:
    """Equal values reach equal forms, multiples leave quotients and remainders."""
    assert print_index(index) == text


def test_ranges_decide_quotients() -> None:
    """Where the axes' extents bound a numerator, `//` and `%` vanish; where they do not, they stay."""
    extents = {axis.name: axis.extent for axis in (Axis("i", N), Axis.of("j", 16))}
    assert simplify((HERE * 16 + J) // 16, extents) == HERE
    assert simplify((HERE * 16 + J) % 16, extents) == J
    assert not simplify((HERE * 16 + J) // 8, extents).is_affine
    assert simplify(HERE % N, extents) == HERE
    assert index_range(HERE * 16 + J, extents) == (Dim.of(0), N * 16 - 1)


def test_replacing_an_axis_keeps_the_value() -> None:
    """Replacement inside quotients and remainders agrees with arithmetic."""
    index = (HERE * 5 + J) // 7 + (HERE + J * 3) % 4
    moved = index.replace("i", HERE * 2 + 3)
    for i, j in itertools.product(range(20), range(6)):
        assert value(moved, i, j) == (5 * (2 * i + 3) + j) // 7 + (2 * i + 3 + 3 * j) % 4


def test_steps_are_known_only_where_they_are_constant() -> None:
    """The coefficient along an axis is None inside a quotient and zero where the axis does not occur."""
    assert (HERE * 16 + J).coefficient("i") == 16
    assert (HERE * 16).coefficient("j") == 0
    assert (HERE // 3 + J).coefficient("i") is None


def value(index: Index, i: int, j: int) -> int:
    """The value at a point."""
    fixed = index.replace("i", i).replace("j", j)
    assert not fixed.terms
    return fixed.offset.evaluate({})
