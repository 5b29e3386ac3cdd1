"""Every verb in every phase: what it answers and where the rollout goes from there."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cluster_life import Behaviour
from cuvil_core.contract import ExitCode
from cuvil_operator.conventions import Phase, Reason, Verb
from story import Story, failure, sha, spec, success

CHANGES = {"serving__replicas": 2, "rollout__steps": [{"weight": 20, "hold": "20s"}, {"weight": 50, "hold": "20s"}]}


UNPINNED = {"model__sha256": None, **CHANGES}


def resolving() -> Story:
    """The sha256 behind the URI of B is looked up; A is stable, and what its generation asked for."""
    story = Story().apply(spec("good-1", **UNPINNED)).until_phase(Phase.STABLE)
    return story.apply(spec("good-2", **UNPINNED)).until_phase(Phase.RESOLVING)


def compiling() -> Story:
    """A second revision B compiles; A is stable."""
    story = Story().apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE)
    return story.apply(spec("good-2", **CHANGES)).until_phase(Phase.COMPILING)


def blocked() -> Story:
    """B cannot be compiled; A is stable."""
    story = Story().apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE)
    story.ends("compile", "wrong", failure(ExitCode.BAD_MODEL, "the file ends early"))
    return story.apply(spec("wrong", **CHANGES)).until_phase(Phase.BLOCKED)


def deploying() -> Story:
    """The first revision A is deployed."""
    return Story().apply(spec("good-1", **CHANGES)).until_phase(Phase.DEPLOYING).run(1)


def progressing() -> Story:
    """B is the canary at its first step; A is stable."""
    return compiling().until(lambda status: status.step is not None and status.step.started_at is not None)


def paused() -> Story:
    """B is paused at its first step."""
    return progressing().command("pause@B#0").until_phase(Phase.PAUSED)


def promoting() -> Story:
    """B has passed its steps and becomes whole."""
    return progressing().command("promote-full@B#0").until_phase(Phase.PROMOTING)


def rolling_back() -> Story:
    """B fails and its pods still end."""
    story = Story().apply(spec("good-1", **CHANGES)).until_phase(Phase.STABLE)
    story.behave("bad", Behaviour(errors=Fraction(1, 4))).apply(spec("bad", **CHANGES))
    return story.until(lambda status: status.rollback is not None)


def rolled_back() -> Story:
    """B is quarantined; A is stable."""
    return rolling_back().until_phase(Phase.ROLLED_BACK)


def stable() -> Story:
    """B is stable, A is in history."""
    return progressing().until_phase(Phase.STABLE).run(5)


def suspended() -> Story:
    """B is the canary and the model is suspended."""
    return progressing().apply(spec("good-2", suspend=True, **CHANGES)).until_phase(Phase.SUSPENDED)


PHASES = (
    resolving,
    compiling,
    blocked,
    deploying,
    progressing,
    paused,
    promoting,
    rolling_back,
    rolled_back,
    stable,
    suspended,
)
DONE, NO_OP, REFUSED = "Done", "NoOp", "Refused"
WAITS = "waits"
"""No answer yet: the order is for `latest`, and which revision that is becomes known by the resolve Job."""

ANSWERS = {
    # in the order of PHASES
    Verb.PROMOTE: (WAITS, REFUSED, REFUSED, NO_OP, DONE, DONE, NO_OP, REFUSED, REFUSED, NO_OP, DONE),
    Verb.PROMOTE_FULL: (WAITS, REFUSED, REFUSED, NO_OP, DONE, DONE, NO_OP, REFUSED, REFUSED, NO_OP, DONE),
    Verb.ABORT: (WAITS, DONE, DONE, DONE, DONE, DONE, DONE, NO_OP, NO_OP, REFUSED, DONE),
    Verb.RETRY: (WAITS, DONE, DONE, NO_OP, NO_OP, NO_OP, NO_OP, DONE, DONE, NO_OP, NO_OP),
    Verb.PAUSE: (WAITS, DONE, DONE, DONE, DONE, NO_OP, DONE, REFUSED, DONE, NO_OP, DONE),
    Verb.RESUME: (WAITS, NO_OP, NO_OP, NO_OP, NO_OP, DONE, NO_OP, REFUSED, NO_OP, NO_OP, NO_OP),
    Verb.RESTART: (WAITS, REFUSED, REFUSED, DONE, DONE, DONE, DONE, REFUSED, REFUSED, DONE, DONE),
    Verb.CLEAR_QUARANTINE: (WAITS, NO_OP, NO_OP, NO_OP, NO_OP, NO_OP, NO_OP, DONE, DONE, NO_OP, NO_OP),
}


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("place", range(1, len(PHASES)), ids=[one.__name__ for one in PHASES[1:]])
def test_every_verb_in_every_phase(verb: Verb, place: int) -> None:
    """A verb answers as the table says and is taken once; Refused and NoOp leave every fact of the status as it was."""
    begin: Callable[[], Story] = PHASES[place]
    story = begin()
    before = story.status
    order = f"{verb.value}@{'A' if begin is deploying else 'B'}#n1"
    story.command(order).run(0)
    told = story.status.last_command
    assert told is not None and told.text.endswith("#n1") and told.outcome == ANSWERS[verb][place], story.text
    if told.outcome != DONE:
        kept = ("stable", "step", "paused", "quarantine", "history", "retried_at", "revision")
        assert [getattr(story.status, one) for one in kept] == [getattr(before, one) for one in kept], story.text
    story.run(3)
    assert story.status.last_command == told, "taken twice"


@pytest.mark.parametrize("verb", Verb)
def test_an_order_for_latest_waits_until_it_is_known(verb: Verb) -> None:
    """While a new spec resolves, `latest` is not the former revision: the order waits, and then means the new one."""
    story = resolving()
    before = story.status
    place = PHASES.index(resolving)
    assert ANSWERS[verb][place] == WAITS
    story.command(f"{verb.value}@latest#n1").run(1)
    told = story.status
    assert told.last_command is None and f"'{verb.value}@latest#n1' waits" in (told.message or ""), story.text
    assert (told.stable, told.paused, told.quarantine) == (before.stable, None, ()), story.text
    story.until(lambda status: status.last_command is not None)
    answer = story.status.last_command
    assert answer is not None and answer.outcome == ANSWERS[verb][place + 1], story.text
    assert verb is Verb.RETRY or "revision B" in story._alias_all(answer.message), story.text
    assert "waits" not in (story.status.message or "")


def mid_canary() -> Story:
    """B is the canary at its first step when the spec begins to ask for an unpinned third revision."""
    story = Story().apply(spec("good-1", **UNPINNED)).until_phase(Phase.STABLE).apply(spec("good-2", **UNPINNED))
    story.until(lambda status: status.step is not None and status.step.started_at is not None)
    return story.apply(spec("good-3", **UNPINNED)).until_phase(Phase.RESOLVING)


def test_pause_of_latest_leaves_the_former_canary_alone() -> None:
    """Ordered while C resolves, it lets B give way and holds C before its start until it is resumed."""
    story = mid_canary().command("pause@latest#1").run(1)
    assert story.status.paused is None
    story.until_phase(Phase.PAUSED).run(60)
    assert story.status.phase == Phase.PAUSED and story.status.canary is None and story.weights == {"A": 100}
    told = story.status.last_command
    assert told is not None and "revision C is paused" in story._alias_all(told.message), story.text
    story.command("resume@latest#2").until_phase(Phase.STABLE)
    assert story.stable == "C"


def test_abort_of_latest_spares_the_former_canary() -> None:
    """Ordered while C resolves, it quarantines C, not B."""
    story = mid_canary().command("abort@latest#1").until(lambda status: bool(status.quarantine))
    assert story.aliases[story.status.quarantine[0].revision] == "C", story.text


def test_an_order_by_name_acts_at_once_while_another_revision_resolves() -> None:
    """A named revision needs nothing that is not known yet."""
    story = mid_canary().command("abort@B#1").run(0)
    told = story.status.last_command
    assert told is not None and told.outcome == DONE and story.status.rollback is not None


def test_a_canary_that_gives_way_is_not_held() -> None:
    """A pause by name of a canary that a newer spec has ended is refused, and does not hold the newer one."""
    story = (
        progressing()
        .apply(spec("good-3", **CHANGES))
        .until(lambda status: bool(status.timeline) and status.timeline[-1].reason == Reason.SUPERSEDED)
    )
    story.command("pause@B#1").run(0)
    told = story.status.last_command
    assert told is not None and told.outcome == REFUSED and "gives way" in told.message, story.text
    assert story.status.paused is None


def test_retry_of_latest_repeats_a_failed_look_behind_the_uri() -> None:
    """Where the resolve Job has failed, nothing is known until it is made anew: retry does that at once."""
    story = Story().apply(spec("good-1", **UNPINNED)).until_phase(Phase.STABLE)
    story.ends(
        "resolve", "good-2", failure(ExitCode.NOT_FOUND, "the host answers 404"), success("resolve", sha("good-2"))
    )
    story.apply(spec("good-2", **UNPINNED)).until_phase(Phase.BLOCKED)
    story.command("pause@latest#1").run(2)
    assert story.status.last_command is None and "404" in (story.status.message or "")
    story.command("retry@latest#2").run(0)
    told = story.status.last_command
    assert told is not None and told.outcome == DONE, story.text
    story.until_phase(Phase.STABLE)
    assert story.stable == "B"


def test_promote_ends_a_step_early() -> None:
    """promote goes to the next step before the hold is over; promote-full to the end."""
    story = (
        progressing().command("promote@B#1").until(lambda status: status.step is not None and status.step.index == 1)
    )
    assert story.clock.monotonic() < 60
    story.command("promote-full@B#2").until_phase(Phase.STABLE)


def test_abort_quarantines_and_retry_tries_again() -> None:
    """abort takes the canary away for good; retry lifts that."""
    story = progressing().command("abort@B#1").until_phase(Phase.ROLLED_BACK).run(30)
    assert [one.reason for one in story.status.quarantine] == [Reason.ABORTED]
    story.command("retry@B#2").until_phase(Phase.STABLE)
    assert story.stable == "B"


def test_retry_during_a_rollback_waits_for_its_end() -> None:
    """Ordered while the canary's pods still end, a retry lets the rollback end and then begins anew."""
    story = progressing().command("abort@B#1").until(lambda status: status.rollback is not None).run(0)
    assert story.status.phase == Phase.ROLLING_BACK
    story.command("retry@B#2").run(0)
    assert story.status.quarantine == () and story.status.phase == Phase.ROLLING_BACK
    story.until(lambda status: status.rollback is not None and status.rollback.finished_at is not None)
    story.until_phase(Phase.STABLE)
    assert story.stable == "B"


def test_abort_before_traffic_cancels_the_job() -> None:
    """abort of a revision that compiles ends its Job and leaves stable alone."""
    story = compiling().command("abort@B#1").until_phase(Phase.BLOCKED).run(10)
    assert not [one for one in story.end_state()["objects"] if one.startswith("Job")]
    assert story.weights == {story.stable: 100}


def test_abort_of_the_first_revision_leaves_nothing_serving() -> None:
    """Without a stable revision an abort takes the pods away and says that nothing serves."""
    story = deploying().command("abort@A#1").until_phase(Phase.ROLLED_BACK).run(10)
    assert story.status.stable is None
    assert not story.life.counters


def test_retry_makes_a_failed_job_anew() -> None:
    """retry runs the failed compile once more."""
    story = blocked()
    made = len(story.life.jobs_made)
    story.run(2).command("retry@B#1").run(10)
    assert len(story.life.jobs_made) == made + 1


def test_pause_holds_and_resume_goes_on() -> None:
    """A paused canary keeps its weight past its hold; resumed, it goes on."""
    story = paused().run(90)
    assert story.status.phase == Phase.PAUSED
    story.command("resume@B#2").until_phase(Phase.STABLE)


def test_a_paused_canary_is_still_rolled_back() -> None:
    """pause holds the steps, never the way back."""
    story = paused().behave("good-2", Behaviour(errors=Fraction(1, 4)))
    story.until_phase(Phase.ROLLED_BACK)


def test_restart_replaces_the_pods_one_by_one() -> None:
    """restart makes every pod new while stable keeps its need, and no request is lost."""
    story = stable()
    before = set(story.life.counters)
    story.command("restart@B#1").run(30)
    assert not before & set(story.life.counters)
    assert story.life.dropped == 0
    after = set(story.life.counters)
    story.command("pause@B#2").run(30)
    assert set(story.life.counters) == after, "another command restarted them again"


@pytest.mark.parametrize(
    "text",
    [
        "promote",
        "promote@B",
        "explode@aaaaaaaaaaaa#1",
        "promote@xyz#1",
        "promote@aaaaaaaaaaaa#",
        "x" * 5000,
        "PROMOTE@A#1",
    ],
)
def test_a_malformed_command_is_answered_once(text: str) -> None:
    """What is no command is refused with a sentence and an Event, and nothing else changes."""
    story = progressing()
    before = story.status
    story._put(story._asked["m"], {"cuvil.dev/command": text})
    story.run(0)
    told = story.status.last_command
    assert told is not None and told.outcome == REFUSED and "VERB@REVISION#NONCE" in told.message
    condition = next(one for one in story.status.conditions if one.type == "Progressing")
    assert "refused" in condition.message
    events = [one for one in story.kubernetes.all() if one["kind"] == "Event" and one["reason"] == "CommandMalformed"]
    assert len(events) == 1
    assert replace(story.status, last_command=None).canary == before.canary


def test_a_command_for_a_revision_that_is_not_here_is_refused() -> None:
    """A late order cannot hit another revision than its sender saw."""
    story = progressing().command("abort@aaaaaaaaaaaa#1").run(0)
    told = story.status.last_command
    assert told is not None and told.outcome == REFUSED and "is not here" in told.message
    assert story.status.rollback is None


def test_latest_names_what_the_spec_asks_for() -> None:
    """`latest` spares people the digits."""
    story = progressing().command("promote@latest#1").run(0)
    told = story.status.last_command
    assert told is not None and told.outcome == DONE


def documented() -> str:
    """Give the table of answers as docs/reference/rollouts.md holds it."""
    heads = " | ".join(one.__name__.replace("_", " ") for one in PHASES)
    rows = [f"| `{verb.value}` | {' | '.join(answers)} |" for verb, answers in ANSWERS.items()]
    return "\n".join([f"| | {heads} |", "|---" * (len(PHASES) + 1) + "|", *rows])


def test_the_reference_page_holds_this_table(request: pytest.FixtureRequest) -> None:
    """What people read of the verbs is what is tested here; --update-golden writes it anew."""
    page = Path(request.config.rootpath) / "docs/reference/rollouts.md"
    head, _, rest = page.read_text().partition("test_verbs.py -->\n")
    told, mark, tail = rest.partition("\n<!-- /verbs -->")
    if request.config.getoption("--update-golden"):
        page.write_text(f"{head}test_verbs.py -->\n{documented()}{mark}{tail}")
        told = documented()
    assert told == documented()
