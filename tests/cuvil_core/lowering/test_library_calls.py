"""Functions of the support library: reference, interpreter and code agree on random, equal and odd elements."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuvil_core import passes, reference
from cuvil_core.ir import DType, Graph, Value
from cuvil_core.program.calls import SORTED
from graph_checks import Maker, assert_same, interpreted, module_of, variants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""C compilers take their time on a busy machine."""


def _sorted_both_ways() -> Graph:
    """One input of each dtype, [N, M]: the order of its rows, up and down."""
    make = Maker()
    outputs = []
    for dtype in SORTED:
        x = make.input(dtype.value, "N", "M", dtype=dtype)
        outputs += [make.op("sort_order", x, descending=flag) for flag in (False, True)]
    return make.done(*outputs)


def _numbers(random: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> np.ndarray[Any, np.dtype[Any]]:
    """Few distinct numbers, so that equals occur; for floats infinities, zeros of both signs and NaN too."""
    numbers = random.integers(0, 9, shape).astype(dtype.value)
    if dtype.is_signed:
        numbers = numbers - np.asarray(4, dtype.value)
    if dtype.is_float:
        odd = random.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.5], dtype.value), shape)
        numbers = np.where(random.random(shape) < 0.3, odd, numbers)
    return np.asarray(numbers, dtype.value)


def test_rows_are_sorted_stably(tmp_path: Path) -> None:
    """Every dtype, both directions, lengths round powers of two."""
    graph = _sorted_both_ways()
    modules = [module_of(graph, variant, tmp_path) for variant in variants()]
    random = np.random.default_rng(0)
    for shape in ((1, 1), (3, 2), (2, 7), (1, 8), (5, 33)):
        inputs = {dtype.value: _numbers(random, dtype, shape) for dtype in SORTED}
        wanted = reference.run(graph, inputs)
        up, down = wanted["out0"], wanted["out1"]
        int8 = inputs["int8"]
        assert (np.diff(np.take_along_axis(int8, up, 1).astype(int), axis=1) >= 0).all()
        assert (np.diff(np.take_along_axis(int8, down, 1).astype(int), axis=1) <= 0).all()
        for found in (interpreted(graph, inputs), *(module.run(inputs) for module in modules)):
            assert_same(found, wanted)


def test_order_of_odd_floats() -> None:
    """NaN counts as the greatest; equals keep their order both ways."""
    x = np.array([[1.0, np.nan, -np.inf, 1.0, np.inf, 0.0, -0.0]], np.float32)
    make = Maker()
    value = make.input("x", 1, 7)
    graph = make.done(*(make.op("sort_order", value, descending=flag) for flag in (False, True)))
    found = reference.run(graph, {"x": x})
    assert found["out0"].tolist() == [[2, 5, 6, 0, 3, 4, 1]]
    assert found["out1"].tolist() == [[1, 4, 0, 3, 5, 6, 2]]


def _chosen(make: Maker, mask: Value) -> Value:
    count = make.op("reduce", make.op("cast", mask, dtype=DType.INT64), kind="sum", axes=(0,))
    return make.op("positions", mask, count=(make.builder.bind(count),))


@pytest.mark.parametrize("level", [0, 2])
def test_places_of_true_elements(level: int, tmp_path: Path) -> None:
    """As many places as there are true elements, none included; what reads them follows."""
    make = Maker()
    x = make.input("x", "N")
    places = _chosen(make, make.op("gt", x, make.filled(0, x)))
    graph, _ = passes.run(make.done(places, make.op("exp", make.op("gather", x, places, axis=0))), level)
    modules = [module_of(graph, variant, tmp_path) for variant in variants()]
    random = np.random.default_rng(1)
    for x_ in (random.normal(size=100), -np.ones(7), np.ones(64), random.normal(size=1)):
        inputs = {"x": x_.astype(np.float32)}
        wanted = reference.run(graph, inputs)
        assert wanted["out0"].tolist() == np.flatnonzero(inputs["x"] > 0).tolist()
        for found in (interpreted(graph, inputs), *(module.run(inputs) for module in modules)):
            assert_same(found, wanted)


@pytest.mark.parametrize("centered", [False, True])
def test_overlapping_boxes_are_suppressed(centered: bool, tmp_path: Path) -> None:
    """Random boxes of several batches and classes, with equal scores and scores that are no numbers."""
    make = Maker()
    boxes, scores = make.input("boxes", "B", "N", 4), make.input("scores", "B", "C", "N")
    limits = [make.input("most", dtype=DType.INT64), make.input("overlap"), make.input("least")]
    graph = make.done(make.op("suppress", boxes, scores, *limits, centered=centered))
    modules = [module_of(graph, variant, tmp_path) for variant in variants()]
    random = np.random.default_rng(2)
    for most, overlap, least in ((3, 0.3, 0.2), (100, 0.0, -1.0), (0, 0.5, 0.0), (-1, 0.5, 0.0), (5, 1.0, 0.9)):
        inputs: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
            "boxes": random.uniform(-1, 2, (2, 20, 4)).astype(np.float32),
            "scores": np.round(random.uniform(size=(2, 3, 20)), 1).astype(np.float32),
            "most": np.array(most, np.int64),
            "overlap": np.array(overlap, np.float32),
            "least": np.array(least, np.float32),
        }
        inputs["scores"][0, 0, :3] = np.nan
        wanted = reference.run(graph, inputs)
        for found in (interpreted(graph, inputs), *(module.run(inputs) for module in modules)):
            assert_same(found, wanted)
