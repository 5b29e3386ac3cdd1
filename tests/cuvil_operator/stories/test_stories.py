"""Rollouts from the first apply to the end, turn by turn, against golden text."""

from collections.abc import Callable

from cuvil_operator.conventions import Phase
from story import Story, spec

Golden = Callable[[str, str], None]


def first_deploy() -> Story:
    """Deploy one model and let it rest."""
    return Story().apply(spec("good-1")).until_phase(Phase.STABLE).run(30)


def promoted() -> Story:
    """Deploy a second, healthy model."""
    return first_deploy().apply(spec("good-2")).until_phase(Phase.PROGRESSING).until_phase(Phase.STABLE).run(30)


def test_first_deploy(golden: Golden) -> None:
    """The first revision is whole and ready before it has its first request, then it has all of them."""
    golden("first_deploy.txt", first_deploy().text)


def test_canary_promoted(golden: Golden) -> None:
    """A healthy canary goes through its steps and becomes stable; no request finds no pod."""
    story = promoted()
    golden("canary_promoted.txt", story.text)
    assert story.life.dropped == 0
