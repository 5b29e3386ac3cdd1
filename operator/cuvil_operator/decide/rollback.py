"""The way back: what begins a rollback, its turns, its end; and a canary that gives way to a newer spec.

A rollback is first recorded, with its dossier and the quarantine, and acted upon from the next turn on: after kill −9
at any point the record, not the verdict, decides. Order: stable whole (waited for one interval at most), weight to 0,
canary down.
"""

from dataclasses import replace
from datetime import timedelta

from cuvil_operator.api import CuvilModelStatus, GateStatus, OnNoData, QuarantineEntry, Rollback, StepStatus
from cuvil_operator.conventions import EventKind, Gate, Phase, Reason
from cuvil_operator.decide.look import Look, brief, noted
from cuvil_operator.decide.plan import leaving, rolling_back, superseded, workload
from cuvil_operator.decide.verdict import Verdict, reason_of
from cuvil_operator.decide.wanted import record_of
from cuvil_operator.facts import Decision

QUARANTINE_LIMIT = 20
"""Entries kept; the oldest go first."""
TURN = timedelta(seconds=1)
"""Until the next look while the way back waits for the cluster; events wake it earlier."""


def at_step(look: Look, memory: CuvilModelStatus, index: int) -> CuvilModelStatus:
    """Give memory with the canary at a step; index = number of steps means promotion."""
    steps = look.spec.rollout.steps
    total = len(steps)
    weight = steps[index].weight if index < total else 100
    shown = f"{index + 1}/{total}" if index < total else "promoting"
    return replace(memory, step=StepStatus(index, total, weight, entered_at=look.now, display=shown))


def begun(look: Look, reason: Reason, message: str, *, intrinsic: bool = False) -> CuvilModelStatus:
    """Give memory with the dossier and the quarantine; intrinsic: the artifact itself is at fault."""
    memory = look.memory
    canary = memory.canary
    assert canary is not None
    record = record_of(look.seen, canary.revision)
    artifact = record.artifact_sha256 if record and intrinsic else None
    entry = QuarantineEntry(canary.revision, reason.value, brief(message), look.now, artifact)
    marked = noted(memory, look.now, reason, message)
    gate = _guilty(memory)
    dossier = Rollback(
        revision=canary.revision,
        stable=memory.stable.revision if memory.stable else None,
        reason=reason.value,
        message=message,
        started_at=look.now,
        gate=replace(gate, counters=()) if gate else None,
        crossed_at=memory.analysis.at if gate and memory.analysis else None,
        timeline=marked.timeline,
    )
    return replace(memory, rollback=dossier, quarantine=(entry, *memory.quarantine)[:QUARANTINE_LIMIT], paused=None)


def breach(look: Look) -> Decision | None:
    """Begin a rollback when a gate has failed, or when onNoData is Fail and there was no data for too long."""
    found = look.memory.analysis
    canary = look.memory.canary
    if canary is None or look.memory.stable is None or found is None or leaving(look.seen, look.wanted):
        return None
    if found.revision != canary.revision:
        return None
    if found.verdict == Verdict.FAIL:
        return _begin(look, "breach", reason_of(found.reason), found.message)
    rollout = look.spec.rollout
    blind = found.hold_since is not None and look.now - found.hold_since > rollout.progress_deadline
    if blind and rollout.analysis.on_no_data is OnNoData.FAIL:
        message = f"no usable samples for {rollout.progress_deadline}, and onNoData is Fail: {found.message}"
        return _begin(look, "breach", Reason.NO_DATA_TOO_LONG, message)
    return None


def deadline(look: Look) -> Decision | None:
    """Begin a rollback when the canary's pods are not ready in time, whatever the route says."""
    step, canary = look.memory.step, look.memory.canary
    waits = look.plan.waits_for_canary and look.memory.stable is not None and not leaving(look.seen, look.wanted)
    if step is None or canary is None or not waits or step.entered_at is None or step.started_at is not None:
        return None
    if look.now - step.entered_at <= look.spec.rollout.progress_deadline:
        return None
    crashed = workload(look.seen, canary.revision).crashing
    reason = Reason.CANARY_CRASHED if crashed else Reason.PROGRESS_DEADLINE_EXCEEDED
    return _begin(look, "deadline", reason, look.plan.waiting, intrinsic=crashed)


def go_on(look: Look) -> Decision | None:
    """Take the next step of a rollback under way, and end it when the canary is down."""
    dossier, canary = look.memory.rollback, look.memory.canary
    if dossier is None or not rolling_back(look.seen):
        return None
    if canary is None or look.plan.reached:
        back = f"all traffic is on stable {dossier.stable}" if dossier.stable else "nothing serves"
        held = any(one.revision == dossier.revision for one in look.memory.quarantine)
        message = f"revision {dossier.revision} is rolled back{' and quarantined' * held} ({dossier.reason}); {back}"
        marked = noted(look.memory, look.now, Reason.ROLLED_BACK, message)
        ended = replace(dossier, finished_at=look.now, timeline=marked.timeline)
        ended = replace(ended, weight_zero_at=ended.weight_zero_at or look.now)
        memory = replace(look.memory, rollback=ended, canary=None, step=None)
        return look.record("rollback", Phase.ROLLED_BACK, Reason.ROLLED_BACK, message, memory, kind=EventKind.WARNING)
    if dossier.weight_zero_at is None and _weightless(look, canary.revision):
        message = f"revision {canary.revision} has no traffic any more"
        marked = noted(look.memory, look.now, Reason.WEIGHT_TO_ZERO, message)
        memory = replace(marked, rollback=replace(dossier, weight_zero_at=look.now, timeline=marked.timeline))
        return look.say("rollback", Phase.ROLLING_BACK, Reason.CANARY_DOWN, message, memory=memory, after=TURN)
    reason = _stage(look, canary.revision)
    message = f"rolling back {canary.revision} ({dossier.reason}): {look.plan.waiting or 'the canary goes down'}"
    return look.say("rollback", Phase.ROLLING_BACK, reason, message, after=TURN)


def supersede(look: Look) -> Decision | None:
    """Take a canary away that the spec no longer asks for: back to stable at once, without quarantine."""
    canary, wanted = look.memory.canary, look.wanted
    if canary is None or wanted is None or not superseded(look.seen, wanted):
        return None
    reverted = look.memory.stable is not None and look.memory.stable.revision == wanted.revision
    reason = Reason.REVERTED if reverted else Reason.SUPERSEDED
    what = "the spec went back to stable" if reverted else f"the spec asks for {wanted.revision} now"
    last = look.memory.timeline[-1] if look.memory.timeline else None
    if last is None or last.reason not in (Reason.REVERTED, Reason.SUPERSEDED):
        message = f"revision {canary.revision} gives way: {what}"
        return look.record("supersede", Phase.PROGRESSING, reason, message, look.memory)
    if look.plan.reached:
        # a pause by now was ordered for the revision that comes
        memory = replace(look.memory, canary=None, step=None, analysis=None)
        return look.say(
            "supersede",
            Phase.PROGRESSING,
            reason,
            f"revision {canary.revision} is gone: {what}",
            memory=memory,
            after=timedelta(),
        )
    message = f"revision {canary.revision} gives way ({what}): {look.plan.waiting or 'it goes down'}"
    return look.say("supersede", Phase.PROGRESSING, reason, message, after=TURN)


def _begin(look: Look, rule: str, reason: Reason, message: str, *, intrinsic: bool = False) -> Decision:
    assert look.memory.canary is not None
    memory = begun(look, reason, message, intrinsic=intrinsic)
    sentence = f"revision {look.memory.canary.revision} is rolled back: {message}"
    return look.record(rule, Phase.ROLLING_BACK, reason, sentence, memory, kind=EventKind.WARNING)


def _guilty(memory: CuvilModelStatus) -> GateStatus | None:
    gates = memory.analysis.gates if memory.analysis else ()
    order = [Gate.ERROR_RATE, Gate.LATENCY]
    failed = [one for one in gates if one.verdict == Verdict.FAIL]
    return min(failed, key=lambda one: order.index(Gate(one.name)), default=None)


def _weightless(look: Look, revision: str) -> bool:
    return look.seen.route.weights.get(revision, 0) == 0 and not look.seen.route.open


def _stage(look: Look, canary: str) -> Reason:
    if look.plan.weights is None and look.memory.stable is not None:
        return Reason.STABLE_CAPACITY_FIRST
    return Reason.CANARY_DOWN if _weightless(look, canary) else Reason.WEIGHT_TO_ZERO
