"""Story 5: a wrong model never gets traffic; each kind of wrong is a clear condition, and stable stays untouched."""

from dataclasses import dataclass, field
from typing import Any

from e2e.stories import gpu
from e2e.stories.access import Object, StoryError, conditions
from e2e.stories.load import must_not_fail
from e2e.stories.world import STAGE, World

NAME = "rec"


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong spec and the condition that must name it."""

    title: str
    version: str
    condition: str
    reason: str
    words: tuple[str, ...]
    """What the message must name."""
    changes: dict[str, Any] = field(default_factory=dict)


WRONG = (
    Wrong("unsupported op", "unsupported", "Compiled", "UnsupportedOp", ("Sharpen",)),
    Wrong("wrong sha256", "base", "Compiled", "DigestMismatch", ("sha256",), {"model__sha256": "0" * 64}),
    Wrong("truncated file", "truncated", "Compiled", "BadModel", ()),
    Wrong(
        "accuracy outside the bound",
        "retrained",
        "Validated",
        "WrongNumbers",
        (),
        {"accuracy": {"rtol": "1e-12", "atol": "0"}},
    ),
)


def run(world: World, namespace: str = STAGE) -> list[str]:
    """Play the story; gives the facts to print."""
    _, stable = world.steady(NAME, namespace)
    load = world.load(NAME, namespace, rate=5)
    facts = [_refused(world, namespace, wrong, stable) for wrong in WRONG]
    facts.append(_gpu_target(world, namespace, stable))
    total = load.stop()
    must_not_fail(total)
    if set(total["by_revision"]) != {stable}:
        raise StoryError(f"requests were answered by {set(total['by_revision'])}, not by stable {stable} alone")
    return facts


def _refused(world: World, namespace: str, wrong: Wrong, stable: str) -> str:
    world.apply(world.manifest(NAME, namespace, world.version(wrong.version), **wrong.changes))
    return _await_refusal(world, namespace, wrong, stable)


def _await_refusal(world: World, namespace: str, wrong: Wrong, stable: str) -> str:
    with world.watched(NAME, namespace):
        status = _await(world, namespace, f"refused for {wrong.title}", wrong.condition, "False", wrong.reason)
    message = str(dict(conditions({"status": status}))[wrong.condition]["message"])
    missing = [word for word in wrong.words if word not in message]
    if missing or (status.get("stable") or {}).get("revision") != stable or status.get("weight"):
        raise StoryError(f"{wrong.title}: {message!r} lacks {missing}, or stable moved: {status.get('stable')}")
    return f"{wrong.title}: {wrong.reason}, {message}"


def _gpu_target(world: World, namespace: str, stable: str) -> str:
    """A GPU target waits for a node that advertises the GPU; there its Job ends, for no GPU back end exists yet."""
    wrong = Wrong("GPU target", "base", "Compiled", "UnsupportedTarget", ("cuda-sm_90",), {"target": "cuda-sm_90"})
    world.forget_jobs(namespace)
    with gpu.no_gpu(world.access):
        world.apply(world.manifest(NAME, namespace, world.version(wrong.version), **wrong.changes))
        _await(world, namespace, "waiting for a node with a GPU", "Compiled", "Unknown", "WaitingForNode")
        gpu.label(world.access, "9", "0")
        gpu.advertise(world.access, "1")
        return _await_refusal(world, namespace, wrong, stable)


def _await(world: World, namespace: str, what: str, condition: str, status: str, reason: str) -> Object:
    def told(seen: Object) -> bool:
        held = dict(conditions({"status": seen})).get(condition, {})
        return (held.get("status"), held.get("reason")) == (status, reason)

    return world.wait_status(NAME, namespace, what, told, 300)
