"""Story 2: a better version goes out by steps under load and takes everything; no request fails."""

from e2e.stories.access import StoryError
from e2e.stories.load import must_not_fail
from e2e.stories.timeline import Played
from e2e.stories.world import STAGE, World, other

NAME = "rec"


def run(world: World) -> list[str]:
    """Play the story; gives the facts to print."""
    return played(world).facts


def played(world: World, namespace: str = STAGE) -> Played:
    """With a good version at rest: send load, apply a better one, and see it take everything."""
    kind, first = world.steady(NAME, namespace)
    load = world.load(NAME, namespace, rate=20)
    with world.watched(NAME, namespace) as timeline:
        world.apply(world.manifest(NAME, namespace, world.version(other(kind))))
        second = world.wait_stable(NAME, namespace, not_revision=first)["stable"]["revision"]
    total = load.stop()
    must_not_fail(total)
    weights = {moment.weight for moment in timeline.moments}
    if not {20, 50} <= weights:
        raise StoryError(f"the canary went through the weights {sorted(weights)}, not through 20 and 50")
    answered = {revision: total["by_revision"].get(revision, 0) for revision in (first, second)}
    facts = [
        f"revision {first} gave way to {second} by the weights {', '.join(f'{one} %' for one in sorted(weights))}",
        f"{total['ok']} requests, none failed; " + ", ".join(f"{n} answered by {one}" for one, n in answered.items()),
    ]
    return Played(facts, timeline, second)
