"""Artifacts with sound digests and wrong words: refused at load, in one line, before any code runs."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import handmade
from cuvil_core.artifact import pack
from cuvil_core.contract import Manifest, TensorSpec
from cuvil_core.errors import ArtifactError, CuvilError, InputError, SizeError
from cuvil_core.runtime import load, memory


def rows(count: int) -> np.ndarray[Any, Any]:
    """Seeded input."""
    return np.random.default_rng(count).standard_normal((count, 3), np.float32)


def _changed(**change: Any) -> bytes:
    """The program's artifact whose manifest states something else than its code was compiled for."""
    return pack(replace(handmade.manifest(), **change), {"x86_64-avx2": handmade.library()}, handmade.WEIGHTS.tobytes())


X, Y, TOTAL = handmade.manifest().inputs[0], *handmade.manifest().outputs
FACTS = handmade.manifest().facts
CONTRADICTIONS: dict[str, Callable[[], bytes]] = {
    "an output deleted": lambda: _changed(outputs=(Y,)),
    "an output added": lambda: _changed(outputs=(Y, TOTAL, TOTAL)),
    "outputs swapped": lambda: _changed(outputs=(TOTAL, Y)),
    "an output's dtype": lambda: _changed(outputs=(TensorSpec("y", "float64", Y.shape), TOTAL)),
    "an output's axes": lambda: _changed(outputs=(TensorSpec("y", "float32", (*Y.shape, 1)), TOTAL)),
    "an input's dtype": lambda: _changed(inputs=(TensorSpec("x", "int32", X.shape),)),
    "an input's extent": lambda: _changed(inputs=(TensorSpec("x", "float32", ("N", 2)),)),
    "an input's name": lambda: _changed(inputs=(TensorSpec("z", "float32", X.shape),)),
    "an input added": lambda: _changed(inputs=(X, TensorSpec("z", "float32", ("N",)))),
    "no inputs": lambda: _changed(inputs=(), facts={**FACTS, "symbols": []}),
    "wider bounds": lambda: _changed(facts={**FACTS, "bounds": {"N": [1, 1000]}}),
    "empty weights": lambda: handmade.artifact(b""),
    "halved weights": lambda: handmade.artifact(handmade.WEIGHTS.tobytes()[:6]),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_manifest_and_weights_must_suit_the_code(case: str) -> None:
    """Sound digests around a manifest or weights that the code was not compiled for: an ArtifactError, never a call."""
    with pytest.raises(ArtifactError, match=r"than its code was compiled for|bytes of weights, its code reads 12"):
        load(CONTRADICTIONS[case]())


def test_names_of_any_kind_reach_the_code() -> None:
    """Quotes, backslashes, trigraphs and other alphabets in names are the same text in C and in the manifest."""
    from cuvil_core.codegen.c import emit_program
    from cuvil_core.ir import DType, TensorType
    from cuvil_core.program import Port, Program

    odd = Port('a"\\\n??/ü\ud800', TensorType(DType.FLOAT32, ()))
    program = Program("p", (), (odd,), (), (), (), (), (), b"")
    text = emit_program(program)["program.c"]
    (line,) = (line for line in text.splitlines() if line.startswith("static const struct cuvil_expectation"))
    assert line.isascii() and "??" not in line


def test_odd_names_survive_the_c_compiler() -> None:
    """A model whose input has quotes, backslashes and a trigraph in its name compiles, loads and answers."""
    from onnx import TensorProto, helper

    from cuvil_core.compile import compile_model
    from cuvil_core.contract import CompileRequest

    name = 'x"\\??/%s ü'
    x, y = (helper.make_tensor_value_info(one, TensorProto.FLOAT, ["N", 3]) for one in (name, "y"))
    graph = helper.make_graph([helper.make_node("Relu", [name], ["y"])], "odd", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    loaded = load(compile_model(model.SerializeToString(), CompileRequest()))
    np.testing.assert_array_equal(loaded.run({name: rows(2)})["y"], np.maximum(rows(2), 0))


HOSTILE_FACTS: dict[str, dict[str, Any]] = {
    "bounds as text": {"bounds": {"N": "x"}},
    "bounds as a number": {"bounds": {"N": float("nan")}},
    "bounds as an object": {"bounds": {"N": {}}},
    "empty bounds": {"bounds": {"N": []}},
    "bounds of texts": {"bounds": {"N": ["1", "2"]}},
    "bounds of NaN": {"bounds": {"N": [float("nan"), None]}},
    "bounds of booleans": {"bounds": {"N": [True, None]}},
    "a list of bounds": {"bounds": [1, 2]},
    "symbols nested": {"symbols": [[3]]},
    "symbols as numbers": {"symbols": [3]},
    "symbols as objects": {"symbols": [{}]},
    "symbols as text": {"symbols": "N"},
    "symbols twice": {"symbols": ["N", "N"]},
    "symbols of nobody": {"symbols": ["N", "M"]},
}


@pytest.mark.parametrize("case", HOSTILE_FACTS)
def test_hostile_facts_are_refused(case: str) -> None:
    """Facts of a wrong shape are an ArtifactError of one line."""
    packed = pack(handmade.manifest(**HOSTILE_FACTS[case]), {"x86_64-avx2": handmade.library()}, b"\0" * 12)
    with pytest.raises(ArtifactError, match=r"compile it again$") as refused:
        load(packed)
    assert "\n" not in str(refused.value)


def test_requests_of_a_manifest_beyond_numbers() -> None:
    """An infinite level of optimization, and infinite bounds of a request, are no manifest."""
    raw = json.loads(handmade.manifest().to_json())
    endless = {"name": "x", "shape": [], "bounds": {"N": [1, float("inf")]}}
    for request in ({"opt_level": float("inf")}, {"inputs": [endless]}):
        with pytest.raises(ValueError, match="not whole"):
            Manifest.from_json(json.dumps(raw | {"request": raw["request"] | request}))


def test_names_from_files_stay_within_the_sentence() -> None:
    """Line breaks in names, dtypes and flags are quoted."""
    bad = replace(handmade.manifest(), outputs=(TensorSpec("y", "flo\nat32", ("N", 3)),))
    flags = handmade.manifest(variants={"x86_64-avx2": ["fl\nux"]})
    odd = replace(handmade.manifest(), inputs=(TensorSpec("a\nb", "float32", ("N", 3)),))
    calls: tuple[Callable[[], object], ...] = (
        lambda: load(pack(bad, {"x86_64-avx2": handmade.library()}, b"\0" * 12)),
        lambda: load(pack(flags, {"x86_64-avx2": handmade.library()}, b"\0" * 12)),
        lambda: load(pack(odd, {"x86_64-avx2": handmade.library(made=odd)}, b"\0" * 12))(),
    )
    for call in calls:
        with pytest.raises(CuvilError) as refused:
            call()
        assert "\n" not in str(refused.value) and "\\n" in str(refused.value)


def test_calls_beyond_the_memory_are_refused_before_they_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arena and outputs are compared with what the process can have, once for each new set of sizes."""
    asked = []

    def available() -> int:
        asked.append(1)
        return 500

    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", available)
    loaded = load(handmade.artifact())
    loaded.check_shapes({"x": (10, 3)})
    assert len(asked) == 2 and loaded(rows(10))[0].shape == (10, 3) and len(asked) == 2
    with pytest.raises(SizeError, match=r"a call at N = 20 takes 560 bytes of memory, this process can have 500"):
        loaded(rows(20))
    with pytest.raises(SizeError, match=r"N = 15 takes 600 bytes"):
        loaded.check_shapes({"x": (15, 3)})
    with pytest.raises(InputError, match="axis 1 must be 3"):
        loaded.check_shapes({"x": (10, 4)})
    with pytest.raises(InputError, match="input 'x' is missing"):
        loaded.check_shapes({})


def test_outputs_that_cannot_be_had_are_a_size_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's MemoryError reaches nobody; the next call works."""

    def none(*_: object) -> None:
        raise MemoryError

    loaded, x = load(handmade.artifact()), rows(2)
    with monkeypatch.context() as patched:
        patched.setattr(np, "empty", none)
        with pytest.raises(SizeError, match="32 bytes for outputs cannot be had"):
            loaded(x)
    assert loaded(rows(2))[0].shape == (2, 3)
