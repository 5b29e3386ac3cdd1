"""Story 7: Prometheus stops during a canary: the rollout holds, without a rollback; it comes back, all goes on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.stories.access import Object, StoryError, conditions, wait
from e2e.stories.load import must_not_fail
from e2e.stories.world import STAGE, World, other

NAME = "rec"
AWAY = 25.0
"""Seconds: five intervals."""


def run(world: World, namespace: str = STAGE) -> list[str]:
    """Play the story; gives the facts to print."""
    kind, first = world.steady(NAME, namespace)
    load = world.load(NAME, namespace, rate=20)
    with world.watched(NAME, namespace):
        world.apply(world.manifest(NAME, namespace, world.version(other(kind))))
        world.wait_status(NAME, namespace, "at weight 20", lambda one: one.get("weight") == 20, 400)
        with without_prometheus(world):
            held = world.wait_status(NAME, namespace, "holding", holding, 60)
            time.sleep(AWAY)
            after = world.status(NAME, namespace)
        if not holding(after) or after.get("weight") != held["weight"] or after.get("phase") != held["phase"]:
            raise StoryError(f"without Prometheus the canary moved: {after.get('phase')}, {after.get('message')}")
        status = world.wait_stable(NAME, namespace, not_revision=first)
    must_not_fail(load.stop())
    reason = dict(conditions({"status": held}))["Analysis"]
    return [
        f"without Prometheus: {reason['reason']}, {reason['message']}; weight stayed {held['weight']} for {AWAY:.0f} s",
        f"with it again: {status['stable']['revision']} took everything, no request failed",
    ]


def holding(status: Object) -> bool:
    """Tell whether the last verdict was Hold."""
    return (status.get("analysis") or {}).get("verdict") == "Hold"


@contextmanager
def without_prometheus(world: World) -> Iterator[None]:
    """Stop the cluster's Prometheus while the block runs; its counters live on in the serving pods."""
    _scale(world, 0)
    try:
        yield
    finally:
        _scale(world, 1)
        wait("Prometheus to answer", lambda: world.prometheus.number("vector(1)") == 1.0, 120)


def _scale(world: World, replicas: int) -> None:
    for item in world.access.list("monitoring.coreos.com/v1", "Prometheus", "monitoring"):
        world.access.resource("Prometheus", "monitoring.coreos.com/v1").patch(
            body={"spec": {"replicas": replicas}},
            name=item["metadata"]["name"],
            namespace="monitoring",
            content_type="application/merge-patch+json",
        )
