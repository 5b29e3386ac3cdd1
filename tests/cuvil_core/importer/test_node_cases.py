"""ONNX's own test cases, one op each: whatever is imported must compute the expected outputs."""

import warnings
from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cuvil_core import reference
from cuvil_core.errors import CuvilError, InputError, InternalError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.importer.onnx.table import TABLE
from cuvil_core.ir import Graph
from cuvil_core.passes import run

Arrays = list[np.ndarray[Any, Any]]
LEAST_RIGHT = 1780
"""Cases that must be computed rightly; raise it when ops are added."""
SETTINGS = frozenset(
    (
        "scales",
        "roi",
        "constant_value",
        "training_mode",
        "axis",
        "depth",
        "t",
        "start",
        "limit",
        "delta",
        "num_mel_bins",
        "dft_length",
        "sample_rate",
        "lower_edge_hertz",
        "upper_edge_hertz",
    )
)
"""Inputs that say how to compute, not what."""
SCALARS = ("HannWindow", "HammingWindow", "BlackmanWindow", "Dropout")
"""Ops whose scalar inputs are settings."""
LOW_PRECISION = ("float16", "bfloat16")


def _cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    return [case for case in cases if case.model is not None and all(map(_plain, case.data_sets[0]))]


def _plain(values: list[Any]) -> bool:
    """True where no value is a sequence or an optional."""
    return all(isinstance(value, onnx.TensorProto | np.ndarray | np.generic | int | float) for value in values)


def _arrays(values: list[Any]) -> Arrays:
    return [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v) for v in values]


def _frozen(model: onnx.ModelProto, inputs: Arrays) -> onnx.ModelProto:
    """The model with its small integer vectors (axes, shapes, pads) as constants, which exporters write too."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for proto, array in zip(model.graph.input, inputs, strict=False):
        shape_like = array.dtype == np.int64 and array.ndim <= 1 and array.size <= 16
        shape_like |= array.ndim == 0 and model.graph.node[0].op_type in SCALARS
        if shape_like or proto.name in SETTINGS:
            model.graph.initializer.append(numpy_helper.from_array(array, proto.name))
    return model


def _load(model: onnx.ModelProto, inputs: Arrays) -> Graph:
    try:
        return load(model.SerializeToString())
    except UnsupportedOpError as error:
        if "make that" not in str(error):
            raise
        return load(_frozen(model, inputs).SerializeToString())


def _check(graph: Graph, model: onnx.ModelProto, inputs: Arrays, outputs: Arrays) -> None:
    named = zip(model.graph.input, inputs, strict=False)
    feed = {proto.name: array for proto, array in named if proto.name in graph.input_names}
    for form in (graph, run(graph, 2)[0]):
        got = reference.run(form, feed)
        for proto, want in zip(model.graph.output, outputs, strict=True):
            found = got[proto.name]
            assert (found.shape, found.dtype) == (want.shape, want.dtype)
            rtol, atol = (2e-2, 2e-3) if str(want.dtype) in LOW_PRECISION else (1e-3, 1e-5)
            np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol, atol)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_imported_case_is_right() -> None:
    """Each of ONNX's node cases is refused by a named error or gives its expected outputs, optimized or not."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for case in _cases():
        inputs, outputs = (_arrays(values) for values in case.data_sets[0])
        try:
            graph = _load(case.model, inputs)
        except InternalError as error:
            wrong.append(f"{case.name}: {error}")
            continue
        except ModelError as error:
            outcomes[type(error).__name__] += 1
            continue
        try:
            _check(graph, case.model, inputs, outputs)
            outcomes["right"] += 1
        except InputError as error:  # values that a call refuses, such as chances in training
            outcomes[type(error).__name__] += 1
        except (AssertionError, CuvilError, ValueError, TypeError) as error:
            wrong.append(f"{case.name}: {str(error)[:200]}")
    assert not wrong, "\n".join(wrong)
    assert outcomes["right"] >= LEAST_RIGHT, outcomes


def test_no_case_of_a_known_op_is_called_unknown() -> None:
    """Every op of the table appears among ONNX's ops of some opset, so that no entry has a misspelt name."""
    known = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    assert {(entry.domain, name) for name, entries in TABLE.items() for entry in entries} <= known
