"""The protocol's reading and writing, without a server."""

import json
import random
from typing import Any

import numpy as np
import pytest

from cuvil_core.contract import TensorSpec
from cuvil_core.errors import InputError, TargetError
from cuvil_core.serving import protocol


def body(**entry: Any) -> bytes:
    """A request with one input."""
    return json.dumps({"inputs": [{"name": "x", "shape": [2], "datatype": "FP32"} | entry]}).encode()


def test_json_and_binary_inputs_agree() -> None:
    """The same tensor sent as nested JSON, flat JSON and binary is read alike, with its id and outputs."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    entry = {"name": "x", "shape": [2, 3], "datatype": "FP32"}
    more = {"id": "7", "outputs": [{"name": "y", "parameters": {"binary_data": True}}, {"name": "z"}]}
    for data in (x.tolist(), x.ravel().tolist()):
        got = protocol.read_request(json.dumps({"inputs": [entry | {"data": data}], **more}).encode(), None)
        np.testing.assert_array_equal(got.inputs["x"], x)
        assert got.id == "7"
        assert got.outputs == (protocol.Wanted("y", True), protocol.Wanted("z", False))
    head = json.dumps({"inputs": [entry | {"parameters": {"binary_data_size": 24}}], **more}).encode()
    got = protocol.read_request(head + x.tobytes(), str(len(head)))
    np.testing.assert_array_equal(got.inputs["x"], x)


@pytest.mark.parametrize("dtype", protocol.TYPES)
def test_every_type_goes_both_ways(dtype: str) -> None:
    """Each tensor type is read as JSON and as binary, and written as both."""
    x = np.array([0, 1, 1], dtype)
    entry = {"name": "x", "shape": [3], "datatype": protocol.TYPES[dtype]}
    plain = protocol.read_request(json.dumps({"inputs": [entry | {"data": x.tolist()}]}).encode(), None)
    head = json.dumps({"inputs": [entry | {"parameters": {"binary_data_size": x.nbytes}}]}).encode()
    packed = protocol.read_request(head + x.tobytes(), str(len(head)))
    for got in (plain, packed):
        assert got.inputs["x"].dtype == x.dtype
        np.testing.assert_array_equal(got.inputs["x"], x)
    answer = protocol.write_answer("m", "v", plain, {"y": x})
    assert answer.json_length is None
    assert json.loads(answer.body)["outputs"][0]["data"] == x.tolist()
    asked = protocol.Request("", {}, None, True)
    answer = protocol.write_answer("m", "v", asked, {"y": x})
    assert answer.body[answer.json_length :] == x.tobytes()


REFUSED: dict[str, tuple[bytes, str | None, str]] = {
    "no JSON": (b"{", None, "not JSON"),
    "no object": (b"[]", None, "JSON object"),
    "deep": (b"[" * 100_000, None, "not JSON"),
    "no inputs": (b"{}", None, "list 'inputs'"),
    "nameless": (body(name=3), None, "name of its own"),
    "datatype": (body(datatype="BYTES", data=["a"]), None, "wanted one of BOOL"),
    "unhashable datatype": (body(datatype=[]), None, "wanted one of"),
    "negative shape": (body(shape=[-1]), None, "whole numbers"),
    "huge shape": (body(shape=[1 << 40, 1 << 40]), None, "at most"),
    "no elements, huge extent": (body(shape=[0, 10**30], data=[]), None, "at most"),
    "no bytes, huge extent": (body(shape=[0, 1 << 62], parameters={"binary_data_size": 0}), None, "at most"),
    "huge extents apart": (body(shape=[1 << 33, 0, 1 << 33], data=[]), None, "at most"),
    "NaN": (body(data=[1, float("nan")]), None, "NaN is not JSON: send tensors that hold it in binary"),
    "Infinity": (body(data=[1, -float("inf")]), None, "-Infinity is not JSON"),
    "beyond FP32": (body(data=[1, 1e39]), None, "beyond the range of FP32"),
    "beyond FP64 in JSON": (body(data=[1, 2]).replace(b"2]}", b"1e999]}"), None, "beyond the range of FP32"),
    "beyond FP16": (body(datatype="FP16", data=[1, 70_000]), None, "beyond the range of FP16"),
    "whole beyond FP64": (body(datatype="FP64", data=[1, 10**400]), None, "beyond the range of FP64"),
    "whole beyond 64 bits, and null": (body(data=[None, 10**23]), None, "not FP32"),
    "bool shape": (body(shape=[True]), None, "whole numbers"),
    "no data": (body(), None, "needs 'data'"),
    "count": (body(data=[1.0]), None, "has 1 elements, its shape makes 2"),
    "ragged": (body(shape=[3], data=[[1], [2, 3]]), None, "ragged"),
    "text": (body(data=["a", "b"]), None, "not FP32"),
    "null": (body(data=[None, 1]), None, "not FP32"),
    "float for int": (body(datatype="INT64", data=[1.5, 2]), None, "not INT64"),
    "bool for float": (body(data=[True, False]), None, "not FP32"),
    "beyond range": (body(datatype="INT8", data=[1, 300]), None, "beyond the range of INT8"),
    "negative for unsigned": (body(datatype="UINT8", data=[1, -3]), None, "beyond the range"),
    "huge int": (body(datatype="INT64", data=[1, 10**40]), None, "not INT64|ragged|range"),
    "size": (body(parameters={"binary_data_size": 7}), "80", "announces 7 bytes"),
    "short": (body(parameters={"binary_data_size": 8}), None, "the body has 0 left"),
    "both": (body(data=[1, 2], parameters={"binary_data_size": 8}), None, "send one of them"),
    "tail": (body(data=[1, 2]) + b"xx", str(len(body(data=[1, 2]))), "2 bytes more"),
    "length of JSON": (body(data=[1, 2]), "9999", "Inference-Header-Content-Length"),
    "signed length": (body(data=[1, 2]), "-1", "Inference-Header-Content-Length"),
    "shared memory": (body(parameters={"shared_memory_region": "a"}), None, "shared memory"),
    "parameters": (body(parameters=3), None, "JSON object"),
    "outputs": (b'{"inputs": [], "outputs": 3}', None, "must be a list"),
    "classification": (
        b'{"inputs": [], "outputs": [{"name": "y", "parameters": {"classification": 3}}]}',
        None,
        "classification",
    ),
    "output twice": (b'{"inputs": [], "outputs": [{"name": "y"}, {"name": "y"}]}', None, "names an output twice"),
    "id": (b'{"inputs": [], "id": 3}', None, "'id'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_requests_get_one_sentence(case: str) -> None:
    """Each malformed request is an InputError that says what is wrong."""
    raw, length, sentence = REFUSED[case]
    if case == "size":
        length = str(len(raw))
    with pytest.raises(InputError, match=sentence):
        protocol.read_request(raw, length)


def test_whole_numbers_that_fit_a_float_are_taken() -> None:
    """10^23 written as a whole number and as a float are the same FP32."""
    got = protocol.read_request(body(shape=[2], data=[10**23, 1]), None)
    np.testing.assert_array_equal(got.inputs["x"], np.array([1e23, 1], np.float32))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_answers_are_json(value: float) -> None:
    """An output that JSON cannot hold is refused with the cure, and goes as binary."""
    outputs = {"y": np.array([1, value], np.float32)}
    with pytest.raises(InputError, match="output 'y' holds NaN or Inf, which JSON cannot hold: ask for it with"):
        protocol.write_answer("m", "v", protocol.Request("", {}, None, False), outputs)
    answer = protocol.write_answer("m", "v", protocol.Request("", {}, None, True), outputs)
    assert answer.body[answer.json_length :] == outputs["y"].tobytes()


def test_answers_in_json_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An output of more elements than may go as JSON names the bound."""
    monkeypatch.setattr(protocol, "MAX_JSON_ELEMENTS", 2)
    request = protocol.Request("", {}, None, False)
    protocol.write_answer("m", "v", request, {"y": np.zeros(2, np.float32)})
    with pytest.raises(InputError, match="3 elements, more than the 2"):
        protocol.write_answer("m", "v", request, {"y": np.zeros(3, np.float32)})


def test_bool_bytes_are_checked() -> None:
    """A BOOL byte other than 0 and 1 is refused: C code would misread it."""
    head = json.dumps(
        {"inputs": [{"name": "x", "shape": [2], "datatype": "BOOL", "parameters": {"binary_data_size": 2}}]}
    ).encode()
    with pytest.raises(InputError, match="neither 0 nor 1"):
        protocol.read_request(head + b"\x01\x02", str(len(head)))


def test_altered_requests_never_crash() -> None:
    """2,000 seeded alterations of a good request are read or refused by InputError, nothing else."""
    x = np.arange(6, dtype=np.float32)
    head = json.dumps(
        {"inputs": [{"name": "x", "shape": [6], "datatype": "FP32", "parameters": {"binary_data_size": 24}}]}
    ).encode()
    good, dice = head + x.tobytes(), random.Random(4)
    for _ in range(2_000):
        bad = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        try:
            protocol.read_request(bytes(bad[: dice.randrange(len(bad)) + 1]), str(len(head)))
        except InputError:
            continue


def test_unknown_output_is_refused() -> None:
    """Asking for an output that the model lacks names those it has."""
    asked = protocol.read_request(b'{"inputs": [], "outputs": [{"name": "q"}]}', None)
    with pytest.raises(InputError, match="no output 'q', the model has y"):
        protocol.write_answer("m", "v", asked, {"y": np.zeros(1, np.float32)})


def test_metadata_hides_symbols() -> None:
    """Symbolic extents read as -1, for the protocol and for Triton's configuration."""
    spec = (TensorSpec("x", "float32", ("N", 3)),)
    assert protocol.metadata("m", "v", spec, ())["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert protocol.config("m", spec, ())["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 3]}]


def test_types_without_a_word_are_refused() -> None:
    """A model that takes int4 is refused when it is admitted, not in the first request."""
    protocol.check_types([TensorSpec("x", "float32", (2,))])
    with pytest.raises(TargetError, match="'w' is int4, which cannot be served"):
        protocol.check_types([TensorSpec("x", "float32", (2,)), TensorSpec("w", "int4", (2,))])
