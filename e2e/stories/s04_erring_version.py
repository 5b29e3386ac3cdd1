"""Story 4: a version whose numbers overflow on real requests answers them with errors and is rolled back."""

from e2e.stories import replay
from e2e.stories.rollbacks import NAME, Bad, play
from e2e.stories.timeline import Played
from e2e.stories.world import STAGE, World

ERRING = Bad(
    version="overflowing",
    gate="errorRate",
    limit=0.02,
    counts=lambda world, picked, window: replay.error_counts(world.prometheus, picked, window),
)


def run(world: World) -> list[str]:
    """Play the story; gives the facts to print."""
    return played(world).facts


def played(world: World, namespace: str = STAGE) -> Played:
    """With a good version at rest and under load: apply the erring one."""
    _, stable = world.steady(NAME, namespace)
    return play(world, namespace, ERRING, stable)
