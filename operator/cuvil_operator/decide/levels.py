"""What must be there to serve, as acts: monitoring, pods, then the route.

Pods before weights, so that in one turn a revision never gets traffic that its pods were not first asked for.
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
    acts: list[Action] = [EnsureMonitoring()]
    acts += _pods(seen, stable, plan.stable_replicas)
    acts += _pods(seen, canary, plan.canary_replicas)
    acts += [EnsureRouting(plan.weights)] if plan.weights else []
    return tuple(acts)


def _pods(seen: Observed, role: RevisionStatus | None, replicas: int) -> list[Action]:
    record = record_of(seen, role.revision) if role else None
    return [EnsureWorkload(record, replicas, role.restarted_at)] if role and record else []
