"""Real models: imported, interpreted, optimized, compared with ONNX Runtime."""

from pathlib import Path

import onnxruntime
import pytest

from cuvil_core import reference
from cuvil_core.importer.onnx import load
from cuvil_core.passes import run
from model_cases import CASES, ModelCase, excess
from models import model_path

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_models_give_what_onnx_runtime_gives(case: ModelCase) -> None:
    """Each model gives ONNX Runtime's numbers on three shapes when optimized, and on the first as imported."""
    path = Path(model_path(case.name))
    graph = load(path, case.specs)
    optimized, _ = run(graph, 2)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for shape in case.shapes:
        inputs = case.inputs(shape)
        want = dict(zip(names, session.run(None, inputs), strict=True))
        assert max(float(array.std()) for array in want.values()) > 1e-3, "the inputs must make the outputs vary"
        for form in (graph, optimized) if shape == case.shapes[0] else (optimized,):
            got = reference.run(form, inputs)
            worst = max(excess(got[name], want[name]) for name in names)
            assert worst <= 1, f"{case.name} at {shape} is {worst:.3g} times the bound away"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_batch_stays_symbolic(case: ModelCase) -> None:
    """The first extent of every input and output depends on a symbol, and equal extents have one spelling."""
    graph = load(Path(model_path(case.name)), case.specs)
    assert all(value.shape[0].symbols for value in (*graph.inputs, *graph.outputs))
    for op in graph.ops:
        if op.name in ("add", "mul", "select", "max"):
            assert len({operand.shape for operand in op.operands}) == 1, f"{op.provenance} joins two spellings"
