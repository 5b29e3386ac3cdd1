"""Story 3: a version with too little CPU passes the single-stream gate and breaches p95 under concurrent load."""

from e2e.stories import replay
from e2e.stories.rollbacks import Bad, play
from e2e.stories.timeline import Played
from e2e.stories.world import World

THRESHOLD = 0.5

SLOW = Bad(
    version="base",
    gate="latency",
    limit=0.05,
    counts=lambda world, picked: replay.latency_counts(world.prometheus, picked, THRESHOLD, "15m"),
    changes={"serving__resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "100m"}}},
)


def run(world: World, namespace: str = "story-3") -> list[str]:
    """Play the story; gives the facts to print."""
    return played(world, namespace).facts


def played(world: World, namespace: str = "story-3") -> Played:
    """Play the story; gives all that the report needs."""
    world.fresh_namespace(namespace)
    return play(world, namespace, SLOW)
