"""The conditions of a CuvilModel: what the decision said, and what follows from the next status.

A condition keeps its transition time while its status is the same, as metav1.Condition asks. One that nothing is known
of yet is left out.
"""

from datetime import datetime

from cuvil_operator.api import Condition, CuvilModelStatus
from cuvil_operator.conventions import ConditionType, Phase, Reason
from cuvil_operator.facts import Decision, Observed, Outcome, Said, WorkloadSeen

UNDER_WAY = {
    Phase.RESOLVING,
    Phase.COMPILING,
    Phase.VALIDATING,
    Phase.DEPLOYING,
    Phase.PROGRESSING,
    Phase.PROMOTING,
    Phase.ROLLING_BACK,
}
HALTED = {Phase.STALLED, Phase.BLOCKED}


def conditions(
    seen: Observed, decision: Decision, shown: CuvilModelStatus, failed: list[Outcome]
) -> tuple[Condition, ...]:
    """Give all conditions in the order of ConditionType."""
    said = {one.type: one for one in _derived(seen, decision, shown)}
    said |= {one.type: one for one in decision.conditions}
    if failed:
        said[ConditionType.STALLED] = Said(ConditionType.STALLED, "True", Reason.ACT_FAILED, failed[0].message)
    before = {one.type: one for one in seen.status.conditions}
    merged = [_merged(before.get(kind.value), said.get(kind), seen.generation, seen.now) for kind in ConditionType]
    return tuple(one for one in merged if one is not None)


def _merged(before: Condition | None, said: Said | None, generation: int, now: datetime) -> Condition | None:
    if said is None:
        return before
    same = before is not None and before.status == said.status
    since = before.last_transition_time if before and same else now
    return Condition(said.type.value, said.status, said.reason.value, said.message, since, generation)


def _derived(seen: Observed, decision: Decision, shown: CuvilModelStatus) -> list[Said]:
    return [
        _ready(seen, decision, shown),
        *_proved(shown),
        _progressing(decision, shown),
        *_analysis(shown),
        *_rolled_back(decision, shown),
        _stalled(decision),
    ]


def _ready(seen: Observed, decision: Decision, shown: CuvilModelStatus) -> Said:
    """Ready asks one thing: does stable serve with all its pods; the reason tells what goes on besides."""
    kind, stable = ConditionType.READY, shown.stable
    if stable is None:
        return Said(kind, "False", decision.reason, decision.message)
    have = next((one for one in seen.workloads if one.revision == stable.revision), WorkloadSeen("", 0, 0, 0))
    serves = have.ready > 0 and have.ready >= have.replicas and bool(seen.route.weights)
    if serves:
        return Said(kind, "True", decision.reason, decision.message)
    why = f": {have.message}" if have.message else ""
    message = f"{have.ready} of {have.replicas} pods of stable {stable.revision} are ready{why}"
    return Said(kind, "False", Reason.WAITING_FOR_PODS, message)


def _proved(shown: CuvilModelStatus) -> list[Said]:
    """A revision that runs was proved, also where its Jobs are long gone (history, an equal artifact)."""
    running = {one.revision for one in (shown.stable, shown.canary) if one}
    if shown.revision is None or shown.revision not in running:
        return []
    return [
        Said(ConditionType.COMPILED, "True", Reason.COMPILED, f"revision {shown.revision} is compiled"),
        Said(
            ConditionType.VALIDATED, "True", Reason.VALIDATED, f"revision {shown.revision} is proved against its model"
        ),
    ]


def _progressing(decision: Decision, shown: CuvilModelStatus) -> Said:
    refused = ""
    if shown.last_command and shown.last_command.outcome == "Refused":
        refused = f" (last command {shown.last_command.text!r} was refused: {shown.last_command.message})"
    status = "True" if decision.phase in UNDER_WAY else "False"
    return Said(ConditionType.PROGRESSING, status, decision.reason, decision.message + refused)


def _analysis(shown: CuvilModelStatus) -> list[Said]:
    found = shown.analysis
    if found is None:
        return []
    status = {"Pass": "True", "Fail": "False"}.get(found.verdict, "Unknown")
    reason = Reason(found.reason) if found.reason in set(Reason) else Reason.UNDECIDED
    return [Said(ConditionType.ANALYSIS, status, reason, f"{found.verdict}: {found.message}")]


def _rolled_back(decision: Decision, shown: CuvilModelStatus) -> list[Said]:
    dossier = shown.rollback
    if dossier is None:
        return []
    lasting = dossier.finished_at is None or decision.phase is Phase.ROLLED_BACK
    reason = Reason(dossier.reason) if dossier.reason in set(Reason) else Reason.ROLLED_BACK
    text = f"revision {dossier.revision}: {dossier.message}"
    return [Said(ConditionType.ROLLED_BACK, "True" if lasting else "False", reason, text)]


def _stalled(decision: Decision) -> Said:
    halted = decision.phase in HALTED
    return Said(ConditionType.STALLED, "True" if halted else "False", decision.reason, decision.message)
