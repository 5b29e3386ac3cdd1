"""Silero's detectors of speech, compiled: at both sample rates, stream by stream, as ONNX Runtime hears them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest

import cuvil
from cuvil_core.contract import InputSpec
from cuvil_core.errors import InputError
from cuvil_core.runtime import CuvilModule, cpu_features, load
from cuvil_core.runtime.variants import KNOWN
from model_cases import excess
from models import model_path

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]
Arrays = Mapping[str, np.ndarray[Any, Any]]
SAMPLES = {16000: 576, 8000: 288}
"""Rate → samples of a window with what it keeps of the one before."""
CASES = [("silero", 16000), ("silero", 8000), ("silero-16k", 16000), ("silero-ifless", 16000), ("silero-ifless", 8000)]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of compiled artifacts that starts empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUVIL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def _compiled(name: str, rate: int) -> list[CuvilModule]:
    """The model for windows of one rate and any number of streams, on each variant that this machine can run."""
    shapes = InputSpec("input", ("N", SAMPLES[rate])), InputSpec("state", (2, "N", 128))
    artifact = cuvil.compile(model_path(name), target="x86_64-cpu", inputs=shapes).artifact
    return [load(artifact, variant=one) for one in sorted(KNOWN) if cpu_features().issuperset(KNOWN[one])]


def _windows(streams: int, rate: int) -> list[np.ndarray[Any, Any]]:
    """Silence, noise, and tones that come and go, window by window."""
    random, samples = np.random.default_rng(streams), SAMPLES[rate]
    times = np.arange(6 * samples) / rate
    sound = 0.3 * np.sin(2 * np.pi * 180 * times) * (np.sin(2 * np.pi * 4 * times) > 0)
    sound = sound + random.normal(size=(streams, len(times))) * 0.02 * np.arange(1, streams + 1)[:, None]
    return np.split(sound.astype(np.float32), 6, axis=1)


@pytest.mark.parametrize(("name", "rate"), CASES, ids=str)
def test_speech_is_heard_as_by_onnx_runtime(name: str, rate: int) -> None:
    """One and three streams: probabilities and states agree, window after window, and differ between windows."""
    modules = _compiled(name, rate)
    peer = onnxruntime.InferenceSession(str(model_path(name)), providers=["CPUExecutionProvider"])
    for streams in (1, 3):
        heard = []
        states = [np.zeros((2, streams, 128), np.float32)] * (1 + len(modules))
        for window in _windows(streams, rate):
            feeds = [{"input": window, "state": state, "sr": np.array(rate, np.int64)} for state in states]
            want = dict(zip(["output", "stateN"], peer.run(["output", "stateN"], feeds[0]), strict=True))
            answers = [module.run(feed) for module, feed in zip(modules, feeds[1:], strict=True)]
            for answer in answers:
                assert max(excess(answer[one], want[one]) for one in want) <= 1
            states = [want["stateN"], *(answer["stateN"] for answer in answers)]
            heard.append(want["output"])
        assert max(float(np.ptp(heard, axis=0).max()), float(np.ptp(states[0]))) > 1e-2, "nothing was heard"


def test_a_call_at_the_other_rate_is_refused() -> None:
    """The branch for windows of another length cannot run at these shapes, and the error says so."""
    (module, *_) = _compiled("silero", 16000)
    feed = {"input": _windows(1, 16000)[0], "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(8000, np.int64)}
    with pytest.raises(InputError, match="the other branch cannot run at these shapes"):
        module.run(feed)
