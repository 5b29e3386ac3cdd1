"""Story 2: a better version goes out by steps under load and takes everything; no request fails."""

from e2e.stories.access import StoryError
from e2e.stories.load import must_not_fail
from e2e.stories.timeline import Timeline
from e2e.stories.world import World

NAME = "rec"


def run(world: World, namespace: str = "story-2") -> list[str]:
    """Play the story; gives the facts to print."""
    world.fresh_namespace(namespace)
    return play(world, namespace)[0]


def play(world: World, namespace: str, load_seconds: float = 150) -> tuple[list[str], Timeline, str]:
    """Play the story in an empty namespace; gives the facts, the timeline and the new revision."""
    world.apply(world.manifest(NAME, namespace, world.version("base")))
    first = world.wait_stable(NAME, namespace)["stable"]["revision"]
    load = world.load(NAME, namespace, rate=20, seconds=load_seconds)
    with world.watched(NAME, namespace) as timeline:
        world.apply(world.manifest(NAME, namespace, world.version("retrained")))
        status = world.wait_stable(NAME, namespace, not_revision=first)
    total = load.total()
    must_not_fail(total)
    weights = [moment.weight for moment in timeline.moments]
    if not {10, 50} <= set(weights):
        raise StoryError(f"the canary went through the weights {weights}, not through 10 and 50")
    second = status["stable"]["revision"]
    answered = total["by_revision"]
    facts = [
        f"revision {first} gave way to {second} by the weights {sorted(set(weights))}",
        f"{total['ok']} requests, none failed; answered by {first}: {answered.get(first, 0)}, {second}: {answered.get(second, 0)}",
    ]
    return facts, timeline, second
