"""A revision takes over: the first one whole, every later one by steps.

A step is: pods ready, weight actual, hold over, verdict Pass. Each step that is taken is recorded first, its weight set
in the next turn.
"""

from dataclasses import replace
from datetime import timedelta

from cuvil_operator.api import HistoryEntry, OnNoData, RevisionStatus
from cuvil_operator.conventions import EventKind, Phase, Reason
from cuvil_operator.decide import proof, split
from cuvil_operator.decide.look import Look
from cuvil_operator.decide.rollback import at_step
from cuvil_operator.decide.verdict import Verdict, reason_of
from cuvil_operator.facts import Decision

PODS_TURN = timedelta(seconds=10)
"""Until the next look while pods become ready; their events wake it earlier."""
ROUTE_TURN = timedelta(seconds=1)


def refuse_quarantined(look: Look) -> Decision | None:
    """A quarantined revision is not tried again by a restart or a re-sync."""
    entry = proof.quarantined(look.seen, look.spec, look.wanted) if look.wanted else None
    if entry is None or look.wanted is None or _is_stable(look):
        return None
    # only what lost a rollout is RolledBack; what never had traffic is Blocked
    lost = look.memory.rollback is not None and look.memory.rollback.revision == entry.revision
    phase = Phase.ROLLED_BACK if lost else Phase.BLOCKED
    message = (
        f"revision {look.wanted.revision} is quarantined since {entry.at:%Y-%m-%dT%H:%M:%SZ} ({entry.reason}: "
        f"{entry.message}); change the spec, or command retry@{look.wanted.revision}#NONCE"
    )
    return look.say("refuse_quarantined", phase, Reason.QUARANTINED, message)


def refuse_unreachable(look: Look) -> Decision | None:
    """Without a gateway, a step that pod counts would exceed more than twofold is refused before it begins."""
    rollout, replicas = look.spec.rollout, look.spec.serving.replicas
    starting = look.memory.canary is None and look.memory.stable is not None and not _is_stable(look)
    if not starting or rollout.traffic is not None or rollout.allow_coarse_weights:
        return None
    step = split.unreachable(replicas, rollout.steps)
    if step is None:
        return None
    share = split.by_pod_count(replicas, step.weight).share
    message = (
        f"spec.rollout.steps: {replicas} replicas cannot serve {step.weight}%, one canary pod is {share}% already; "
        "raise serving.replicas or the weight, set rollout.traffic.gateway, or allowCoarseWeights: true"
    )
    return look.say("refuse_unreachable", Phase.BLOCKED, Reason.WEIGHT_UNREACHABLE, message)


def start(look: Look) -> Decision | None:
    """Make the proved revision the canary, or the first revision."""
    wanted = look.wanted
    if wanted is None or wanted.record is None or look.memory.canary is not None or _is_stable(look):
        return None
    if look.memory.paused and look.memory.stable:
        return look.say("start", Phase.PAUSED, Reason.PAUSED, f"revision {wanted.revision} is paused before its start")
    record = wanted.record
    role = RevisionStatus(
        revision=wanted.revision,
        artifact=record.artifact,
        artifact_sha256=record.artifact_sha256,
        model_sha256=record.model_sha256,
        compile_key=record.compile_key,
        validation_key=record.validation_key,
        since=look.now,
    )
    memory = replace(look.memory, canary=role, analysis=None, step=None, timeline=())
    if look.memory.stable is None:
        message = f"the first revision {wanted.revision} is deployed"
        return look.record("start", Phase.DEPLOYING, Reason.FIRST_DEPLOY, message, memory)
    message = f"revision {wanted.revision} becomes the canary beside {look.memory.stable.revision}"
    return look.record("start", Phase.PROGRESSING, Reason.CANARY_STARTED, message, at_step(look, memory, 0))


def deploy_first(look: Look) -> Decision | None:
    """Bring the first revision up whole, then give it all traffic."""
    canary = look.memory.canary
    if canary is None or look.memory.stable is not None:
        return None
    if look.plan.reached:
        return _take_over(look, canary, None)
    late = canary.since is not None and look.now - canary.since > look.spec.rollout.progress_deadline
    if late:
        message = f"the first revision {canary.revision} is not serving in time: {look.plan.waiting}"
        return look.say("deploy_first", Phase.STALLED, Reason.PROGRESS_DEADLINE_EXCEEDED, message, after=PODS_TURN)
    reason = Reason.WAITING_FOR_PODS if look.plan.waits_for_canary else Reason.SETTING_WEIGHTS
    return look.say("deploy_first", Phase.DEPLOYING, reason, look.plan.waiting, after=_turn(look))


def reach_step(look: Look) -> Decision | None:
    """Wait until the present step's pods and weight are there, then start its clock."""
    canary, step = look.memory.canary, look.memory.step
    if canary is None or step is None:
        return None
    promoting = step.index >= len(look.spec.rollout.steps)
    if step.started_at is not None and not promoting:
        return None
    phase = Phase.PROMOTING if promoting else Phase.PROGRESSING
    if not look.plan.reached:
        late = step.entered_at is not None and look.now - step.entered_at > look.spec.rollout.progress_deadline
        reason = Reason.WAITING_FOR_PODS if look.plan.waits_for_canary else Reason.SETTING_WEIGHTS
        if late:
            # the canary's own lateness was met by rollback.deadline; this is the route's or stable's
            phase, reason = Phase.STALLED, Reason.PROGRESS_DEADLINE_EXCEEDED
        return look.say("reach_step", phase, reason, f"{_named(look)}: {look.plan.waiting}", after=_turn(look))
    if promoting:
        return _take_over(look, canary, look.memory.stable)
    share = look.seen.route.weights.get(canary.revision, 0)
    memory = replace(look.memory, step=replace(step, started_at=look.now))
    message = f"{_named(look)}: {share}% of the traffic is on revision {canary.revision}"
    return look.record("reach_step", phase, Reason.STEP_REACHED, message, memory)


def lose_step(look: Look) -> Decision | None:
    """A canary that loses its pods in mid-step has lost the step's weight: its clock and its deadline begin anew."""
    step = look.memory.step
    if step is None or step.started_at is None or not look.plan.waits_for_canary:
        return None
    memory = replace(look.memory, step=replace(step, started_at=None, entered_at=look.now))
    message = f"{_named(look)} begins again: {look.plan.waiting}"
    return look.record("lose_step", Phase.PROGRESSING, Reason.WAITING_FOR_PODS, message, memory, kind=EventKind.WARNING)


def hold_step(look: Look) -> Decision | None:
    """Keep the step for its hold and until the verdict is Pass, then take the next one."""
    canary, step, found = look.memory.canary, look.memory.step, look.memory.analysis
    if canary is None or step is None or step.started_at is None:
        return None
    interval = look.spec.rollout.analysis.interval
    if look.memory.paused:
        return look.say("hold_step", Phase.PAUSED, Reason.PAUSED, f"{_named(look)} is paused", after=interval)
    index = min(step.index, len(look.spec.rollout.steps) - 1)
    end = step.started_at + look.spec.rollout.steps[index].hold
    passes = found is not None and _passes(look) and found.at >= step.started_at
    if look.now >= end and passes:
        message = f"{_named(look)} passed: {found.message if found else ''}"
        memory = at_step(look, look.memory, step.index + 1)
        return look.record("hold_step", Phase.PROGRESSING, Reason.STEP_PASSED, message, memory)
    if look.now < end and passes:
        left = end - look.now
        # a moment, not a countdown: a text that changes every second would be a status write every second
        message = f"{_named(look)} holds until {end:%H:%M:%S}Z"
        return look.say("hold_step", Phase.PROGRESSING, Reason.STEP_HOLDING, message, after=min(interval, left))
    return _undecided(look, late=look.now - end > look.spec.rollout.progress_deadline)


def _undecided(look: Look, *, late: bool) -> Decision:
    found = look.memory.analysis
    interval = look.spec.rollout.analysis.interval
    reason = reason_of(found.reason) if found else Reason.NO_DATA
    why = found.message if found else "no samples yet"
    held_since = found.hold_since if found else None
    blind = held_since is not None and look.now - held_since > look.spec.rollout.progress_deadline
    phase = Phase.STALLED if late or blind else Phase.PROGRESSING
    return look.say("hold_step", phase, reason, f"{_named(look)} waits: {why}", after=interval)


def _passes(look: Look) -> bool:
    found = look.memory.analysis
    if found is None:
        return False
    silent = found.verdict == Verdict.HOLD or (
        found.verdict == Verdict.NOT_ENOUGH and all(one.requests == 0 for one in found.gates)
    )
    return found.verdict == Verdict.PASS or (silent and look.spec.rollout.analysis.on_no_data is OnNoData.PASS)


def _take_over(look: Look, canary: RevisionStatus, former: RevisionStatus | None) -> Decision:
    """The canary has all traffic: it is stable from now on, the former stable goes into history."""
    memory = look.memory
    past = tuple(one for one in memory.history if one.revision != canary.revision)
    if former and former.revision != canary.revision:
        entry = HistoryEntry(
            former.revision, former.since or look.now, former.artifact, former.artifact_sha256, former.model_sha256
        )
        past = (entry, *(one for one in past if one.revision != former.revision))
    memory = replace(
        memory,
        stable=replace(canary, since=look.now),
        canary=None,
        step=None,
        paused=None,
        history=past[: look.spec.rollout.history_limit],
    )
    message = f"revision {canary.revision} is stable and has all traffic"
    return look.record("take_over", Phase.STABLE, Reason.PROMOTED, message, memory, kind=EventKind.NORMAL)


def _is_stable(look: Look) -> bool:
    stable, wanted = look.memory.stable, look.wanted
    return stable is not None and wanted is not None and stable.revision == wanted.revision


def _named(look: Look) -> str:
    step = look.memory.step
    if step is None or step.index >= len(look.spec.rollout.steps):
        return "promotion"
    return f"step {step.index + 1}/{len(look.spec.rollout.steps)}"


def _turn(look: Look) -> timedelta:
    return PODS_TURN if look.plan.waits_for_canary else ROUTE_TURN
