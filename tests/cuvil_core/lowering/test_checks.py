"""Indices that come with the inputs are checked: those outside end the call with a sentence."""

from pathlib import Path

import numpy as np
import pytest

from cuvil_core import passes, reference
from cuvil_core.errors import InputError, ModelError
from cuvil_core.ir import DType, Graph, Value
from cuvil_core.lowering import lower
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import Maker, assert_same, interpreted, module_of, variants

pytestmark = pytest.mark.timeout(600)
"""C compilers take their time on a busy machine."""
CONDITION = r"inputs' values break the model's condition that the indices of .* lie in"


def _gathered(make: Maker, data: Value, rows: Value) -> Value:
    """As an importer writes ONNX's Gather: negative indices count from the end, then all must be within."""
    (extent,) = data.shape[:1]
    count = make.op("cast", make.op("reshape", make.op("dim_vector", dims=(extent,)), shape=()), dtype=rows.dtype)
    wrapped = make.op("add", rows, make.op("broadcast_to", count, shape=rows.shape))
    below = make.op("lt", rows, make.filled(0, rows))
    picked = make.op("select", below, wrapped, rows)
    return make.op("gather", data, make.op("in_bounds", picked, extent=(extent,)), axis=0)


def _graph(dtype: DType, *shape: int | str) -> Graph:
    make = Maker()
    data = make.input("data", "N", 3)
    return make.done(_gathered(make, data, make.input("rows", *shape, dtype=dtype)))


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64], ids=str)
def test_indices_of_the_caller_are_checked(dtype: DType, level: int, tmp_path: Path) -> None:
    """From -n to n - 1 all rows are found; with one beyond, reference, interpreter and code refuse the call."""
    graph, _ = passes.run(_graph(dtype, "H", 5), level)
    modules = [module_of(graph, variant, tmp_path) for variant in variants()]
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = (np.arange(15) % 8 - 4).reshape(3, 5).astype(dtype.value)
    inputs = {"data": data, "rows": rows}
    for found in (reference.run(graph, inputs), interpreted(graph, inputs), *(one.run(inputs) for one in modules)):
        assert_same(found, {"out0": data[rows]})
    for wrong in (4, -5, np.iinfo(dtype.value).max, np.iinfo(dtype.value).min):
        for place in ((0, 0), (2, 4)):
            bad = rows.copy()
            bad[place] = wrong
            for run in (lambda given: reference.run(graph, given), lambda given: interpreted(graph, given)):
                with pytest.raises(InputError):
                    run({"data": data, "rows": bad})
            for module in modules:
                with pytest.raises(InputError, match=CONDITION):
                    module.run({"data": data, "rows": bad})


def test_one_index_and_no_index(tmp_path: Path) -> None:
    """A scalar is checked as well; where there is no index there is nothing to refuse."""
    graph, _ = passes.run(_graph(DType.INT64), 2)
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    for variant in variants():
        module = module_of(graph, variant, tmp_path)
        assert_same(module.run({"data": data, "rows": np.array(-1)}), {"out0": data[-1]})
        with pytest.raises(InputError, match=r"lie in -N \.\. N - 1"):
            module.run({"data": data, "rows": np.array(2)})
    make = Maker()
    rows = make.op("slice", make.input("rows", "H", dtype=DType.INT64), starts=(0,), sizes=(0,), steps=(1,))
    empty, _ = passes.run(make.done(_gathered(make, make.input("data", "N", 3), rows)), 2)
    given = {"data": data, "rows": np.array([99])}
    assert interpreted(empty, given)["out0"].shape == (0, 3)


def test_what_is_proved_is_not_checked_again() -> None:
    """Positions of extremes within the table need no kernel; constants outside are the model's error."""
    make = Maker()
    x = make.input("x", "N", 4)
    best = make.op("arg_reduce", x, kind="max", axis=1, select_last=False)
    graph, _ = passes.run(make.done(_gathered(make, make.constant(4, 3), best)), 2)
    assert not lower(graph, choose(graph, Machine.of(Isa.AVX2))).asserts
    graph, _ = passes.run(make.done(_gathered(make, make.constant(3, 3), best)), 2)
    assert len(lower(graph, choose(graph, Machine.of(Isa.AVX2))).asserts) == 1
    rows = make.numbers([0, 3], DType.INT64)
    with pytest.raises(ModelError, match=r"outside of -3 .. 2"):
        passes.run(make.done(_gathered(make, make.constant(3, 3), rows)), 2)
