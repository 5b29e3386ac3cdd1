"""The verifier finds each kind of fault and shows where it is."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cuvil_core.ir import Dim, DType, Graph, Op, TensorType, Value, VerifyError, parse_graph, verify
from cuvil_core.ops import RULES

SOUND = """graph {
  symbol N in 1..
  input %0 "x" : float32[N, 3]
  %1 = exp %0 : float32[N, 3]
  %2 = region %0, %1 {kind = "elementwise"} : float32[N, 3] do
    input %0 : float32[N, 3]
    input %1 : float32[N, 3]
    %2 = add %0, %1 : float32[N, 3]
    yield %2
  end
  %3 = neg %2 : float32[N, 3]
  output %3 "y"
}
"""


def _sound() -> Graph:
    return parse_graph(SOUND)


def _retyped(graph: Graph, at: int, type: TensorType) -> Graph:
    op = graph.ops[at]
    changed = replace(op, results=(Value(op.result.name, type),))
    return replace(graph, ops=(*graph.ops[:at], changed, *graph.ops[at + 1 :]), outputs=changed.results)


def test_a_sound_graph_passes() -> None:
    """Nothing is raised for a graph that keeps all rules."""
    verify(_sound(), RULES)


def _unknown_op(graph: Graph) -> Graph:
    return replace(graph, ops=(replace(graph.ops[0], name="frobnicate"), *graph.ops[1:]))


def _undeclared(graph: Graph) -> Graph:
    return replace(graph, symbols=())


BROKEN: dict[str, Callable[[Graph], Graph]] = {
    "is not defined before it": lambda graph: replace(graph, ops=graph.ops[1:]),
    "is defined twice": lambda graph: replace(graph, ops=(graph.ops[0], *graph.ops)),
    "other than its rule's": lambda graph: _retyped(graph, 2, TensorType.of(DType.FLOAT32, [Dim.symbol("N"), 4])),
    "There is no primitive frobnicate": _unknown_op,
    "which the graph does not declare": _undeclared,
    "is never defined": lambda graph: replace(graph, ops=graph.ops[:2]),
    "differ in number": lambda graph: replace(graph, output_names=()),
    "have the same name": lambda graph: replace(graph, outputs=graph.outputs * 2, output_names=("y", "y")),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_each_fault_is_named(fault: str) -> None:
    """A broken rule is named in the error."""
    with pytest.raises(VerifyError, match=fault):
        verify(BROKEN[fault](_sound()), RULES)


def test_the_error_shows_a_window_round_the_fault() -> None:
    """The faulty line is marked within its neighbours, and lines far away are left out."""
    graph = _sound()
    foreign = Value("9", graph.inputs[0].type)
    last = graph.ops[2]
    broken = replace(graph, ops=(*graph.ops[:2], Op("neg", (foreign,), last.results)))
    with pytest.raises(VerifyError) as caught:
        verify(broken, RULES)
    lines = str(caught.value).splitlines()
    assert ">   %3 = neg %9 : float32[N, 3]" in lines
    assert '    output %3 "y"' in lines
    assert not any("symbol N" in line for line in lines)


def test_a_fault_within_a_region_marks_the_region() -> None:
    """The window covers the whole region that holds the fault."""
    graph = _sound()
    region = graph.ops[1]
    body = replace(region.body(), ops=())
    with pytest.raises(VerifyError, match=r"> .*region"):
        verify(replace(graph, ops=(graph.ops[0], replace(region, region=body), graph.ops[2])), RULES)
