"""What people read: merged from the decision, the acts' outcomes and what is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cuvil_operator.api import Condition, CuvilModelSpec, CuvilModelStatus, LastCommand, RevisionStatus, Rollback
from cuvil_operator.conventions import ConditionType, Phase, Reason
from cuvil_operator.facts import (
    Decision,
    EnsureMonitoring,
    Images,
    Observed,
    Outcome,
    OutcomeKind,
    Platform,
    RouteSeen,
    Said,
    WorkloadSeen,
)
from cuvil_operator.status import next_status

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
A, B = "a" * 12, "b" * 12
SPEC = CuvilModelSpec.from_dict(
    {
        "model": {"uri": "https://h/m.onnx"},
        "target": "x86_64-cpu",
        "slo": {"latency": {"threshold": "800ms"}},
        "serving": {"replicas": 2},
    }
)
STATUS = CuvilModelStatus(stable=RevisionStatus(A), canary=RevisionStatus(B))
SEEN = Observed(
    NOON,
    "m",
    "ns",
    "u",
    3,
    SPEC,
    STATUS,
    Platform(Images("c", "r"), "registry/x"),
    workloads=(WorkloadSeen(A, 2, 2, 2), WorkloadSeen(B, 1, 0, 1, message="no node fits")),
    route=RouteSeen(True, {A: 90, B: 10}),
)
DECISION = Decision("r", Phase.PROGRESSING, Reason.STEP_HOLDING, "step 1/3 holds", replace(STATUS, paused=True))


def condition(status: CuvilModelStatus, kind: ConditionType) -> Condition:
    """Give one condition."""
    return next(one for one in status.conditions if one.type == kind)


def test_weights_and_pods_are_what_is() -> None:
    """Columns show the observation, never what was ordered."""
    told = next_status(SEEN, DECISION)
    assert told.stable is not None and told.canary is not None
    assert (told.stable.weight, told.stable.ready_replicas, told.canary.weight, told.weight) == (90, 2, 10, 10)
    assert (told.canary.replicas, told.canary.ready_replicas, told.phase) == (1, 0, "Progressing")


def test_memory_is_kept_and_a_failed_act_is_told() -> None:
    """What was seen and decided is remembered also when an act failed; people are told why."""
    for kind in OutcomeKind:
        told = next_status(SEEN, DECISION, [Outcome(EnsureMonitoring(), kind, "RBAC says no")])
        assert told.paused is True
        failed = kind is OutcomeKind.FAILED
        assert condition(told, ConditionType.STALLED).status == ("True" if failed else "False")
        assert ("RBAC says no" in (told.message or "")) is failed


def test_a_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    """Reason and message may change without a transition; another status is one."""
    first = next_status(SEEN, DECISION)
    later = replace(SEEN, now=NOON + timedelta(minutes=5), status=first)
    again = next_status(later, replace(DECISION, message="other words"))
    before, after = condition(first, ConditionType.PROGRESSING), condition(again, ConditionType.PROGRESSING)
    assert (after.last_transition_time, after.message) == (before.last_transition_time, "other words")
    rested = next_status(later, replace(DECISION, phase=Phase.STABLE))
    assert condition(rested, ConditionType.PROGRESSING).last_transition_time == later.now


def test_conditions_carry_the_generation() -> None:
    """observedGeneration is on each condition that was said this turn."""
    assert {one.observed_generation for one in next_status(SEEN, DECISION).conditions} == {3}


def test_a_condition_that_nobody_speaks_of_stays() -> None:
    """Compiled=False of a blocked spec is not lost in a turn that is about something else."""
    said = Said(ConditionType.COMPILED, "False", Reason.BAD_MODEL, "truncated")
    first = next_status(SEEN, replace(DECISION, conditions=(said,)))
    again = next_status(replace(SEEN, status=first), DECISION)
    assert condition(again, ConditionType.COMPILED).reason == Reason.BAD_MODEL


def test_ready_asks_for_all_pods_of_stable() -> None:
    """A stable revision that lacks a pod is not Ready, and the reason says so."""
    assert condition(next_status(SEEN, DECISION), ConditionType.READY).status == "True"
    lacking = replace(SEEN, workloads=(WorkloadSeen(A, 2, 1, 2, message="image is missing"),))
    told = condition(next_status(lacking, DECISION), ConditionType.READY)
    assert (told.status, told.reason) == ("False", Reason.WAITING_FOR_PODS)
    assert "image is missing" in told.message


def test_nothing_serves_before_the_first_revision() -> None:
    """Without a stable revision Ready is False with the reason of the phase."""
    none = replace(SEEN, status=CuvilModelStatus())
    told = next_status(none, replace(DECISION, memory=CuvilModelStatus()))
    assert condition(told, ConditionType.READY).reason == Reason.STEP_HOLDING
    assert told.weight is None


def test_blocked_and_stalled_are_the_stalled_condition() -> None:
    """One condition tells that it does not go on."""
    for phase, status in ((Phase.BLOCKED, "True"), (Phase.STALLED, "True"), (Phase.STABLE, "False")):
        told = next_status(SEEN, replace(DECISION, phase=phase))
        assert condition(told, ConditionType.STALLED).status == status


def test_rolled_back_ends_with_the_next_rollout() -> None:
    """RolledBack is True from the record of a rollback until something else goes on."""
    dossier = Rollback(B, Reason.LATENCY_BREACHED, "too slow", NOON, stable=A)
    memory = replace(STATUS, rollback=dossier)
    rolling = next_status(SEEN, replace(DECISION, phase=Phase.ROLLING_BACK, memory=memory))
    assert condition(rolling, ConditionType.ROLLED_BACK).status == "True"
    ended = replace(memory, rollback=replace(dossier, finished_at=NOON))
    rests = next_status(SEEN, replace(DECISION, phase=Phase.ROLLED_BACK, memory=ended))
    assert condition(rests, ConditionType.ROLLED_BACK).status == "True"
    goes_on = next_status(SEEN, replace(DECISION, phase=Phase.COMPILING, memory=ended))
    assert condition(goes_on, ConditionType.ROLLED_BACK).status == "False"


def test_a_refused_command_is_in_a_condition() -> None:
    """Who only reads conditions learns that a command was refused."""
    memory = replace(STATUS, last_command=LastCommand("x@y#1", "Refused", "no such verb", NOON))
    told = condition(next_status(SEEN, replace(DECISION, memory=memory)), ConditionType.PROGRESSING)
    assert "no such verb" in told.message


def test_nothing_new_is_an_equal_status() -> None:
    """A turn in which nothing happened gives the status that was read: no write is needed."""
    first = next_status(SEEN, DECISION)
    again = replace(SEEN, now=NOON + timedelta(minutes=9), status=first)
    assert next_status(again, replace(DECISION, memory=first)) == first


def test_status_reads_back_from_its_document() -> None:
    """What is written is what the next turn reads."""
    told = next_status(SEEN, DECISION)
    assert CuvilModelStatus.from_dict(told.to_dict()) == told
