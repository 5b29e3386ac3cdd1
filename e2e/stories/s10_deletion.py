"""Story 10: what is deleted is gone but for what others use; nothing hangs, even with the registry away."""

from collections.abc import Iterator
from contextlib import contextmanager

from e2e.stories.access import StoryError, wait
from e2e.stories.killer import KINDS
from e2e.stories.s09_single_flight_and_history import PAIR
from e2e.stories.world import API, KIND, World, other

SECONDS = 60.0


def run(world: World, namespace: str = PAIR) -> list[str]:
    """Play the story; gives the facts to print."""
    kinds = {name: world.steady(name, namespace)[0] for name in ("left", "right")}
    world.apply(world.manifest("left", namespace, world.version(other(kinds["left"]))))
    world.wait_status("left", namespace, "in mid-canary", lambda one: one.get("weight"), 300)
    gone = _delete(world, namespace, "left")
    status = world.status("right", namespace)
    if status.get("phase") != "Stable" or not _owned(world, namespace, "right"):
        raise StoryError(f"deleting left harmed right: {status.get('phase')}")
    with registry_away(world):
        gone_too = _delete(world, namespace, "right")
    rest = _owned(world, namespace, "left") + _owned(world, namespace, "right")
    if rest:
        raise StoryError(f"left behind: {rest}")
    return [
        f"deleted in mid-canary: {gone} objects gone, its neighbour serves on",
        f"deleted without registry: {gone_too} objects gone",
    ]


def _delete(world: World, namespace: str, name: str) -> int:
    before = len(_owned(world, namespace, name))
    world.access.delete(API, KIND, name, namespace)
    wait(f"the end of {name}", lambda: world.access.get(API, KIND, name, namespace) is None, SECONDS)
    wait(f"the end of what {name} alone owned", lambda: not _owned(world, namespace, name), SECONDS)
    return before


def _owned(world: World, namespace: str, name: str) -> list[str]:
    """List what this model alone owns."""
    found = []
    for version, kind in KINDS[1:]:
        for body in world.access.list(version, kind, namespace):
            owners = [one["name"] for one in body["metadata"].get("ownerReferences", []) if one["kind"] == KIND]
            if owners == [name]:
                found.append(f"{kind}/{body['metadata']['name']}")
    return found


@contextmanager
def registry_away(world: World) -> Iterator[None]:
    """Stop the registry's Deployment while the block runs."""
    _scale(world, 0)
    try:
        yield
    finally:
        _scale(world, 1)
        wait("the registry", lambda: _ready(world) == 1, 120)


def _scale(world: World, replicas: int) -> None:
    world.access.resource("Deployment", "apps/v1").patch(
        body={"spec": {"replicas": replicas}},
        name="registry",
        namespace="registry",
        content_type="application/merge-patch+json",
    )
    wait("the registry's pods", lambda: replicas or not world.access.list("v1", "Pod", "registry", "app=registry"), 60)


def _ready(world: World) -> int:
    found = world.access.get("apps/v1", "Deployment", "registry", "registry") or {}
    return int((found.get("status") or {}).get("readyReplicas") or 0)
