"""Extents: canonical forms, text, bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuvil_core.ir import Dim, Equalities, Guard, Relation, dim_max, dim_min, parse_dim

H, N, W = (Dim.symbol(name) for name in "HNW")
SYMBOLS = ("H", "N", "W")


def _combine(children: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        st.tuples(children, st.integers(1, 9)).map(lambda p: p[0] // p[1]),
        pairs.map(lambda p: dim_max(*p)),
        pairs.map(lambda p: dim_min(*p)),
    )


LEAVES = st.one_of(st.integers(-9, 40).map(Dim.of), st.sampled_from(SYMBOLS).map(Dim.symbol))
DIMS = st.recursive(LEAVES, _combine, max_leaves=6)
VALUES = st.fixed_dictionaries({name: st.integers(1, 50) for name in SYMBOLS})


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        ((H - 1) // 2 + 1, "(H + 1)//2"),
        (((H + 1) // 2 + 1) // 2, "(H + 3)//4"),
        ((4 * H + 3) // 8, "H//2"),
        ((2 * H + 1) // 2, "H"),
        (2 * ((H + 1) // 2), "2*((H + 1)//2)"),
        (dim_max(N, 1), "N"),
        (dim_max(H, H + N), "H + N"),
        (dim_min(3, N, dim_min(H, 5)), "min(3, H, N)"),
        ((N * H * W) // (H * W), "N"),
        (N - N, "0"),
        (-(H // 2), "-(H//2)"),
    ],
)
def test_dims_take_the_simplest_form(dim: Dim, text: str) -> None:
    """Arithmetic gives the canonical form at once."""
    assert str(dim) == text


@given(DIMS)
def test_text_parses_back(dim: Dim) -> None:
    """The text of a dim is parsed to an equal dim with the same hash."""
    again = parse_dim(str(dim))
    assert again == dim and hash(again) == hash(dim)


@given(DIMS, DIMS, st.integers(1, 9), VALUES)
def test_arithmetic_means_what_it_says(a: Dim, b: Dim, k: int, values: dict[str, int]) -> None:
    """Simplified sums, products, quotients and extremes evaluate like those of numbers."""
    x, y = a.evaluate(values), b.evaluate(values)
    assert (a + b).evaluate(values) == x + y
    assert (a * b).evaluate(values) == x * y
    assert (a // k).evaluate(values) == x // k
    assert dim_max(a, b).evaluate(values) == max(x, y)
    assert dim_min(a, b).evaluate(values) == min(x, y)


@given(DIMS, VALUES)
def test_bounds_hold(dim: Dim, values: dict[str, int]) -> None:
    """No evaluation leaves the interval that is claimed for it, with the open ranges and with given ones."""
    number = dim.evaluate(values)
    for ranges in ({}, {name: (1, 50) for name in SYMBOLS}):
        low, high = dim.bounds(ranges)
        assert (low is None or low <= number) and (high is None or number <= high)


@given(DIMS, DIMS, VALUES)
def test_exact_division_undoes_multiplication(a: Dim, b: Dim, values: dict[str, int]) -> None:
    """A quotient that is found multiplies back to the dividend."""
    quotient = (a * b).exact_div(b)
    if quotient is not None:
        assert (quotient * b - a * b).evaluate(values) == 0


@given(DIMS, DIMS, VALUES)
def test_substitution_is_evaluation_in_steps(dim: Dim, part: Dim, values: dict[str, int]) -> None:
    """A dim in place of a symbol evaluates like its value, where that is at least 1."""
    inner = part.evaluate(values)
    if inner >= 1:
        assert dim.substitute({"H": part}).evaluate(values) == dim.evaluate({**values, "H": inner})


@pytest.mark.parametrize("name", ["", "max", "1x", "a b", "p.q"])
def test_names_that_would_not_parse_are_refused(name: str) -> None:
    """A symbol's name must read back as one name."""
    with pytest.raises(ValueError, match="no name of a symbol"):
        Dim.symbol(name)


def test_zero_is_no_divisor() -> None:
    """Division by zero is an error, not a dim."""
    with pytest.raises(ZeroDivisionError):
        H // 0


def test_equalities_give_one_spelling() -> None:
    """What guards say is equal gets the shorter spelling, multiples and parts of sums too."""
    pairs = [(2 * ((H + 31) // 32), (H + 15) // 16), (2 * ((H + 15) // 16), (H + 7) // 8), (W, Dim.of(64))]
    equal = Equalities(Guard(left, right, Relation.EQUAL) for left, right in pairs)
    assert equal.canonical(4 * ((H + 31) // 32) + 1) == (H + 7) // 8 + 1
    assert equal.canonical((W + 1) // 2) == 32
    assert equal.canonical(N) == N


def test_no_spelling_brings_in_what_a_call_binds() -> None:
    """An extent of an input stays as it is where it equals one from data, which takes its spelling instead."""
    bound, other = Dim.symbol("_r_1"), Dim.symbol("_r_2")
    equal = Equalities((Guard(N * H * W, bound, Relation.EQUAL), Guard(bound + other, other * 2, Relation.EQUAL)))
    assert equal.canonical(N * H * W) == N * H * W
    assert equal.canonical(bound) == N * H * W
    assert equal.canonical(other) == other
