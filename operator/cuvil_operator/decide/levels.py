"""What must be there to serve, as acts: the route, the canary's pods, stable's pods, monitoring.

The plan names weights only for pods that were seen ready, whose Service was there before them, and takes pods away only
from revisions that were seen without weight, so no act rests on another one of its turn. They stand in the order of
harm: act stops at the first that fails, and traffic must leave a bad canary even while some other document cannot be
written.
"""

from cuvil_operator.api import RevisionStatus
from cuvil_operator.decide.plan import Plan
from cuvil_operator.decide.wanted import record_of
from cuvil_operator.facts import Action, EnsureMonitoring, EnsureRouting, EnsureWorkload, Observed


def serve(seen: Observed, plan: Plan) -> tuple[Action, ...]:
    """Give the levels of the plan for the revisions in status; a revision without its record is left as it is."""
    stable, canary = seen.status.stable, seen.status.canary
    if stable is None and canary is None:
        return ()
    acts: list[Action] = [EnsureRouting(plan.weights)] if plan.weights else []
    acts += _pods(seen, canary, plan.canary_replicas)
    acts += _pods(seen, stable, plan.stable_replicas)
    return (*acts, EnsureMonitoring())


def _pods(seen: Observed, role: RevisionStatus | None, replicas: int) -> list[Action]:
    record = record_of(seen, role.revision) if role else None
    return [EnsureWorkload(record, replicas, role.restarted_at)] if role and record else []
