"""Story 6: the controller is killed with -9 after each distinct write of stories 2 and 3; both end as they would."""

import secrets

from e2e.stories import s02_promotion, s03_slow_version
from e2e.stories.access import StoryError
from e2e.stories.killer import Killer, wait_for_controller
from e2e.stories.world import World

LEAST_KILLS = 20


def run(world: World, namespace: str = "story-6") -> list[str]:
    """Play both stories under kills; gives the facts to print."""
    world.fresh_namespace(namespace)
    seed = secrets.randbelow(1 << 31)
    try:
        with Killer(world.access, namespace, seed, world.say) as killer:
            promoted = s02_promotion.played(world, namespace)
            # How many writes are told apart depends on the machine; the second story makes up for what lacks.
            killer.least = LEAST_KILLS
            rolled_back = s03_slow_version.played(world, namespace, timed=False)
    finally:
        wait_for_controller(world.access)
    if len(killer.kills) < LEAST_KILLS:
        raise StoryError(f"the controller was killed {len(killer.kills)} times; at least {LEAST_KILLS} were promised")
    facts = [f"killed {len(killer.kills)} times, seed {seed}; same end states"]
    return [*facts, *promoted.facts, *rolled_back.facts]
