"""Each real model, compiled as shipped through the front door, answers as ONNX Runtime does."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest

import cuvil
from cuvil_core.runtime import CuvilModule, cpu_features, load
from cuvil_core.runtime.variants import KNOWN
from model_cases import ATOL, CASES, RTOL, ModelCase, excess
from models import NAMES, model_path
from text_pictures import WORDS, Alphabet, render, to_input

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]
Arrays = Mapping[str, np.ndarray[Any, Any]]
FAR = 20
"""By so many bounds outputs must differ between inputs, else agreement would say nothing."""


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of compiled artifacts that starts empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUVIL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def compiled(name: str) -> list[CuvilModule]:
    """The model on each variant that this machine can run, as shipped: every extent that it leaves open stays open."""
    artifact = cuvil.compile(model_path(name), target="x86_64-cpu").artifact
    assert set(artifact.variants) == set(KNOWN)
    return [load(artifact, variant=one) for one in sorted(KNOWN) if cpu_features().issuperset(KNOWN[one])]


def peer_of(name: str) -> onnxruntime.InferenceSession:
    """ONNX Runtime on the same file."""
    return onnxruntime.InferenceSession(str(model_path(name)), providers=["CPUExecutionProvider"])


def answers(peer: onnxruntime.InferenceSession, inputs: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    """ONNX Runtime's outputs by name."""
    return dict(zip([one.name for one in peer.get_outputs()], peer.run(None, dict(inputs)), strict=True))


def test_every_model_has_a_case() -> None:
    """No model is left out, and each is run at batch 1 and two further shapes."""
    assert {case.name for case in CASES} == set(NAMES)
    assert all(case.shapes[0][0] == 1 and len(set(case.shapes)) >= 3 for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_as_onnx_runtime(case: ModelCase) -> None:
    """On every variant and shape outputs lie within the bounds, while they vary with the input by far more."""
    modules = compiled(case.name)
    peer = peer_of(case.name)
    for shape in case.shapes:
        inputs = case.inputs(shape)
        want, other = answers(peer, inputs), answers(peer, case.inputs(shape, seed=1))
        assert max(excess(other[one], want[one]) for one in want) > FAR, f"outputs hardly vary at {shape}"
        for module in modules:
            got = module.run(inputs)
            assert set(got) == set(want)
            worst = max(excess(got[one], want[one]) for one in want)
            assert worst <= 1, f"{module!r} at {shape} is {worst:.3g} times rtol {RTOL}, atol {ATOL} away"


@pytest.mark.parametrize("width", [160, 320])
def test_rendered_words_are_read_identically(width: int) -> None:
    """PP-OCR's recognizer decodes pictures of words to the very text that ONNX Runtime reads, alone and in a batch."""
    alphabet = Alphabet.of(model_path("ppocr-rec"))
    pictures = [render(word, width) for word in WORDS]
    (name,) = (one.name for one in peer_of("ppocr-rec").get_inputs())
    for batch in ([one] for one in pictures), [pictures]:
        for shown in batch:
            (want,) = answers(peer_of("ppocr-rec"), {name: to_input(shown)}).values()
            texts = alphabet.decode(want)
            for module in compiled("ppocr-rec"):
                (got,) = module.run({name: to_input(shown)}).values()
                assert alphabet.decode(got) == texts
    assert sum(text == word for text, word in zip(texts, WORDS, strict=True)) >= len(WORDS) // 2, texts
