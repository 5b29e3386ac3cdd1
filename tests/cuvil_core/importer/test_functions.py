"""Functions: the model's own and those of ONNX's schemas, in scopes of their own, bounded and named in errors."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core import reference
from cuvil_core.errors import CuvilError, ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph

F32 = TensorProto.FLOAT
Array = np.ndarray[Any, Any]
IMPORTS = (helper.make_opsetid("", 17), helper.make_opsetid("own", 1))


def _function(name: str, nodes: list[onnx.NodeProto], **more: Any) -> onnx.FunctionProto:
    inputs, outputs = more.pop("inputs", ["x"]), more.pop("outputs", ["y"])
    imports = more.pop("imports", IMPORTS)
    return helper.make_function("own", name, inputs, outputs, nodes, imports, **more)


def _model(nodes: list[onnx.NodeProto], *functions: onnx.FunctionProto, shape: Any = ("N",), out: str = "z") -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("a", F32, shape)],
        [helper.make_tensor_value_info(out, F32, None)],
        [numpy_helper.from_array(np.array([10], np.float32), "ten")],
    )
    return bytes(helper.make_model(graph, opset_imports=IMPORTS, functions=functions).SerializeToString())


def _call(name: str, *inputs: str, out: str = "z", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(name, list(inputs), [out], name=f"call-{name}", domain="own", **attributes)


def _run(graph: Graph, *values: float) -> list[float]:
    found: list[float] = next(iter(reference.run(graph, {"a": np.array(values, np.float32)}).values())).tolist()
    return found


def _refer(op_type: str, name: str, kind: int, given: str) -> onnx.NodeProto:
    """A node whose attribute is the function's."""
    node = helper.make_node(op_type, ["x"], ["y"])
    node.attribute.add(name=name, type=kind, ref_attr_name=given)
    return node


def test_names_of_a_body_do_not_meet_those_of_the_caller() -> None:
    """A function whose inner names are also the caller's, called twice, computes with its own."""
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["ten"])]
    function = _function("NegExp", [*nodes, helper.make_node("Identity", ["ten"], ["y"])])
    calls = [_call("NegExp", "a", out="b"), _call("NegExp", "b", out="c"), helper.make_node("Add", ["c", "ten"], ["z"])]
    want = np.exp(-np.exp(-np.array([0, 1], np.float32))) + 10
    np.testing.assert_allclose(_run(load(_model(calls, function)), 0, 1), want, rtol=1e-6)


def test_attributes_of_a_call_and_defaults_reach_the_body() -> None:
    """A reference takes the call's attribute, else the function's default, else the op's own default."""
    body = [_refer("LeakyRelu", "alpha", onnx.AttributeProto.FLOAT, "slope")]
    required = _function("Leaky", body, attributes=["slope"])
    defaulted = _function("Leaky", body, attribute_protos=[helper.make_attribute("slope", 0.5)])
    assert _run(load(_model([_call("Leaky", "a", slope=0.25)], required)), -4) == [-1]
    assert _run(load(_model([_call("Leaky", "a", slope=0.25)], defaulted)), -4) == [-1]
    assert _run(load(_model([_call("Leaky", "a")], defaulted)), -4) == [-2]


def test_inputs_that_are_left_out_are_left_out_within() -> None:
    """An optional input that the caller does not give is none for the body's node either."""
    function = _function(
        "Bounded", [helper.make_node("Clip", ["x", "low", "high"], ["y"])], inputs=["x", "low", "high"]
    )
    model = _model([_call("Bounded", "a", "", "ten")], function)
    assert _run(load(model), -20, 20) == [-20, 10]


def test_functions_call_functions_with_their_own_opsets() -> None:
    """The meaning of a node is that of its function's opset: in 12, Softmax takes all axes from the second on."""
    old = (helper.make_opsetid("", 12), helper.make_opsetid("own", 1))
    inner = _function("Old", [helper.make_node("Softmax", ["x"], ["y"], axis=0)], imports=old)
    outer = _function("Outer", [_call("Old", "x", out="y")])
    graph = load(_model([_call("Outer", "a")], inner, outer, shape=(2, 2)))
    got = reference.run(graph, {"a": np.zeros((2, 2), np.float32)})["z"]
    assert got.tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_a_function_of_the_model_goes_before_the_op_of_the_table() -> None:
    """A model may say what one of ONNX's ops means in it."""
    function = helper.make_function("", "Exp", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], IMPORTS[:1])
    assert _run(load(_model([helper.make_node("Exp", ["a"], ["z"])], function)), 3) == [-3]


def test_provenance_is_the_callers_node_and_the_way_within() -> None:
    """Reports name the node of the user's file; the way into the body is kept beside it."""
    inner = _function("Inner", [helper.make_node("Sin", ["x"], ["y"], name="deep")])
    outer = _function("Outer", [_call("Inner", "x", out="y")])
    (op,) = (op for op in load(_model([_call("Outer", "a")], inner, outer)).ops if op.name == "sin")
    assert (op.provenance.node, op.provenance.op_type) == ("call-Outer", "Outer")
    assert op.provenance.path == "call-Inner Inner/deep Sin"


def test_what_a_call_does_not_need_is_not_translated() -> None:
    """An output of a function that nobody takes may be one that Cuvil cannot compute."""
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("NonZero", ["x"], ["places"])]
    function = _function("Both", nodes, outputs=["y", "places"])
    assert _run(load(_model([_call("Both", "a")], function)), 3) == [-3]


LOOP = _function("Again", [_call("Again", "x", out="y")])
UNKNOWN = _function("Odd", [helper.make_node("StringNormalizer", ["x"], ["y"], name="deep")])
FORK = [_function(f"F{at}", [_call(f"F{at + 1}", "x", out="w"), _call(f"F{at + 1}", "w", out="y")]) for at in range(20)]
LEAF = _function("F20", [helper.make_node("Neg", ["x"], ["y"])])
AROUND = helper.make_function(
    "", "LogSoftmax", ["x"], ["y"],
    [helper.make_node("Cast", ["x"], ["i"], to=7), helper.make_node("SoftmaxCrossEntropyLoss", ["x", "i"], ["y"])],
    IMPORTS[:1], attribute_protos=[helper.make_attribute("axis", 1)],
)  # fmt: skip
REFUSED: dict[str, tuple[bytes, type[CuvilError], str]] = {
    "endless": (_model([_call("Again", "a")], LOOP), ModelError, "Function 'Again' is nested more than 32 deep"),
    "exponential": (_model([_call("F0", "a")], *FORK, LEAF), SizeError, "unfold to more than 200000 nodes"),
    "wrong dtype within": (_model([_call("Odd", "a")], UNKNOWN), UnsupportedOpError,
                           "Node 'call-Odd' .*, within it 'deep' .*StringNormalizer"),
    "not imported within": (_model([_call("Far", "a")], _function("Far", [_call("Other", "x", out="y")],
                                                                  imports=IMPORTS[:1])),
                            UnsupportedOpError, "within it 'call-Other' uses op Other of domain 'own'.*not import"),
    "endless through an op": (_model([helper.make_node("SoftmaxCrossEntropyLoss", ["a", "i"], ["z"], name="n1"),
                                      helper.make_node("Cast", ["a"], ["i"], to=7)][::-1], AROUND, shape=("N", 3)),
                              ModelError, "'n1'.*call ops of ONNX that call them again"),
    "unknown attribute": (_model([_call("F20", "a", b=1)], LEAF), ModelError, r"\['b'\] do not fit the function"),
    "missing attribute": (_model([_call("Need", "a")], _function("Need", [], attributes=["k"])), ModelError,
                          r"\['k'\] do not fit the function"),
    "too many inputs": (_model([_call("F20", "a", "a")], LEAF), ModelError, "2 inputs and 1 outputs, more than"),
    "no such output": (_model([_call("Empty", "a")], _function("Empty", [])), UnsupportedOpError, "its output 0"),
    "two of one name": (_model([_call("Again", "a")], LOOP, LOOP), ModelError, "Two functions.*'Again'"),
    "reference outside": (_model([_refer("LeakyRelu", "alpha", 1, "slope")], shape=(1,), out="y"), ModelError,
                          "an attribute of a function that it is not part of"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_sentences(name: str) -> None:
    """Functions that do not end, do not fit or need more than Cuvil has are refused by the name of the user's node."""
    model, kind, fault = REFUSED[name]
    with pytest.raises(kind, match=fault) as caught:
        load(model)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("batch", [1, 3])
def test_attention_keeps_symbols(batch: int) -> None:
    """A function whose body computes with shapes takes any batch and length."""
    kinds = [helper.make_tensor_value_info(name, F32, ("B", 2, "S", 4)) for name in "qkv"]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    out = helper.make_tensor_value_info("y", F32, None)
    model = helper.make_model(helper.make_graph([node], "g", kinds, [out]), opset_imports=[helper.make_opsetid("", 23)])
    graph = load(model.SerializeToString())
    assert str(graph.outputs[0].type) == "float32[B, 2, S, 4]"
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((batch, 2, 5, 4), np.float32) for _ in range(3))
    scores = np.where(np.tri(5, dtype=bool), q @ k.swapaxes(-1, -2) / 2, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(reference.run(graph, {"q": q, "k": k, "v": v})["y"], want, 1e-4, 1e-5)
