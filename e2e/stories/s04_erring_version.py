"""Story 4: a version whose numbers overflow on real requests answers them with errors and is rolled back."""

from e2e.stories import replay
from e2e.stories.rollbacks import Bad, play
from e2e.stories.timeline import Played
from e2e.stories.world import World

ERRING = Bad(
    version="overflowing",
    gate="errorRate",
    limit=0.02,
    counts=lambda world, picked: replay.error_counts(world.prometheus, picked, "15m"),
    base={"serving__rejectNonFinite": True},
)


def run(world: World, namespace: str = "story-4") -> list[str]:
    """Play the story; gives the facts to print."""
    return played(world, namespace).facts


def played(world: World, namespace: str = "story-4") -> Played:
    """Play the story; gives all that the report needs."""
    world.fresh_namespace(namespace)
    return play(world, namespace, ERRING)
