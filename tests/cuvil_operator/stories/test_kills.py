"""kill −9 between any two writes leads to the same end.

Each replay kills the controller after every STRIDE-th write, from another first one, so that together the replays kill
after each write of the story; a new controller that knows nothing goes on.
"""

from collections.abc import Callable
from fractions import Fraction

import pytest

from cluster_life import Behaviour
from cuvil_operator.conventions import Phase
from story import Story, spec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STRIDE = 5
CHANGES = {"serving__replicas": 2, "rollout__steps": [{"weight": 20, "hold": "10s"}, {"weight": 50, "hold": "10s"}]}


def promoted(story: Story) -> Story:
    """First deploy, then a canary that becomes stable."""
    story.apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE).run(3)
    story.apply(spec("good-2", **CHANGES))
    done = story.until(lambda status: status.phase == Phase.STABLE and bool(status.history))
    return done.run(20)


def rolled_back(story: Story) -> Story:
    """First deploy, then a canary that fails requests."""
    story.behave("bad", Behaviour(errors=Fraction(1, 4))).apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE)
    return story.apply(spec("bad", **CHANGES)).until_phase(Phase.ROLLED_BACK).run(20)


def rolled_back_by_pod_count(story: Story) -> Story:
    """The same where stable had given up pods."""
    changes = CHANGES | {"rollout__traffic": None, "rollout__steps": [{"weight": 67, "hold": "30s"}]}
    story.behave("bad", Behaviour(errors=Fraction(1, 4))).apply(spec("good-1", **changes)).until_phase(Phase.STABLE)
    return story.apply(spec("bad", **changes)).until_phase(Phase.ROLLED_BACK).run(20)


def superseded(story: Story) -> Story:
    """A canary that gives way to a newer spec, which is then reverted."""
    story.apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE)
    story.apply(spec("good-2", **CHANGES)).until_phase(Phase.PROGRESSING).run(8)
    story.apply(spec("good-3", **CHANGES)).until_phase(Phase.COMPILING).until_phase(Phase.PROGRESSING).run(8)
    return story.apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE).run(20)


def ordered_while_resolving(story: Story) -> Story:
    """A canary gives way to an unpinned spec, whose revision is held by an order that was given before it was known."""
    changes = CHANGES | {"model__sha256": None}
    story.apply(spec("good-1", **changes)).until_phase(Phase.STABLE)
    story.apply(spec("good-2", **changes)).until_phase(Phase.PROGRESSING).run(8)
    story.apply(spec("good-3", **changes)).until_phase(Phase.RESOLVING).command("pause@latest#1")
    return story.until_phase(Phase.PAUSED).run(20)


STORIES = [promoted, rolled_back, rolled_back_by_pod_count, superseded, ordered_while_resolving]


UNHURRIED = [promoted, rolled_back, rolled_back_by_pod_count]
"""What people do in them waits for an end, not for a phase that may pass while nobody controls."""


@pytest.mark.parametrize(
    ("tell", "down"),
    [*((one, 0) for one in STORIES), *((one, 4) for one in UNHURRIED)],
    ids=lambda one: one.__name__ if callable(one) else f"back after {one} s",
)
def test_kill_after_each_write(tell: Callable[[Story], Story], down: float) -> None:
    """Whatever write was the last one before the kill, the end state is that of the story without kills.

    Pods become ready while nobody controls: what the next controller then does rests on what is really there.
    """
    calm = tell(Story())
    for first in range(1, STRIDE + 1):
        story = tell(Story(kills=list(range(first, 400, STRIDE)), down_seconds=down))
        killed = sum("killed" in line for line in story.lines)
        assert killed >= calm.writes // STRIDE - 1, "the replay was not killed as planned"
        assert story.end_state() == calm.end_state(), f"kills from write {first}\n{story.text}"
        assert len(story.rollbacks) == len(calm.rollbacks), story.text
