"""Broken, hostile and unsupported models: each is refused in a sentence, before it costs time or memory."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil_core.contract import InputSpec
from cuvil_core.errors import CuvilError, InputError, MissingError, ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx import load

F32 = TensorProto.FLOAT
Nodes = list[onnx.NodeProto]


def _model(nodes: Nodes, shape: Any = ("N", 3), out: str = "y", opset: int = 17, **constants: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", F32, shape)],
        [helper.make_tensor_value_info(out, F32, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _one(op_type: str, *inputs: str, **attributes: Any) -> Nodes:
    return [helper.make_node(op_type, list(inputs or ("x",)), ["y"], name="n1", **attributes)]


def _altered(change: Any) -> onnx.ModelProto:
    model = _model(_one("Exp"))
    change(model)
    return model


def _weight(**fields: Any) -> onnx.ModelProto:
    model = _model(_one("Add", "x", "w"), w=np.ones(3, np.float32))
    for key, value in fields.items():
        setattr(model.graph.initializer[0], key, value)
    return model


def _external(location: str) -> onnx.ModelProto:
    model = _weight(data_location=TensorProto.EXTERNAL, raw_data=b"")
    entry = model.graph.initializer[0].external_data.add()
    entry.key, entry.value = "location", location
    return model


BIG = np.array([1 << 40, 1 << 20], np.int64)
CASES: dict[str, tuple[onnx.ModelProto, type[CuvilError], str]] = {
    "unknown op": (_model(_one("Multinomial")), UnsupportedOpError,
                   "'n1' uses op Multinomial of domain 'ai.onnx', opset 17.*add-an"),
    "foreign domain": (_model(_one("Exp", domain="com.acme")), UnsupportedOpError, "domain 'com.acme'.*add-an-op"),
    "old opset": (_model(_one("Exp"), opset=0), UnsupportedOpError, "opset 0 is outside of 1..28"),
    "foreign opset alone": (_altered(lambda m: setattr(m.opset_import[0], "domain", "ai.onnx.ml")), UnsupportedOpError,
                            "domain '', which it does not import"),
    "no opset": (_altered(lambda m: m.ClearField("opset_import")), ModelError, "which ONNX opset"),
    "no graph": (_altered(lambda m: m.ClearField("graph")), ModelError, "no ONNX graph"),
    "dangling": (_model(_one("Exp", "z")), ModelError, "'n1'.*'z' is not computed"),
    "cyclic": (_model([helper.make_node("Exp", ["b"], ["a"]), helper.make_node("Exp", ["a"], ["b"])]), ModelError,
               "'b'"),
    "defined twice": (_model(_one("Exp") + _one("Exp")), ModelError, "'y' is defined twice"),
    "no such output": (_model(_one("Exp"), out="w"), ModelError, "Output 'w'"),
    "too many inputs": (_model(_one("Exp", "x", "x")), ModelError, "has 2 inputs"),
    "unknown attribute": (_model(_one("Exp", axis=1)), ModelError, "unknown attribute 'axis'"),
    "wrong attribute kind": (_model(_one("Softmax", axis=1.5)), ModelError, "axis has a wrong kind"),
    "missing attribute": (_model(_one("Cast")), ModelError, "lacks the attribute to"),
    "wrong dtype": (_model(_one("Not")), ModelError, "dtype float32, which ONNX does not allow"),
    "two dtypes": (_model(_one("Add", "x", "w"), w=np.ones(3)), ModelError, "dtype float64 beside float32"),
    "shapes that differ": (_model(_one("Add", "x", "w"), w=np.ones(4, np.float32)), ModelError, "extents 3 and 4"),
    "string input": (_altered(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 8)), UnsupportedOpError,
                     "element type string"),
    "input without rank": (_altered(lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")),
                           UnsupportedOpError, "no shape"),
    "negative extent": (_model(_one("Reshape", "x", "s"), s=np.array([-4])), ModelError,
                        "-4 is negative"),
    "sequence input": (_altered(lambda m: m.graph.input[0].type.sequence_type.SetInParent()), UnsupportedOpError,
                       "is not a tensor"),
    "short data": (_weight(raw_data=b"123"), ModelError, "holds 3 bytes instead of 12"),
    "external data of bytes": (_external("w.bin"), ModelError, "outside of the model file"),
    "data-dependent rank": (_model([
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "i"], ["y"], name="n1")], shape=("N",)), UnsupportedOpError,
                            "its rank from the input's data"),
    "huge constant": (_model(_one("ConstantOfShape", "s"), s=BIG), SizeError, "bytes"),
    "huge tile": (_model(_one("Tile", "x", "s"), shape=(4, 3), s=BIG), SizeError, "bytes"),
    "huge expansion": (_model(_one("Expand", "x", "s"), shape=(1, 1), s=BIG), SizeError, "bytes"),
    "huge padding": (_model(_one("Pad", "x", "s"), s=np.array([0, 0, 0, 1 << 62])), SizeError, "bytes"),
    "huge window": (_model(_one("MaxPool", kernel_shape=[1 << 40]), shape=(1, 1, 8)), ModelError, "larger than"),
    "zero group": (_model(_one("Conv", "x", "w", group=0), shape=(1, 1, 8), w=np.ones((1, 1, 3), np.float32)),
                   ModelError, "n1"),
    "infinite range": (_model(_one("Range", "a", "b", "c"), a=np.float32(0), b=np.float32(np.inf), c=np.float32(1)),
                       ModelError, "finite"),
    "huge range": (_model(_one("Range", "a", "b", "c"), a=np.int64(0), b=np.int64(1 << 60), c=np.int64(1)), SizeError,
                   "bytes"),
    "condition of another type": (_model([helper.make_node(
        "If", ["x"], ["y"], then_branch=helper.make_graph([], "t", [], []),
        else_branch=helper.make_graph([], "e", [], []))]), ModelError, "dtype float32, which ONNX does not allow"),
    "indices of another rank": (_model(_one("GatherElements", "x", "i"), shape=(3, 4), i=np.array([0])), ModelError,
                                "different ranks"),
    "tuples longer than the rank": (_model(_one("GatherND", "x", "i"), shape=(3,), i=np.zeros((1, 2), np.int64)),
                                    ModelError, "2 numbers"),
    "no such reduction": (_model(_one("ScatterND", "x", "i", "u", reduction="mean"), shape=(3,), opset=18,
                                 i=np.zeros((1, 1), np.int64), u=np.ones(1, np.float32)), ModelError, "'mean'"),
    "a term for another rank": (_model(_one("Einsum", "x", equation="ijk->i"), shape=(3, 4)), ModelError, "rank 2"),
    "an unknown label": (_model(_one("Einsum", "x", equation="ij->k"), shape=(3, 4)), ModelError, "'k'"),
    "a label twice in the output": (_model(_one("Einsum", "x", equation="ij->ii"), shape=(3, 4)), ModelError, "twice"),
    "a large determinant": (_model(_one("Det", "x"), shape=(17, 17)), UnsupportedOpError, "1 to 16"),
    "no square": (_model(_one("Det", "x"), shape=(3, 4)), ModelError, "4 and 3"),
    "an axis beyond the rank": (_model(_one("CumSum", "x", "a"), shape=(3,), a=np.int64(1)), ModelError, "axis 1"),
    "a mode of Pad": (_model(_one("Pad", "x", "p", mode="mirror"), shape=(3,), p=np.array([1, 1])), ModelError,
                      "mirror"),
    "a mode of GridSample": (_model(_one("GridSample", "x", "g", mode="sinc"), shape=(1, 1, 3, 3),
                                    g=np.zeros((1, 2, 2, 2), np.float32)), ModelError, "sinc"),
    "a long transform": (_model(_one("DFT", "x"), shape=(1, 4099, 1)), UnsupportedOpError, "4099 points"),
    "a transform of the parts": (_model(_one("DFT", "x", axis=2), shape=(1, 8, 1)), ModelError, "imaginary"),
    "a frame step of 0": (_model(_one("STFT", "x", "s", "", "n"), shape=(1, 8, 1), s=np.int64(0), n=np.int64(4)),
                          ModelError, "not positive"),
    "edges beyond the spectrum": (_model(_one("MelWeightMatrix", *"abcde"), a=np.int64(4), b=np.int64(8),
                                         c=np.int64(100), d=np.float32(0), e=np.float32(400)), ModelError, "5 bins"),
    "random dropout": (_model(_one("Dropout", "x", "r", "t"), r=np.float32(0.5), t=np.array(True)), UnsupportedOpError,
                       "random"),
    "a window smaller than its stride": (_model(_one("ConvTranspose", "x", "w", strides=[3], auto_pad="SAME_UPPER"),
                                                shape=(1, 1, 4), w=np.ones((1, 1, 2), np.float32)), UnsupportedOpError,
                                         "runtimes differ"),
    "a cache that is too short": (_model(_one("TensorScatter", "x", "u"), shape=(1, 2, 3), opset=24,
                                         u=np.ones((1, 4, 3), np.float32)), ModelError, "4 and 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refusals_are_sentences(name: str) -> None:
    """The error is of the right kind, names what is wrong, and is one sentence."""
    model, kind, fault = CASES[name]
    with pytest.raises(kind, match=fault) as caught:
        load(model.SerializeToString())
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    assert type(caught.value) is kind


def test_garbage_and_truncation_are_refused() -> None:
    """Bytes that are no protobuf, half a model, and no bytes at all are refused alike."""
    data = _model(_one("Exp")).SerializeToString()
    for broken in (b"", b"\xff" * 64, b"PK\x03\x04hello", data[: len(data) // 2]):
        with pytest.raises(ModelError):
            load(broken)


def test_names_that_are_no_text_are_refused() -> None:
    """A name that is not UTF-8 is refused before anything stumbles over it."""
    data = _model(_one("Exp")).SerializeToString()
    with pytest.raises(ModelError, match="not UTF-8"):
        load(data.replace(b"Exp", b"E\xffp"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that does not exist is the caller's fault, not the model's."""
    with pytest.raises(MissingError, match=r"absent\.onnx cannot be read"):
        load(tmp_path / "absent.onnx")


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "absent.bin"])
def test_external_data_outside_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    """Neither a way out of the folder nor a missing file is read."""
    (tmp_path / "secret").write_bytes(b"0" * 12)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "m.onnx").write_bytes(_external(location).SerializeToString())
    with pytest.raises(ModelError, match=r"external data|outside of the model's folder"):
        load(folder / "m.onnx")


def test_external_data_within_the_folder_is_read(tmp_path: Path) -> None:
    """Weights beside the model are found."""
    (tmp_path / "w.bin").write_bytes(np.arange(3, dtype=np.float32).tobytes())
    (tmp_path / "m.onnx").write_bytes(_external("w.bin").SerializeToString())
    (constant,) = [op for op in load(tmp_path / "m.onnx").ops if op.name == "constant"]
    assert constant.payload().values() == [0, 1, 2]


SPECS = {
    "no input 'q'": InputSpec("q", ("N", 3)),
    "rank 2, not 3": InputSpec("x", ("N", 3, 3)),
    "is 3 in the file, not 4": InputSpec("x", ("N", 4)),
    "neither a positive number nor a name": InputSpec("x", ("a b", 3)),
    "which its shape does not name": InputSpec("x", ("N", 3), {"M": (1, 2)}),
    "are empty, below 1": InputSpec("x", ("N", 3), {"N": (0, 2)}),
}


@pytest.mark.parametrize("fault", SPECS)
def test_specs_that_do_not_fit_are_refused(fault: str) -> None:
    """A caller's word that contradicts the file or itself is an InputError."""
    with pytest.raises(InputError, match=fault):
        load(_model(_one("Exp")).SerializeToString(), (SPECS[fault],))
