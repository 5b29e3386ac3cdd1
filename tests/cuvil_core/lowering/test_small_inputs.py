"""Inputs that are too small, extents that guards fix, tensors without elements."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuvil_core import passes
from cuvil_core.errors import InputError, ModelError
from cuvil_core.ir import Graph, Relation, SymbolRange, Value
from graph_checks import Maker, check, interpreted, module_of, random_inputs, variants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""C compilers take their time on a busy machine."""


def _refused(graph: Graph, symbols: dict[str, int], condition: str, folder: Path) -> None:
    """Interpreter and compiled code name the condition that the extents break."""
    optimized, _ = passes.run(graph, 2)
    inputs = random_inputs(optimized, symbols)
    with pytest.raises(InputError, match=condition):
        interpreted(optimized, inputs)
    for variant in variants():
        with pytest.raises(InputError, match=f"break the model's condition {condition}"):
            module_of(optimized, variant, folder).run(inputs)


def _pooled(make: Maker, x: Value) -> Value:
    """relu(conv 7x7/2) and the mean over both spatial axes, as picture classifiers begin and end."""
    y = make.relu(make.conv(x, 8, (7, 7), strides=(2, 2)))
    total = make.op("reduce", y, kind="sum", axes=(2, 3))
    count = make.op("dim_vector", dims=(y.shape[2] * y.shape[3],))
    number = make.op("cast", make.op("reshape", count, shape=()), dtype=total.dtype)
    return make.op("div", total, make.op("broadcast_to", number, shape=total.shape))


def test_a_window_larger_than_the_input_is_refused(tmp_path: Path) -> None:
    """Two negative extents have a positive product: only a guard of each keeps invented means away."""
    make = Maker()
    graph = make.done(_pooled(make, make.input("x", "N", 3, "H", "W")))
    _refused(graph, {"N": 1, "H": 4, "W": 4}, "7 <= H", tmp_path)
    _refused(graph, {"N": 1, "H": 9, "W": 6}, "7 <= W", tmp_path)
    check(passes.run(graph, 2)[0], ({"N": 2, "H": 7, "W": 9},), tmp_path)


def test_one_guard_stands_for_a_chain_of_windows() -> None:
    """Each stage needs more of the input; the guard says what the last one needs."""
    make = Maker()
    x = make.input("x", "N", 4, "H", 8)
    y = make.pool(make.conv(make.conv(x, 4, (3, 3)), 4, (3, 3), strides=(2, 2)), "max", 2, 2)
    optimized, _ = passes.run(make.done(y), 2)
    assert [*map(str, optimized.guards)] == ["7 <= H"]


@pytest.mark.parametrize("level", range(4))
def test_extents_that_cannot_fall_too_low_have_no_guard(level: int) -> None:
    """Windows with enough padding, products of guarded extents and halved pictures need no question at run time."""
    make = Maker()
    x = make.input("x", "N", 4, "H", "W")
    y = make.conv(x, 4, pads=(1, 1, 1, 1), strides=(2, 2))
    flat = make.op("reshape", y, shape=(y.shape[0], y.shape[1] * y.shape[2] * y.shape[3]))
    assert passes.run(make.done(make.op("exp", flat)), level)[0].guards == ()
    cut = make.conv(x, 4, (3, 3))
    flat = make.op("reshape", cut, shape=(cut.shape[0], cut.shape[1] * cut.shape[2] * cut.shape[3]))
    guarded, _ = passes.run(make.done(make.op("exp", flat)), level)
    assert [*map(str, guarded.guards)] == ["3 <= H", "3 <= W"]


def test_slices_and_formulas_are_guarded_too(tmp_path: Path) -> None:
    """A slice may be empty but not negative, whatever stands around it."""
    make = Maker()
    x = make.input("x", "H", "W")
    h, w = x.shape
    cut = make.op("slice", x, starts=(2, 2), sizes=(h - 4, w - 4), steps=(1, 1))
    graph = make.done(make.op("reshape", cut, shape=((h - 4) * (w - 4),)))
    _refused(graph, {"H": 2, "W": 2}, "4 <= H", tmp_path)
    check(passes.run(graph, 2)[0], ({"H": 4, "W": 6}, {"H": 5, "W": 7}), tmp_path)


def test_bounds_below_a_window_are_an_error_of_the_model() -> None:
    """No extent that is allowed would do: that is said when the model is compiled."""
    make = Maker()
    graph = make.done(make.pool(make.input("x", 1, 4, "H", 8), "max", 3, 1))
    bounded = replace(graph, symbols=(SymbolRange("H", 1, 2),))
    with pytest.raises(ModelError, match="3 <= H, but that is at most 2"):
        passes.run(bounded, 2)


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("outputs", [8, 33])
def test_a_guard_fixes_the_inner_extent_of_a_product(level: int, outputs: int, tmp_path: Path) -> None:
    """x[M, K] by constant weights of 16 rows: K is 16 wherever the kernels look, and any other K is refused."""
    make = Maker()
    x = make.input("x", "M", "K")
    make.builder.guard(x.shape[1], 16, Relation.EQUAL)
    y = make.relu(make.matmul(x, make.constant(16, outputs)))
    graph, _ = passes.run(make.done(y), level)
    check(graph, ({"M": 1, "K": 16}, {"M": 7, "K": 16}), tmp_path)
    for variant in variants():
        with pytest.raises(InputError, match="K == 16"):
            module_of(graph, variant, tmp_path).run({"x": np.zeros((3, 15), np.float32)})


def test_a_guard_fixes_the_channels_of_a_convolution(tmp_path: Path) -> None:
    """The symbol is solved for, and the input's other uses see the number as well."""
    make = Maker()
    x = make.input("x", 1, "C", "H", 5)
    make.builder.guard(x.shape[1] * 2, 16, Relation.EQUAL)
    weights = make.constant(16, 8, 3, 3)
    ones = (1, 1)
    named = {"strides": ones, "dilations": ones, "base_dilations": ones, "pads": (1,) * 4, "groups": 1}
    y = make.op("conv", x, weights, **named)
    graph, _ = passes.run(make.done(y, make.op("exp", x)), 2)
    assert graph.outputs[1].shape[1] == 8
    check(graph, ({"C": 8, "H": 3},), tmp_path)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("rows", [0, "H"])
def test_tensors_without_elements(rows: int | str, level: int, tmp_path: Path) -> None:
    """What has no rows, known or only at run time, goes through every kind of kernel; its sums are zero."""
    make = Maker()
    x = make.input("x", "H", 4)
    start, size = (2, x.shape[0] - 2) if rows else (0, 0)
    none = make.op("slice", x, starts=(start, 0), sizes=(size, 4), steps=(1, 1))
    most = make.op("reduce", none, kind="max", axes=(0,))
    low = make.op("exp", make.op("sub", none, make.op("broadcast_to", most, shape=none.shape)))
    total = make.op("reduce", low, kind="sum", axes=(0,))
    shares = make.op("div", low, make.op("broadcast_to", total, shape=none.shape))
    product = make.matmul(none, make.constant(4, 8))
    joined = make.op("concat", none, x, none, axis=0)
    graph, _ = passes.run(make.done(shares, total, product, joined, make.op("transpose", none, perm=(1, 0))), level)
    check(graph, ({"H": 2},), tmp_path)


def test_an_empty_axis_has_no_extreme(tmp_path: Path) -> None:
    """The place of the greatest of no elements is refused: known to be empty by the op, else by a guard."""
    make = Maker()
    x = make.input("x", "H", 4)
    cut = make.op("slice", x, starts=(2, 0), sizes=(x.shape[0] - 2, 4), steps=(1, 1))
    graph = make.done(make.op("arg_reduce", cut, kind="max", axis=0, select_last=False))
    _refused(graph, {"H": 2}, "3 <= H", tmp_path)
    none = make.op("slice", x, starts=(0, 0), sizes=(0, 4), steps=(1, 1))
    with pytest.raises(ModelError, match="empty axis"):
        make.op("arg_reduce", none, kind="max", axis=0, select_last=False)


def test_a_guard_that_nothing_fulfils_is_an_error_of_the_model() -> None:
    """Extents that would have to be negative or beyond their bounds are told when the model is compiled."""
    for wanted, offset in ((4, 8), (7, 7)):
        make = Maker()
        x = make.input("x", "C", 2)
        make.builder.guard(x.shape[0] + offset, wanted, Relation.EQUAL)
        with pytest.raises(ModelError, match=f"C \\+ {offset} == {wanted}, which no allowed shape fulfils"):
            passes.run(make.done(make.op("exp", x)), 2)
