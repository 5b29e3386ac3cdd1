"""Extents that a call computes from its data: reference, interpreter and code agree, and refuse alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuvil_core import passes, reference
from cuvil_core.errors import InputError
from cuvil_core.ir import Dim, DType, Graph, Relation, VerifyError, parse_graph, print_graph, verify
from cuvil_core.ops import RULES
from graph_checks import Maker, assert_same, interpreted, module_of, variants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""C compilers take their time on a busy machine."""
LEVELS = [0, 2]
Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]


def _stretched() -> Graph:
    """x[N], n[2] → x repeated: [n0, n1, N], the sums of its rows [n0, n1], and x itself plus 1."""
    make = Maker()
    x, n = make.input("x", "N"), make.input("n", 2, dtype=DType.INT64)
    extents = []
    for at in range(2):
        one = make.op("slice", n, starts=(at,), sizes=(1,), steps=(1,))
        extents.append(make.builder.bind(make.op("reshape", one, shape=())))
    wide = make.op("broadcast_to", x, shape=(*extents, *x.shape))
    double = make.op("add", wide, wide)
    sums = make.op("reduce", double, kind="sum", axes=(2,))
    deep = make.op("exp", make.op("transpose", sums, perm=(1, 0)))
    return make.done(double, sums, deep, make.op("add", x, make.filled(1, x)))


@pytest.mark.parametrize("level", LEVELS)
def test_shapes_follow_the_data(level: int, tmp_path: Path) -> None:
    """One artifact gives outputs of any extents that its inputs ask for, 0 included."""
    graph, _ = passes.run(_stretched(), level)
    modules = [module_of(graph, variant, tmp_path) for variant in variants()]
    for n in ([2, 3], [1, 1], [0, 4], [33, 17], [3, 0]):
        inputs: Arrays = {"x": np.linspace(-1, 0.5, 19).astype(np.float32), "n": np.array(n, np.int64)}
        wanted = reference.run(graph, inputs)
        assert wanted["out0"].shape == (*n, 19)
        assert_same(interpreted(graph, inputs), wanted)
        for module in modules:
            assert_same(module.run(inputs), wanted)


@pytest.mark.parametrize("level", LEVELS)
def test_negative_extents_are_refused(level: int, tmp_path: Path) -> None:
    """A negative extent is an error of the input with a sentence, in all three."""
    graph, _ = passes.run(_stretched(), level)
    inputs: Arrays = {"x": np.ones(3, np.float32), "n": np.array([2, -1], np.int64)}
    module = module_of(graph, variants()[-1], tmp_path)
    for run in (reference.run, interpreted):
        with pytest.raises(InputError, match=r"extent of .* -1"):
            run(graph, inputs)
    with pytest.raises(InputError, match=r"that the extent _2 of .* is not negative"):
        module.run(inputs)


def test_guards_wait_for_their_extents(tmp_path: Path) -> None:
    """A guard on an extent from data is checked once that is known; extents that it settles are numbers after it."""
    make = Maker()
    x, n = make.input("x", "N"), make.input("n", dtype=DType.INT64)
    extent = make.builder.bind(n)
    make.builder.guard(extent, 4)
    make.builder.guard(3, x.shape[0] - extent, Relation.AT_MOST)
    wide = make.op("broadcast_to", make.op("slice", x, starts=(0,), sizes=(1,), steps=(1,)), shape=(extent,))
    graph, _ = passes.run(make.done(make.op("exp", wide)), 2)
    assert graph.outputs[0].shape == (Dim.of(4),)
    module = module_of(graph, variants()[-1], tmp_path)
    right = {"x": np.arange(7, dtype=np.float32), "n": np.array(4)}
    assert_same(module.run(right), reference.run(graph, right))
    for wrong in ({**right, "n": np.array(5)}, {**right, "x": np.ones(6, np.float32)}):
        for run in (lambda given: reference.run(graph, given), lambda given: interpreted(graph, given), module.run):
            with pytest.raises(InputError, match=r"<= N|== 4"):
                run(wrong)


def test_nonsense_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    """Sizes beyond 64 bits or beyond the memory are errors, and the module serves on."""
    graph, _ = passes.run(_stretched(), 2)
    module = module_of(graph, variants()[-1], tmp_path)
    x = np.ones(3, np.float32)
    for n in ([1 << 62, 1 << 62], [1 << 40, 1], [1 << 20, 1 << 17]):
        with pytest.raises(Exception, match=r"sizes stay below|memory"):
            module.run({"x": x, "n": np.array(n)})
    assert module.run({"x": x, "n": np.array([1, 1])})["out1"] == 6


def test_text_and_verifier() -> None:
    """The text gives the graph back; a symbol that is used before its bind, or bound twice, is found."""
    graph = _stretched()
    text = print_graph(graph)
    assert print_graph(parse_graph(text)) == text
    binds = [op for op in graph.ops if op.name == "bind"]
    others = [op for op in graph.ops if op not in binds]
    with pytest.raises(VerifyError, match="before it is bound"):
        verify(replace(graph, ops=(*others, *binds)), RULES)
    again = replace(binds[1], attributes=binds[0].attributes)
    with pytest.raises(VerifyError, match="_1 is bound twice"):
        verify(replace(graph, ops=tuple(again if op is binds[1] else op for op in graph.ops)), RULES)
