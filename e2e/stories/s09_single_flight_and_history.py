"""Story 9: equal models under two URIs compile once; every revision of the history starts on a node without caches."""

import secrets
import threading
from dataclasses import dataclass, field

from e2e.stories.access import Access, StoryError
from e2e.stories.world import Version, World

PAIR = "pair"
"""The namespace of two models with equal bytes."""


@dataclass
class JobWatch:
    """Collects the names of all compile Jobs that a namespace ever holds."""

    access: Access
    namespace: str
    names: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "JobWatch":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _look(self) -> None:
        resource = self.access.resource("Job", "batch/v1")
        while not self._stop.is_set():
            try:
                for event in self.access.dynamic.watch(resource, namespace=self.namespace, timeout=10):
                    labels = event["raw_object"]["metadata"].get("labels", {})
                    if labels.get("cuvil.dev/stage") == "compile":
                        self.names.add(event["raw_object"]["metadata"]["uid"])
            except Exception:  # the watch was closed; the next one lists again
                self._stop.wait(0.2)


def run(world: World, namespace: str = PAIR) -> list[str]:
    """Play the story; gives the facts to print."""
    world.fresh_namespace(namespace)
    base = world.version("base")
    twin = world.push(base.path, "models/twin")
    with JobWatch(world.access, namespace) as jobs:
        world.apply(world.manifest("left", namespace, base))
        world.apply(world.manifest("right", namespace, twin))
        first = world.wait_stable("left", namespace)["stable"]["revision"]
        world.wait_stable("right", namespace)
        if len(jobs.names) != 1:
            raise StoryError(f"two models with equal bytes made {len(jobs.names)} compile Jobs, not 1")
        second = _replace(world, namespace, world.version("retrained"), first)
        again, how = _from_history(world, namespace, base, second)
        third, _ = _from_history(world, namespace, world.version("retrained"), again)
        compiled = len(jobs.names)
    if (again, third) != (first, second) or compiled != 2:
        raise StoryError(f"revisions {first}, {second}, {again}, {third} needed {compiled} compile Jobs, not 2")
    return [
        "two models, two URIs, equal bytes: 1 compile Job",
        f"{first} and {second} each started again from history, {how}; no further compile Job",
    ]


def _from_history(world: World, namespace: str, version: Version, before: str) -> tuple[str, str]:
    """Wipe the node's caches, then go back to a former version; gives its revision and what was wiped.

    Beside images a node caches nothing for Cuvil: artifacts are fetched into volumes that end with their pods.
    """
    if world.forget_image is None:
        return _replace(world, namespace, version, before), "on fresh pods (the node's images are out of reach)"
    world.forget_image(world.runtime_image)
    revision = _replace(world, namespace, version, before)
    pods = world.access.list("v1", "Pod", namespace, f"cuvil.dev/revision={revision}")
    names = {pod["metadata"]["name"] for pod in pods}
    events = world.access.list("v1", "Event", namespace)
    told = [one["message"] for one in events if one["involvedObject"]["name"] in names and one["reason"] == "Pulled"]
    if not any(message.startswith("Successfully pulled") for message in told):
        raise StoryError(f"{revision} did not start from an empty image store: {told}")
    return revision, "its image wiped from the node before"


def _replace(world: World, namespace: str, version: Version, before: str) -> str:
    """Apply a version, take it at once, and give its revision."""
    world.apply(world.manifest("left", namespace, version))
    status = world.wait_status("left", namespace, "a canary", lambda one: (one.get("canary") or {}).get("weight"), 300)
    revision = status["canary"]["revision"]
    world.command("left", namespace, f"promote-full@{revision}#{secrets.token_hex(4)}")
    return str(world.wait_stable("left", namespace, not_revision=before)["stable"]["revision"])
