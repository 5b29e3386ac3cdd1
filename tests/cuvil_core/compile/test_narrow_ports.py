"""Narrow types through the whole compiler: arrays of ml_dtypes in and out of generated code."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from cuvil_core.artifact import open_artifact
from cuvil_core.compile import compile_model
from cuvil_core.contract import CompileRequest
from cuvil_core.errors import InputError
from cuvil_core.importer.onnx.tensors import ELEMENTS
from cuvil_core.ir import Element
from cuvil_core.runtime import CuvilModule, load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
Array = np.ndarray[Any, Any]
CODES = {element: code for code, element in ELEMENTS.items()}

GREATEST = {
    Element.FLOAT8_E4M3FN: 448.0,
    Element.FLOAT8_E4M3FNUZ: 240.0,
    Element.FLOAT8_E5M2: 57344.0,
    Element.FLOAT8_E5M2FNUZ: 57344.0,
    Element.FLOAT4_E2M1: 6.0,
}


@pytest.fixture(scope="module")
def module() -> CuvilModule:
    """For each type an input, transposed as an output, widened as another, and rounded from a float input."""
    nodes, inputs, outputs = [], [helper.make_tensor_value_info("f", TensorProto.FLOAT, ["N", 256])], []
    for element, code in CODES.items():
        name = element.value
        nodes += [
            helper.make_node("Transpose", [name], [f"{name}_moved"]),
            helper.make_node("Cast", [name], [f"{name}_wide"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["f"], [f"{name}_rounded"], to=code),
        ]
        inputs.append(helper.make_tensor_value_info(name, code, ["N", 256]))
        for suffix, kind in (("moved", code), ("wide", TensorProto.FLOAT), ("rounded", code)):
            outputs.append(helper.make_tensor_value_info(f"{name}_{suffix}", kind, None))
    graph = helper.make_graph(nodes, "narrow", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
    return load(open_artifact(compile_model(model.SerializeToString(), CompileRequest())))


def _codes(element: Element) -> Array:
    """Every code, in two rows, the second backwards."""
    codes = (np.arange(256) % (1 << element.bits)).astype(np.uint8)
    return np.stack([codes, codes[::-1]]).view(getattr(ml_dtypes, element.value))


@pytest.fixture(scope="module")
def answer(module: CuvilModule) -> dict[str, Array]:
    """One call with all codes and with floats of all sizes."""
    floats = np.linspace(-500, 500, 512, dtype=np.float32).reshape(2, 256)
    return module.run({"f": floats, **{element.value: _codes(element) for element in Element}})


@pytest.mark.parametrize("element", Element, ids=str)
def test_compiled_code_moves_and_converts(element: Element, answer: dict[str, Array]) -> None:
    """Results have ml_dtypes' type; moved codes are the same, wide ones are its numbers."""
    x, name = _codes(element), element.value
    assert answer[f"{name}_moved"].dtype == x.dtype == answer[f"{name}_rounded"].dtype
    np.testing.assert_array_equal(answer[f"{name}_moved"].astype(np.float32), x.T.astype(np.float32))
    np.testing.assert_array_equal(answer[f"{name}_wide"], x.astype(np.float32))


@pytest.mark.parametrize("element", GREATEST, ids=str)
def test_compiled_code_rounds_as_ml_dtypes(element: Element, answer: dict[str, Array]) -> None:
    """Floats within the range get the nearest code, those beyond it the greatest."""
    dtype = getattr(ml_dtypes, element.value)
    limit = GREATEST[element]
    floats = np.linspace(-500, 500, 512, dtype=np.float32).reshape(2, 256)
    want = np.clip(floats, -limit, limit).astype(dtype)
    np.testing.assert_array_equal(answer[f"{element.value}_rounded"].view(np.uint8), want.view(np.uint8))


def test_the_signature_names_narrow_types(module: CuvilModule) -> None:
    """Callers read what to pass, and a byte array in place of it is refused with the same word."""
    assert "int4 int4(N, 256)" in str(module.signature)
    inputs = {"f": np.zeros((2, 256), np.float32), **{one.value: _codes(one) for one in Element}}
    with pytest.raises(InputError, match="input 'int4' is int8, wanted int4"):
        module.run(inputs | {"int4": np.zeros((2, 256), np.int8)})
