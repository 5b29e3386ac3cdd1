"""Random graphs: whatever scheduling and lowering do to them, their numbers stay."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_graphs import branched, looped
from cuvil_core import passes, reference
from cuvil_core.errors import ModelError
from cuvil_core.ir import Graph, verify
from cuvil_core.ops import RULES
from graph_checks import assert_same, interpreted, module_of, random_inputs, variants
from random_graphs import Grower

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""C compilers take their time on a busy machine."""
LARGEST = 200_000
"""Elements of an output beyond which the slow interpreters take too long."""


def grown(seed: int) -> Graph | None:
    """A graph of 3 to 10 ops, None when a window does not fit."""
    try:
        return Grower(seed, 3 + seed % 8).graph()
    except ModelError:
        return None


@given(st.integers(0, 1 << 32))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_lowered_programs_keep_the_meaning(seed: int) -> None:
    """The program of the graph as it is and of the optimized graph both interpret to the reference's answer."""
    graph = grown(seed)
    if graph is None:
        return
    inputs = random_inputs(graph, {"N": 1 + seed % 3, "H": 4 + seed % 5}, seed % 1000)
    with np.errstate(all="ignore"):
        wanted = reference.run(graph, inputs)
    if any(array.size > LARGEST for array in wanted.values()):
        return
    for level in (0, 2):
        assert_same(interpreted(passes.run(graph, level)[0], inputs), wanted, 1e-4)


@pytest.mark.parametrize("seed", [1003, 1010, 1021, 1032])
def test_compiled_programs_keep_the_meaning(seed: int, tmp_path: Path) -> None:
    """So does the compiled code of every variant, at two sets of extents."""
    graph = grown(seed)
    assert graph is not None
    optimized, _ = passes.run(graph, 2)
    modules = [module_of(optimized, variant, tmp_path) for variant in variants()]
    for symbols in ({"N": 1, "H": 9}, {"N": 2, "H": 4}):
        inputs = random_inputs(graph, symbols, seed)
        wanted = reference.run(graph, inputs)
        for module in modules:
            assert_same(module.run(inputs), wanted, 1e-4)


@given(st.integers(0, 1 << 32))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_blocks_keep_the_meaning(seed: int) -> None:
    """Within a branch and within a loop the same graphs give the same numbers, whatever layouts meet there."""
    graph = grown(seed)
    if graph is None or not all(value.dtype.is_float for value in graph.outputs):
        return
    inputs = random_inputs(graph, {"N": 1 + seed % 3, "H": 4 + seed % 5}, seed % 1000)
    with np.errstate(all="ignore"):
        plain = reference.run(graph, inputs)
    if any(array.size > LARGEST // 4 for array in plain.values()):
        return
    first = plain[graph.output_names[0]]
    calls = (
        (branched(graph), inputs | {"flag": np.array(seed % 2 == 0)}),
        (looped(graph, 2), inputs | {"before": np.ones_like(first)}),
    )
    for form, given_inputs in calls:
        verify(form, RULES)
        with np.errstate(all="ignore"):
            wanted = reference.run(form, given_inputs)
        for level in (0, 2):
            assert_same(interpreted(passes.run(form, level)[0], given_inputs), wanted, 1e-4)
