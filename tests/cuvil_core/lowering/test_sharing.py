"""Values that are used twice, again and again: what they cost grows with their number, not with that of the paths."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cuvil_core import passes
from cuvil_core.ir import DType, Graph, Value
from cuvil_core.lowering import lower
from cuvil_core.program import print_program
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import Maker, check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
"""A walk of every path would never end; the C compilers take seconds."""
STEPS = 60


def _doubled(make: Maker) -> Graph:
    """v = v + v, v = v * v, kept within range by a clip: 2**60 paths from the input to the output."""
    v = make.input("x", "N", 8)
    half = make.filled(0.5, v)
    for step in range(STEPS):
        v = make.op("min", make.op("add", v, v), half) if step % 2 else make.op("mul", v, v)
    return make.done(v)


def _fibonacci(make: Maker) -> Graph:
    """Each value of the two before it."""
    x = make.input("x", "N", 8)
    before, last = make.op("sin", x), make.op("cos", x)
    for step in range(STEPS):
        before, last = last, make.op(("sub", "max", "min")[step % 3], last, before)
    return make.done(last)


def _looked_up(make: Maker) -> Graph:
    """Positions that are looked up in themselves."""
    v = make.op("mod", make.input("x", 8, dtype=DType.INT64), make.numbers([8] * 8, DType.INT64), kind="floor")
    for _ in range(STEPS):
        v = make.op("gather", v, v, axis=0)
    return make.done(v)


def _turned(make: Maker) -> Graph:
    """A picture and its transpose, added, halved and turned again."""
    v: Value = make.input("x", 8, 8)
    for _ in range(STEPS):
        v = make.op("mul", make.op("add", v, make.op("transpose", v, perm=(1, 0))), make.filled(0.5, v))
    return make.done(v)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("make_graph", [_doubled, _fibonacci, _looked_up, _turned])
def test_shared_values_are_computed_once(make_graph: Callable[[Maker], Graph], level: int, tmp_path: Path) -> None:
    """Sixty steps that read their input twice compile in time, print in few lines and give the right numbers."""
    graph, _ = passes.run(make_graph(Maker()), level)
    check(graph, ({"N": 3},), tmp_path)
    text = print_program(lower(graph, choose(graph, Machine.of(Isa.AVX2))))
    assert len(text.splitlines()) < 100 * STEPS
