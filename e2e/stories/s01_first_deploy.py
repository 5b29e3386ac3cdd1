"""Story 1: a real model is applied for the first time, compiled, validated, served, and reads as ONNX Runtime does."""

import numpy as np
import onnxruntime
import tritonclient.http as triton

import text_pictures as text
from e2e.stories.access import StoryError, conditions
from e2e.stories.world import STAGE, World

NAME = "rec"


def run(world: World, namespace: str = STAGE) -> list[str]:
    """Play the story; gives the facts to print."""
    world.fresh_namespace(namespace)
    version = world.version("base")
    with world.watched(NAME, namespace):
        world.apply(world.manifest(NAME, namespace, version))
        status = world.wait_stable(NAME, namespace)
    held = {kind: one["status"] for kind, one in conditions({"status": status})}
    if [held.get(kind) for kind in ("Ready", "Compiled", "Validated")] != ["True"] * 3:
        raise StoryError(f"the model serves, but its conditions are {held}")
    world.wait_answered(NAME, namespace)
    served, expected = read_through_gateway(world, namespace), read_by_onnxruntime(world)
    if served != expected:
        raise StoryError(f"the cluster read {served}, ONNX Runtime {expected}")
    return [
        f"revision {status['stable']['revision']} read {', '.join(repr(word) for word in served)}, as ONNX Runtime does"
    ]


def read_through_gateway(world: World, namespace: str) -> list[str]:
    """Read every word with an unchanged tritonclient."""
    client = triton.InferenceServerClient(world.addresses.gateway)
    host = {"Host": world.host(NAME, namespace)}
    pictures = text.to_input([text.render(word, 192) for word in text.WORDS])
    request = triton.InferInput("x", list(pictures.shape), "FP32")
    request.set_data_from_numpy(pictures)
    answer = client.infer(NAME, [request], headers=host)
    name = answer.get_response()["outputs"][0]["name"]
    return text.Alphabet.of(world.source).decode(np.asarray(answer.as_numpy(name)))


def read_by_onnxruntime(world: World) -> list[str]:
    """Read every word with ONNX Runtime on the source model."""
    session = onnxruntime.InferenceSession(str(world.source), providers=["CPUExecutionProvider"])
    pictures = text.to_input([text.render(word, 192) for word in text.WORDS])
    (scores,) = session.run(None, {"x": pictures})
    return text.Alphabet.of(world.source).decode(np.asarray(scores))
