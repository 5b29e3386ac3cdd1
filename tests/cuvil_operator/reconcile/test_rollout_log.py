"""The log tells a rollout by the words of its Events, each thing once, and no secrets."""

import logging
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from cluster_life import Behaviour
from cuvil_operator.api import CuvilModelStatus
from cuvil_operator.conventions import EventKind, Phase, Reason
from cuvil_operator.facts import Decision, EmitEvent, ModelKey
from cuvil_operator.rollout_log import LIMIT, RolloutLog
from story import Story, spec

KEY = ModelKey("vision", "m")
LINE = re.compile(r"vision/m revision=(?P<revision>[0-9a-f]{12}|-) phase=(?P<phase>\w+) reason=(?P<reason>\w+): (.+)")
BEFORE = CuvilModelStatus(phase="Compiling")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Give the log from info on, as the controller runs by default."""
    caplog.set_level(logging.INFO, logger="cuvil_operator.rollout_log")
    return caplog


def decision(message: str, *events: str) -> Decision:
    """Give a decision with these Events."""
    acts = tuple(EmitEvent(EventKind.NORMAL, Reason.COMPILING, one) for one in events)
    return Decision("r", Phase.COMPILING, Reason.COMPILING, message, BEFORE, acts, revision="a" * 12)


def test_a_rollout_and_its_rollback_are_told(lines: pytest.LogCaptureFixture) -> None:
    """Every Event of a promotion, a rollback and an order is one line, phases are told, most turns write nothing."""
    story = Story().apply(spec("good-1", model__sha256=None)).until_phase(Phase.STABLE)
    story.behave("bad", Behaviour(errors=Fraction(1, 4))).apply(spec("bad", model__sha256=None))
    story.until_phase(Phase.ROLLED_BACK).command("clear-quarantine@latest#1").run(120)
    read = [LINE.fullmatch(one) for one in lines.messages]
    assert all(read), lines.messages
    events = [one for one in story.kubernetes.all() if one["kind"] == "Event"]
    told = [(one["reason"], one[4]) for one in read if one]
    assert {(one["reason"], one["message"]) for one in events} <= set(told)
    assert {one["phase"] for one in read if one} >= {
        *("Resolving", "Compiling", "Validating", "Deploying", "Stable", "Progressing", "RollingBack", "RolledBack")
    }
    rolled_back = [story.aliases[one["revision"]] for one in read if one and one["phase"] == "RolledBack"]
    assert set(rolled_back) == {"B"}
    assert {one["revision"] for one in read if one and one["phase"] == "Resolving"} == {"-"}
    assert len(told) < story.turns


def test_a_turn_without_news_is_silent(lines: pytest.LogCaptureFixture) -> None:
    """Neither an equal phase nor a new message alone is a line; a changed phase is."""
    log = RolloutLog()
    log.tell(KEY, BEFORE, replace(BEFORE, message="the Job is running"), decision("the Job is running"))
    assert lines.messages == []
    log.tell(KEY, BEFORE, replace(BEFORE, phase="Validating"), decision("on it goes"))
    assert lines.messages == [f"vision/m revision={'a' * 12} phase=Validating reason=Compiling: on it goes"]


def test_what_fails_again_and_again_is_told_once(lines: pytest.LogCaptureFixture) -> None:
    """A decision whose act is refused comes again each turn, its line does not; another line lets it be news again."""
    log = RolloutLog()
    for event in ("a", "a", "a", "b", "a"):
        log.tell(KEY, BEFORE, BEFORE, decision("x", event))
    assert [one[-1] for one in lines.messages] == ["a", "b", "a"]


def test_no_secret_and_no_second_line_gets_into_the_log(lines: pytest.LogCaptureFixture) -> None:
    """Credentials and queries of URLs are left out, and what a Job wrote stays one line of bounded length."""
    said = (
        "finding https://eva:pass@word@models.example/m.onnx?sig=SECRET&x=1 and\noci://r/m@sha256:1 \x1b[31m"
        + "y" * 5000
    )
    RolloutLog().tell(KEY, BEFORE, BEFORE, decision("x", said))
    [line] = lines.messages
    assert "finding https://models.example/m.onnx?… and oci://r/m@sha256:1 [31my" in line
    assert not {"eva", "word", "SECRET"} & set(re.findall(r"\w+", line)) and line.isprintable()
    assert len(line) < LIMIT + 100
