"""How many pods and which weights status stands for, given what is ready: the one place where traffic is decided.

    no canary        stable whole, all traffic on it
    first revision   whole before its first request, then all traffic
    canary at step   its pods first; when they are ready, its weight (and, by pod count, stable's fewer pods)
    leaving          stable whole first (waited for one interval at most), then all traffic on it, then canary to 0

Weights of None mean: leave the route as it is. Whatever the plan, it names only revisions that are ready.
"""

from dataclasses import dataclass
from datetime import datetime

from cuvil_operator.api import CuvilModelSpec, RevisionStatus
from cuvil_operator.conventions import Reason
from cuvil_operator.decide import split
from cuvil_operator.decide.wanted import Wanted
from cuvil_operator.facts import Observed, WorkloadSeen

Weights = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The levels of this turn."""

    stable_replicas: int
    canary_replicas: int
    weights: Weights | None
    reached: bool
    """The world is as status wants it."""
    waiting: str = ""
    """What is missing, for people."""
    waits_for_canary: bool = False
    """What is missing is the canary's own readiness: the progress deadline is its fault."""


def make(seen: Observed, spec: CuvilModelSpec, wanted: Wanted | None) -> Plan:
    """Give the plan for what status holds."""
    stable, canary = seen.status.stable, seen.status.canary
    if canary is None:
        return _steady(seen, spec, stable)
    if leaving(seen, wanted):
        return _retreat(seen, spec, stable, canary)
    if stable is None:
        return _first(seen, spec, canary)
    return _share(seen, spec, stable, canary)


def leaving(seen: Observed, wanted: Wanted | None) -> bool:
    """True while the canary is on its way out: a rollback under way, or the spec asks for another revision."""
    return rolling_back(seen) or superseded(seen, wanted)


def rolling_back(seen: Observed) -> bool:
    """True from the record of a rollback until its canary is down."""
    return seen.status.rollback is not None and seen.status.rollback.finished_at is None


def superseded(seen: Observed, wanted: Wanted | None) -> bool:
    """True where the canary is not what the spec asks for."""
    canary = seen.status.canary
    return canary is not None and wanted is not None and wanted.revision != canary.revision


def workload(seen: Observed, revision: str) -> WorkloadSeen:
    """Give a revision's Deployment as seen; one without pods where there is none."""
    return next((one for one in seen.workloads if one.revision == revision), WorkloadSeen(revision, 0, 0, 0))


def step_weight(seen: Observed, spec: CuvilModelSpec) -> int:
    """Give the share that the present step asks for; 100 past the last step."""
    step = seen.status.step
    index = step.index if step else 0
    return spec.rollout.steps[index].weight if index < len(spec.rollout.steps) else 100


def _steady(seen: Observed, spec: CuvilModelSpec, stable: RevisionStatus | None) -> Plan:
    if stable is None:
        return Plan(0, 0, None, True)
    need = spec.serving.replicas
    have = workload(seen, stable.revision)
    whole = (stable.revision, 100)
    ready = have.ready >= need and have.replicas == need
    reached = ready and _routed(seen, (whole,))
    return Plan(need, 0, (whole,) if have.ready else None, reached, "" if ready else _missing("stable", have, need))


def _first(seen: Observed, spec: CuvilModelSpec, canary: RevisionStatus) -> Plan:
    need = spec.serving.replicas
    have = workload(seen, canary.revision)
    whole = (canary.revision, 100)
    if have.ready < need:
        return Plan(0, need, None, False, _missing("first", have, need), waits_for_canary=True)
    return Plan(0, need, (whole,), _routed(seen, (whole,)), _unrouted(seen))


def _share(seen: Observed, spec: CuvilModelSpec, stable: RevisionStatus, canary: RevisionStatus) -> Plan:
    weight, whole = step_weight(seen, spec), spec.serving.replicas
    routed = spec.rollout.traffic is not None
    pods = split.by_gateway(whole, weight) if routed else split.by_pod_count(whole, weight)
    have = workload(seen, canary.revision)
    if have.ready < pods.canary:
        lost = have.ready == 0
        keep = ((stable.revision, 100),) if lost and workload(seen, stable.revision).ready else None
        waiting = _missing("canary", have, pods.canary)
        return Plan(whole, pods.canary, keep, False, waiting, waits_for_canary=True)
    held = workload(seen, stable.revision)
    if weight >= 100:
        alone = ((canary.revision, 100),)
        # by pod count stable has shrunk already; it is not made whole once more just before it goes
        kept = whole if routed else max(held.replicas, 1)
        return Plan(kept, pods.canary, alone, _routed(seen, alone), _unrouted(seen))
    share = weight if routed else pods.share
    weights = ((stable.revision, 100 - share), (canary.revision, share))
    if routed:
        reached = _routed(seen, weights) and held.ready >= pods.stable
    else:
        # pods are compared, not their percents: rounding must not decide whether a step is reached
        reached = seen.route.open and (held.ready, have.ready) == (pods.stable, pods.canary)
    # by pod count stable gives up pods only when the Service lets the canary's share in
    return Plan(pods.stable if routed or seen.route.open else whole, pods.canary, weights, reached, _unrouted(seen))


def _retreat(seen: Observed, spec: CuvilModelSpec, stable: RevisionStatus | None, canary: RevisionStatus) -> Plan:
    have = workload(seen, canary.revision)
    if stable is None:
        return Plan(0, 0, None, _is_down(have), _terminating(have))
    need, ready = spec.serving.replicas, workload(seen, stable.revision).ready
    began = _leaving_since(seen)
    patience_over = began is not None and seen.now - began > spec.rollout.analysis.interval
    alone = ((stable.revision, 100),)
    if ready == 0 or (ready < need and not patience_over):
        waiting = f"stable has {ready} of {need} pods ready; it is made whole before traffic comes back to it"
        return Plan(need, have.replicas, None, False, waiting)
    if seen.route.weights.get(canary.revision, 0) > 0 or seen.route.open:
        return Plan(need, have.replicas, alone, False, "all traffic goes back to stable")
    return Plan(need, 0, alone, _is_down(have), _terminating(have))


def _leaving_since(seen: Observed) -> datetime | None:
    if rolling_back(seen) and seen.status.rollback:
        return seen.status.rollback.started_at
    last = seen.status.timeline[-1] if seen.status.timeline else None
    return last.at if last and last.reason in (Reason.SUPERSEDED, Reason.REVERTED) else None


def _missing(role: str, have: WorkloadSeen, need: int) -> str:
    why = f": {have.message}" if have.message else ""
    return f"{have.ready} of {need} {role} pods are ready{why}"


def _is_down(have: WorkloadSeen) -> bool:
    """No pod is wanted and none is ready; pods that answer their last requests may take their time."""
    return have.replicas == 0 and have.ready == 0


def _terminating(have: WorkloadSeen) -> str:
    return "" if _is_down(have) else f"{max(have.replicas, have.ready)} pods of the revision go down"


def _routed(seen: Observed, weights: Weights) -> bool:
    """A route that its Gateway refuses carries no traffic, whatever its weights say."""
    return seen.route.accepted and seen.route.weights == dict(weights)


def _unrouted(seen: Observed) -> str:
    return "the weights are on their way" if seen.route.accepted else f"the route is not in force: {seen.route.message}"
