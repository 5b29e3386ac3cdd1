"""Control flow, from the reference to compiled code: equal answers at every level, for every number of turns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control_graphs import TEXTS, control_graph
from cuvil_core import passes, program, reference
from cuvil_core.ir import Attribute, Dim, DType, Graph, TensorType
from cuvil_core.lowering import lower
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import Maker, assert_same, interpreted, module_of, random_inputs, variants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
Array = np.ndarray[Any, np.dtype[Any]]


def _inputs(graph: Graph) -> list[Mapping[str, Array]]:
    """Inputs at two sizes, both ways of each flag, and few or many turns."""
    found: list[Mapping[str, Array]] = []
    for size, flag, turns in ((1, True, 0), (4, True, 5), (4, False, 5), (3, True, 2), (2, False, -1)):
        given = random_inputs(graph, {"N": size}, size)
        given |= {"flag": np.array(flag)} if "flag" in given else {}
        given |= {"turns": np.array(turns, np.int64)} if "turns" in given else {}
        found.append(given)
    return found


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", TEXTS)
def test_passes_and_the_program_keep_the_meaning(name: str, level: int) -> None:
    """The optimized graph, and the program's interpreter for both processors, answer as the graph as it was written."""
    graph = control_graph(name)
    optimized, _ = passes.run(graph, level)
    for given in _inputs(graph):
        want = reference.run(graph, given)
        assert_same(reference.run(optimized, given), want)
        for isa in (Isa.AVX2, Isa.AVX512):
            assert_same(interpreted(optimized, given, isa), want)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", TEXTS)
def test_compiled_code_answers_as_the_interpreter(name: str, level: int, tmp_path: Path) -> None:
    """Every variant gives the reference's answers, call after call in one arena."""
    graph = control_graph(name)
    optimized, _ = passes.run(graph, level)
    for variant in variants():
        module = module_of(optimized, variant, tmp_path)
        for given in _inputs(graph):
            assert_same(module.run(given), reference.run(graph, given))


def test_bodies_are_fused() -> None:
    """At level 2 a turn of the nested loop has one kernel for product and tanh, and its weights are packed before."""
    graph, _ = passes.run(control_graph("a branch inside of a loop inside of a branch"), 2)
    found = lower(graph, choose(graph, Machine.of(Isa.AVX512)))
    program.verify(found)
    (loop,) = found.loops
    kernels = [one.kernel.split("_")[1] for one in loop.body if isinstance(one, program.Launch)]
    assert kernels.count("dot") == 1 and "pack" not in kernels, program.print_program(found)


def test_what_does_not_change_is_prepared_before_the_turns() -> None:
    """Weights that come with the call are packed once, outside of both loops that use them."""
    make = Maker()
    x, weights = make.input("x", "N", 32), make.input("w", 32, 32)
    turn = make.builder.inner()
    counter, state, matrix = (turn.value(one) for one in (TensorType(DType.INT64, ()), x.type, weights.type))
    axes = {"batch_a": (), "batch_b": (), "contract_a": (1,), "contract_b": (0,)}
    block = turn.finish_block([counter, state, matrix], [turn.emit("dot", [state, matrix], axes)])
    loop: dict[str, Attribute] = {"turns": (Dim.of(3),), "conditional": False, "carried": 1}
    outer = make.builder.inner()
    given = [outer.value(one.type) for one in (counter, state, matrix)]
    (once,) = outer.emit_all("loop", given[1:], loop, blocks=(block,))
    whole = outer.finish_block(given, [once])
    (result,) = make.builder.emit_all("loop", [x, weights], loop, blocks=(whole,))
    graph, _ = passes.run(make.done(result), 2)
    found = lower(graph, choose(graph, Machine.of(Isa.AVX512)))
    program.verify(found)
    packing = [one for one in found.statements if isinstance(one, program.Launch) and "pack" in one.kernel]
    assert len(packing) == sum("pack" in one.kernel for one in found.launches) == 1, program.print_program(found)
    inputs = random_inputs(graph, {"N": 3})
    inputs["w"] = inputs["w"] / np.float32(6)
    assert_same(interpreted(graph, inputs), reference.run(graph, inputs))
