"""The runner: levels, checks round each pass, blame."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil_core import reference
from cuvil_core.errors import InputError, InternalError
from cuvil_core.ir import Attribute, Dim, DType, Graph, Payload, TensorType, VerifyError, parse_graph, print_graph
from cuvil_core.ops import new_builder
from cuvil_core.passes import PIPELINES, Property, run, run_passes
from cuvil_core.passes.fuse_elementwise import FuseElementwise
from cuvil_core.passes.merge_common import MergeCommon
from cuvil_core.rewriting import PassResult

GRAPH = parse_graph("""graph {
  symbol N in 1..
  input %0 "x" : float32[N]
  %1 = exp %0 : float32[N]
  %2 = neg %1 : float32[N]
  output %2 "y"
}
""")


@dataclass(frozen=True)
class _Breaks:
    """Drops the first op though it is needed."""

    name: ClassVar[str] = "breaks"
    requires: ClassVar[frozenset[Property]] = frozenset()
    ensures: ClassVar[frozenset[Property]] = frozenset()

    def run(self, graph: Graph) -> PassResult:
        return PassResult(replace(graph, ops=graph.ops[1:]), True)


@dataclass(frozen=True)
class _Promises(_Breaks):
    """Promises what it does not do."""

    name: ClassVar[str] = "promises"
    ensures: ClassVar[frozenset[Property]] = frozenset({Property.ELEMENTWISE_FUSED})

    def run(self, graph: Graph) -> PassResult:
        return PassResult(graph, False)


def test_blame_lands_on_the_pass_that_breaks_the_graph() -> None:
    """The verifier runs after a change, and its error names the pass."""
    with pytest.raises(VerifyError, match="The pass breaks broke the graph"):
        run_passes(GRAPH, [_Breaks()])


def test_what_a_pass_ensures_is_checked() -> None:
    """A promise that is not kept is an internal error."""
    with pytest.raises(InternalError, match=r"After the pass promises .* every elementwise op stands in a region"):
        run_passes(GRAPH, [_Promises()])


def test_what_a_pass_requires_is_checked() -> None:
    """A pass that comes too late is an internal error."""
    with pytest.raises(InternalError, match=r"Before the pass merge-common .* no op is fused yet"):
        run_passes(GRAPH, [FuseElementwise(), MergeCommon()])


def test_unknown_levels_are_refused() -> None:
    """Levels go from 0 to 3."""
    with pytest.raises(InputError, match="no optimization level 4"):
        run(GRAPH, 4)


def test_the_same_graph_gives_the_same_text() -> None:
    """Optimizing is deterministic, so artifacts can be compared by digest."""
    assert print_graph(run(GRAPH, 2)[0]) == print_graph(run(GRAPH, 2)[0])


UNARY = ("exp", "neg", "abs", "tanh", "sigmoid")
BINARY = ("add", "mul", "sub", "max", "min")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random graphs of elementwise ops, broadcasts, reductions, transposes and dots over float32[N, 4]."""
    builder = new_builder()
    shape = (Dim.symbol("N"), Dim.of(4))
    known = [builder.input(name, TensorType(DType.FLOAT32, shape)) for name in ("x", "y")]
    known.append(builder.emit("broadcast_to", [builder.scalar(DType.FLOAT32, 0.5)], {"shape": shape}))
    for _ in range(draw(st.integers(1, 10))):
        pick = st.sampled_from(known)
        match draw(st.sampled_from(("unary", "binary", "reduce", "transpose", "dot"))):
            case "unary":
                known.append(builder.emit(draw(st.sampled_from(UNARY)), [draw(pick)]))
            case "binary":
                known.append(builder.emit(draw(st.sampled_from(BINARY)), [draw(pick), draw(pick)]))
            case "reduce":
                total = builder.emit("reduce", [draw(pick)], {"kind": "max", "axes": (1,)})
                column = builder.emit("reshape", [total], {"shape": (shape[0], Dim.of(1))})
                known.append(builder.emit("broadcast_to", [column], {"shape": shape}))
            case "transpose":
                turned = builder.emit("transpose", [draw(pick)], {"perm": (1, 0)})
                known.append(builder.emit("transpose", [turned], {"perm": (1, 0)}))
            case "dot":
                axes = {"batch_a": (), "batch_b": (), "contract_a": (1,), "contract_b": (1,)}
                gram = builder.emit("dot", [draw(pick), draw(pick)], axes)
                axes = {**axes, "contract_b": (0,)}
                known.append(builder.emit("tanh", [builder.emit("dot", [gram, draw(pick)], axes)]))
    outputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    return builder.finish(outputs, [str(at) for at in range(len(outputs))])


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, len(PIPELINES) - 1))
def test_optimizing_keeps_the_numbers(graph: Graph, level: int) -> None:
    """Any graph gives at every level what it gave before, within rounding."""
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((3, 4), dtype=np.float32) for name in ("x", "y")}
    want, got = reference.run(graph, inputs), reference.run(run(graph, level)[0], inputs)
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=2e-3, atol=1e-4)


HOSTILE = parse_graph(Path(__file__).with_name("hostile.txt").read_text())


@pytest.mark.timeout(10)
def test_folding_does_not_hold_up_the_compiler() -> None:
    """Giant sums and convolutions of constants are left to run time, with the reason."""
    graph, notes = run(HOSTILE, 2)
    assert any("would take too long" in note.text for note in notes)
    names = {op.name for region in graph.ops for op in (region, *(region.region.ops if region.region else ()))}
    assert {"reduce"} <= names


def _stretched_weights() -> Graph:
    """A convolution and a look-up whose weights are one number, or one row, stretched; scales follow."""
    builder = new_builder()
    x = builder.input("x", TensorType.of(DType.FLOAT32, [Dim.symbol("N"), 3, 5, 5]))
    weights = builder.scalar(DType.FLOAT32, 0.25)
    wide = builder.emit("broadcast_to", [weights], {"shape": tuple(map(Dim.of, (4, 3, 3, 3)))})
    ones = (1, 1)
    windows: dict[str, Attribute] = {"strides": ones, "pads": (0,) * 4, "dilations": ones, "base_dilations": ones}
    windows["groups"] = 1
    conv = builder.emit("conv", [x, wide], windows)
    scale = builder.constant(Payload.of(DType.FLOAT32, (4, 1, 1), [1.0, 2.0, -3.0, 0.5]))
    scaled = builder.emit("mul", [conv, builder.emit("broadcast_to", [scale], {"shape": conv.shape})])
    rows = builder.input("rows", TensorType.of(DType.INT64, [Dim.symbol("N"), 1]))
    line = builder.constant(Payload.of(DType.INT64, (6,), list(range(6))))
    shape = {"shape": (Dim.symbol("N"), Dim.of(6))}
    hit = builder.emit("eq", [builder.emit("broadcast_to", [one], shape) for one in (rows, line)])
    row = builder.constant(Payload.of(DType.FLOAT32, (1, 2), [5.0, 7.0]))
    table = builder.emit("broadcast_to", [row], {"shape": (Dim.of(6), Dim.of(2))})
    axes = {"batch_a": (), "batch_b": (), "contract_a": (1,), "contract_b": (0,)}
    found = builder.emit("dot", [builder.emit("cast", [hit], {"dtype": DType.FLOAT32}), table], axes)
    return builder.finish([scaled, found], ["scaled", "found"])


@pytest.mark.parametrize("level", range(len(PIPELINES)))
def test_weights_that_are_stretched_keep_their_extents(level: int) -> None:
    """Passes that read the small array behind a stretched constant put one of the whole shape in its place."""
    graph = _stretched_weights()
    inputs: dict[str, np.ndarray[Any, Any]] = {
        "x": np.random.default_rng(3).standard_normal((2, 3, 5, 5), dtype=np.float32),
        "rows": np.array([[4], [0]], np.int64),
    }
    want, got = reference.run(graph, inputs), reference.run(run(graph, level)[0], inputs)
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)
