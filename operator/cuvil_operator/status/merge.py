"""(Observed, Decision, Outcomes) → the status to write.

What the decision remembers rests on what was seen, not on its own acts, so it is kept whether they went well or not:
else one document that cannot be written would keep a rollback from being recorded. All else follows from the
observation: weights and ready pods are what is, never what was ordered.
"""

from collections.abc import Sequence
from dataclasses import replace

from cuvil_operator.api import CuvilModelStatus, RevisionStatus
from cuvil_operator.conventions import Phase
from cuvil_operator.facts import Decision, Observed, Outcome, OutcomeKind, WorkloadSeen
from cuvil_operator.status.conditions import conditions


def next_status(seen: Observed, decision: Decision, outcomes: Sequence[Outcome] = ()) -> CuvilModelStatus:
    """Give the whole next status; equal to seen.status when nothing changed, so that no write is needed."""
    failed = [one for one in outcomes if one.kind is OutcomeKind.FAILED]
    memory = decision.memory
    shown = replace(
        memory,
        phase=_shown_phase(decision, memory),
        message=_message(decision, failed),
        stable=_actual(seen, memory.stable),
        canary=_actual(seen, memory.canary),
        weight=_share(seen, memory),
    )
    return replace(shown, conditions=conditions(seen, decision, shown, failed))


def _shown_phase(decision: Decision, memory: CuvilModelStatus) -> str:
    # a first revision under way has no phase to fall back to when its record was not written
    return decision.phase.value if decision.phase is not Phase.PENDING else memory.phase or Phase.PENDING.value


def _message(decision: Decision, failed: list[Outcome]) -> str:
    return f"{failed[0].message} (looked at again)" if failed else decision.message


def _actual(seen: Observed, role: RevisionStatus | None) -> RevisionStatus | None:
    if role is None:
        return None
    have = next((one for one in seen.workloads if one.revision == role.revision), WorkloadSeen(role.revision, 0, 0, 0))
    return replace(
        role, weight=seen.route.weights.get(role.revision, 0), replicas=have.replicas, ready_replicas=have.ready
    )


def _share(seen: Observed, memory: CuvilModelStatus) -> int | None:
    """The canary's actual share: 0 at rest, None before there is anything to serve."""
    if memory.canary:
        return seen.route.weights.get(memory.canary.revision, 0)
    return 0 if memory.stable else None
