"""Shapes of graphs that once lowered wrongly, or that lean on a rule of their own."""

from pathlib import Path

import pytest

from cuvil_core import passes
from cuvil_core.ir import Dim, DType, Payload, Value
from cuvil_core.kernel_ir.index import Quotient, Remainder
from cuvil_core.kernel_ir.kernel import indices
from cuvil_core.lowering import lower
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import Maker, check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""C compilers take their time on a busy machine."""
BINDINGS = ({"N": 1, "H": 6}, {"N": 2, "H": 11})


def test_pooling_an_enlarged_picture(tmp_path: Path) -> None:
    """Window positions left of the picture are negative before they are halved."""
    make = Maker()
    x = make.input("x", "N", 20, "H", 5)
    n, c, h, w = x.shape
    cut = make.op("reshape", x, shape=(n, c, h, 1, w, 1))
    large = make.op("reshape", make.op("broadcast_to", cut, shape=(n, c, h, 2, w, 2)), shape=(n, c, h * 2, w * 2))
    check(make.done(make.pool(large, "max", 3, 2, 1)), BINDINGS, tmp_path)


def test_guards_tell_which_axes_a_reshape_leaves_alone(tmp_path: Path) -> None:
    """A picture, halved and enlarged again, is as large as before by a guard alone: no index divides by its width."""
    make = Maker()
    x = make.input("x", "N", 16, "H", "W")
    half = make.conv(x, 16, strides=(2, 2), pads=(1, 1, 1, 1))
    n, c, h, w = half.shape
    for kept, doubled in zip(x.shape[2:], (h * 2, w * 2), strict=True):
        make.builder.guard(kept, doubled)
    cut = make.op("reshape", half, shape=(n, c, h, 1, w, 1))
    large = make.op("reshape", make.op("broadcast_to", cut, shape=(n, c, h, 2, w, 2)), shape=x.shape)
    graph, _ = passes.run(make.done(make.op("add", x, large)), 2)
    program = lower(graph, choose(graph, Machine.of(Isa.AVX512)))
    used = [index for one in program.kernels for statement in one.kernel.body for index in indices(statement)]
    divisors = [atom.divisor for index in used for atom, _ in index.terms if isinstance(atom, Quotient | Remainder)]
    assert divisors and all(divisor.constant is not None for divisor in divisors), [*map(str, divisors)]
    check(graph, ({"N": 1, "H": 6, "W": 4}, {"N": 2, "H": 8, "W": 10}), tmp_path)


def test_a_border_around_pictures_side_by_side(tmp_path: Path) -> None:
    """Parts of a concat along a row have no border of their own, though the row has."""
    make = Maker()
    x = make.input("x", "N", 3, "H", 4)
    row = make.op("concat", x, make.op("exp", x), make.op("neg", x), axis=3)
    wide = make.conv(x, 32, pads=(1, 1, 1, 1))
    column = make.op("concat", wide, make.op("abs", wide), axis=2)
    results = [make.conv(row, 8, pads=(1, 1, 1, 1)), make.conv(column, 16, pads=(1, 1, 1, 1))]
    check(make.done(*results, row), BINDINGS, tmp_path)


def test_channels_meet_in_the_middle_of_a_block(tmp_path: Path) -> None:
    """Operands of 24 and 8 channels share a block of a concat."""
    make = Maker()
    x = make.input("x", "N", 16, "H", 5)
    parts = [make.conv(x, outputs, (1, 1)) for outputs in (24, 8, 16, 32)]
    both = make.op("concat", *parts, axis=1)
    check(make.done(make.conv(both, 16, pads=(1, 1, 1, 1)), parts[1]), BINDINGS, tmp_path)


def test_parts_of_a_split_are_joined_again(tmp_path: Path) -> None:
    """A cross-stage block: split, work on one half, join all three."""
    make = Maker()
    x = make.input("x", "N", 16, "H", 6)
    both = make.op("sigmoid", make.conv(x, 64, (1, 1)))
    n, _, h, w = both.shape
    halves = [make.op("slice", both, starts=(0, at, 0, 0), sizes=(n, 32, h, w), steps=(1,) * 4) for at in (0, 32)]
    worked = make.relu(make.conv(halves[1], 32, pads=(1, 1, 1, 1)))
    joined = make.op("concat", *halves, make.op("add", worked, halves[1]), axis=1)
    graph, _ = passes.run(make.done(make.conv(joined, 24, (1, 1))), 2)
    check(graph, BINDINGS, tmp_path)


def test_attention(tmp_path: Path) -> None:
    """Softmax of scaled products over heads, spelled out, at every fusion."""
    make = Maker()
    x = make.input("x", "N", "H", 24)
    n, t, _ = x.shape
    heads = []
    for _ in range(3):
        flat = make.op("dot", x, make.constant(24, 24, scale=0.3), **_ROWS)
        cut = make.op("reshape", flat, shape=(n, t, 3, 8))
        heads.append(make.op("transpose", cut, perm=(0, 2, 1, 3)))
    scores = make.matmul(heads[0], make.op("transpose", heads[1], perm=(0, 1, 3, 2)))
    top = _stretched(make, make.op("reduce", scores, kind="max", axes=(3,)), scores)
    powers = make.op("exp", make.op("sub", scores, top))
    total = _stretched(make, make.op("reduce", powers, kind="sum", axes=(3,)), scores)
    mixed = make.matmul(make.op("div", powers, total), heads[2])
    merged = make.op("reshape", make.op("transpose", mixed, perm=(0, 2, 1, 3)), shape=(n, t, 24))
    graph, _ = passes.run(make.done(merged), 2)
    check(graph, BINDINGS, tmp_path)


_ROWS = {"batch_a": (), "batch_b": (), "contract_a": (2,), "contract_b": (0,)}


def _stretched(make: Maker, reduced: Value, like: Value) -> Value:
    """Put the last axis back and stretch along it."""
    shape = (*like.shape[:-1], 1)
    return make.op("broadcast_to", make.op("reshape", reduced, shape=shape), shape=like.shape)


def test_outputs_of_every_kind(tmp_path: Path) -> None:
    """One value twice, a value in the middle, a view, a reshape, a constant, an input."""
    make = Maker()
    x = make.input("x", "N", 16, "H", 4)
    y = make.conv(x, 20, pads=(1, 1, 1, 1))
    z = make.relu(y)
    turned = make.op("transpose", z, perm=(0, 2, 3, 1))
    flat = make.op("reshape", z, shape=(x.shape[0], 20 * x.shape[2] * 4))
    check(make.done(z, y, z, turned, flat, make.constant(3), x), BINDINGS, tmp_path)


def test_pads_inside_pads(tmp_path: Path) -> None:
    """Each border keeps its own number, also under a pool."""
    make = Maker()
    x = make.input("x", "N", 3, "H", 4)
    one = make.op("pad", x, low=(0, 0, 1, 0), high=(0, 1, 0, 2), value=Payload.scalar(DType.FLOAT32, -1.0))
    two = make.op("pad", one, low=(0, 0, 1, 1), high=(0, 0, 1, 1), value=Payload.scalar(DType.FLOAT32, 0.0))
    three = make.op("pad", make.op("exp", two), low=(0, 1, 0, 0), high=(0, 0, 2, 0), value=_FIVE)
    check(make.done(make.pool(two, "max", 3, 2, 1), make.pool(three, "sum", 2, 1, 1), three), BINDINGS, tmp_path)


_FIVE = Payload.scalar(DType.FLOAT32, 5.0)


def test_extents_that_are_computed(tmp_path: Path) -> None:
    """Floors and sums of symbols in every size, as strides and pads make them."""
    make = Maker()
    x = make.input("x", "N", 16, "H", 9)
    y = make.conv(make.conv(x, 16, (3, 2), (2, 2), (1, 0, 0, 1)), 16, (2, 2), (2, 1))
    n, h = x.shape[0], y.shape[2]
    cut = make.op("reshape", y, shape=(n, 16, h, 1, *y.shape[3:]))
    grown = make.op("broadcast_to", cut, shape=(n, 16, h, 3, *y.shape[3:]))
    flat = make.op("reshape", grown, shape=(n, 16 * h * 3, y.shape[3]))
    check(make.done(flat, make.op("dim_vector", dims=(h, h * 3 + n, Dim.of(2)))), BINDINGS, tmp_path)
