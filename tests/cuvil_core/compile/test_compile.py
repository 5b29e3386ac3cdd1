"""The compiler end to end on small models: what an artifact says, and that equal inputs give equal bytes."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cuvil_core.artifact import open_artifact
from cuvil_core.compile import artifact_name, check_dtypes, compile_model, variants_of
from cuvil_core.contract import CompileRequest, InputSpec
from cuvil_core.errors import InputError, ModelError, SizeError, TargetError, UnsupportedOpError
from cuvil_core.ir import DType
from cuvil_core.runtime import load
from graph_checks import Maker

pytestmark = pytest.mark.timeout(600)
"""The first build on a machine also builds the C compiler's runtime pieces."""


def small_model(name: str = "small") -> bytes:
    """Two convolutions, a sum and a pool over a picture of any size."""
    random = np.random.default_rng(0)
    first = numpy_helper.from_array(random.normal(size=(24, 3, 3, 3)).astype(np.float32), "first")
    second = numpy_helper.from_array(random.normal(size=(24, 24, 3, 3)).astype(np.float32) / 15, "second")
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "b"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["y"]),
    ]
    shape = ["N", 3, "H", "W"]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 24, 1, 1])],
        [first, second],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"labels": "one,two"})
    return bytes(model.SerializeToString())


@pytest.fixture(scope="module")
def artifact() -> bytes:
    """The small model, compiled for the shipped target."""
    return compile_model(small_model(), CompileRequest(target="x86_64-cpu"))


def test_equal_inputs_give_equal_bytes(artifact: bytes) -> None:
    """A second compilation of the same model and request is the same file."""
    assert compile_model(small_model(), CompileRequest(target="x86_64-cpu")) == artifact


def test_the_manifest_says_what_it_holds(artifact: bytes) -> None:
    """Names, symbols, metadata, both variants, guards' texts and sizes stand in the manifest."""
    made = open_artifact(artifact).manifest
    assert made.name == "small"
    assert made.inputs[0].shape[1] == 3 and made.outputs[0].shape[1:] == (24, 1, 1)
    assert made.metadata == {"labels": "one,two"}
    assert {part.name for part in made.segments} >= {"lib:x86_64-avx2", "lib:x86_64-avx512", "weights"}
    assert list(made.facts["variants"]) == ["x86_64-avx2", "x86_64-avx512"]
    assert made.facts["guards"][-1].startswith("that all sizes stay below")
    assert made.facts["arena_bytes_at_least"] > 0 and made.facts["arena_bytes_at_most"] is None


def test_variants_share_their_weights(artifact: bytes) -> None:
    """The weight segment holds each packed operand once, though two libraries read it."""
    made = open_artifact(artifact).manifest
    (segment,) = [part for part in made.segments if part.name == "weights"]
    assert segment.size == made.facts["weight_bytes"]


def test_bounds_limit_the_arena(tmp_path: Path) -> None:
    """With bounds for every symbol the greatest arena is known, and a shape beyond them is refused."""
    spec = InputSpec("x", ("N", 3, "H", "W"), {"N": (1, 2), "H": (8, 16), "W": (8, 16)})
    path = tmp_path / "bounded.cuvil"
    path.write_bytes(compile_model(small_model(), CompileRequest(target="native", inputs=(spec,))))
    module = load(path)
    facts = module.artifact.manifest.facts
    assert facts["arena_bytes_at_least"] < facts["arena_bytes_at_most"] < 1 << 20
    assert module(np.ones((2, 3, 16, 16), np.float32)).shape == (2, 24, 1, 1)
    with pytest.raises(InputError):
        module(np.ones((3, 3, 16, 16), np.float32))


def test_sizes_beyond_memory_are_refused(artifact: bytes, tmp_path: Path) -> None:
    """Extents whose products leave int64 or 64 TiB are an error of `cuvil_prepare`, never a small arena."""
    path = tmp_path / "small.cuvil"
    path.write_bytes(artifact)
    module = load(path)
    for symbols in ((1 << 40, 1 << 20, 1 << 20), (1 << 62, 8, 8), (1 << 33, 1 << 33, 1 << 33), (1, 1 << 24, 1 << 24)):
        with pytest.raises((InputError, SizeError)):
            module._plan(symbols)


def test_progress_is_told() -> None:
    """Stages come in order and end at 1."""
    heard: list[tuple[str, float]] = []
    request = CompileRequest(target="native")
    compile_model(small_model(), request, progress=lambda stage, part: heard.append((stage, part)))
    parts = [part for _, part in heard]
    assert parts == sorted(parts) and heard[0] == ("import", 0.0) and heard[-1] == ("done", 1.0)


def test_targets_without_back_end_are_refused() -> None:
    """The error names what exists."""
    with pytest.raises(TargetError, match="x86_64-cpu"):
        variants_of("cuda-sm_90")


def test_broken_models_are_refused() -> None:
    """Bytes that are no model end in ModelError."""
    with pytest.raises(ModelError):
        compile_model(b"nonsense", CompileRequest())


def test_names_are_fit_for_metrics() -> None:
    """Whatever the graph is called, the artifact's name is short and plain."""
    assert artifact_name("my model/ä") == "my-model"
    assert artifact_name("") == "model"


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_levels_agree(level: int, tmp_path: Path) -> None:
    """Every optimization level computes the same up to rounding."""
    path = tmp_path / "level.cuvil"
    path.write_bytes(compile_model(small_model(), CompileRequest(opt_level=level)))
    x = np.random.default_rng(1).normal(size=(2, 3, 13, 9)).astype(np.float32)
    session = ReferenceEvaluator(onnx.load_from_string(small_model()))
    np.testing.assert_allclose(load(path)(x), session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)


def in_bfloat16(op_type: str) -> bytes:
    """An op on a tensor of bfloat16, an input and an output."""
    inputs = ["x"] * (2 if op_type in ("Add", "Greater") else 1)
    kind = TensorProto.BOOL if op_type in ("Greater", "IsNaN") else TensorProto.BFLOAT16
    ports = (("x", TensorProto.BFLOAT16, ["N", 4]), ("y", kind, None))
    x, y = (helper.make_tensor_value_info(*one) for one in ports)
    graph = helper.make_graph([helper.make_node(op_type, inputs, ["y"], name="the_node")], "narrow", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("op_type", ["Identity", "Add", "Exp", "ReduceMax", "Greater", "IsNaN"])
def test_bfloat16_is_computed_in_float32_and_rounded_once_a_node(op_type: str) -> None:
    """What comes out is what ONNX's own evaluator rounds to, for arrays of ml_dtypes in and out."""
    x = np.array([[0, 1, -2.5, 3.14159], [np.nan, np.inf, 300, 1e-3]], np.float32).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):
        want = {
            "Identity": x,
            "Add": (wide + wide).astype(x.dtype),
            "Exp": np.exp(wide).astype(x.dtype),
            "ReduceMax": np.max(wide, keepdims=True).astype(x.dtype),
            "Greater": wide > wide,
            "IsNaN": np.isnan(wide),
        }[op_type]
    got = load(open_artifact(compile_model(in_bfloat16(op_type), CompileRequest())))(x)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_bfloat16_is_refused_where_a_kernel_would_compute_it() -> None:
    """A primitive on bfloat16 that no importer makes is refused, never computed on the bits of its elements."""
    make = Maker()
    x = make.input("x", 4, dtype=DType.BFLOAT16)
    with pytest.raises(UnsupportedOpError, match="has no kernel for bfloat16"):
        check_dtypes(make.done(make.op("add", x, x)).ops)
