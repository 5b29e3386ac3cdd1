"""Story 6: the controller is killed with -9 after each distinct write of stories 2 and 3; both end as they would."""

from e2e.stories import rollbacks, s02_promotion, s03_slow_version
from e2e.stories.access import StoryError
from e2e.stories.killer import Killer, wait_for_controller
from e2e.stories.world import World

LEAST_KILLS = 20
SEEDS = (20260, 20261)


def run(world: World, namespace: str = "story-6") -> list[str]:
    """Play both stories under kills; gives the facts to print."""
    promoted, rolled_back = f"{namespace}-promoted", f"{namespace}-rolled-back"
    world.fresh_namespace(promoted)
    with Killer(world.access, promoted, SEEDS[0], world.say) as first:
        facts = list(s02_promotion.play(world, promoted).facts)
    wait_for_controller(world.access)
    world.fresh_namespace(rolled_back)
    with Killer(world.access, rolled_back, SEEDS[1], world.say) as second:
        facts += rollbacks.play(world, rolled_back, s03_slow_version.SLOW, timed=False).facts
    wait_for_controller(world.access)
    kills = len(first.kills) + len(second.kills)
    if kills < LEAST_KILLS:
        raise StoryError(f"the controller was killed {kills} times; at least {LEAST_KILLS} were promised")
    return [f"killed {len(first.kills)} + {len(second.kills)} times, seeds {SEEDS}; same end states", *facts]
