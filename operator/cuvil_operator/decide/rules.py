"""The rules in order; the first that has something to say decides the turn.

deletion and an unreadable spec come first, then orders of people, then the way back (it is never held), then the way
to a proved revision, then the canary, then rest.
"""

from collections.abc import Callable
from dataclasses import replace

from cuvil_operator.conventions import Phase, Reason
from cuvil_operator.decide import canary, commands, prove, rollback
from cuvil_operator.decide.look import Look
from cuvil_operator.facts import Decision, Observed

EarlyRule = Callable[[Observed], Decision | None]
Rule = Callable[[Look], Decision | None]


def leave_deleted(seen: Observed) -> Decision | None:
    """A model being deleted is left to the garbage collector: all that is its own has it as owner."""
    if not seen.deleting:
        return None
    return Decision("leave_deleted", Phase.DELETING, Reason.DELETING, "the model is being deleted", seen.status)


def refuse_invalid(seen: Observed) -> Decision | None:
    """A spec that cannot be read changes nothing that serves."""
    if seen.spec is not None:
        return None
    memory = replace(seen.status, observed_generation=seen.generation)
    return Decision("refuse_invalid", Phase.BLOCKED, Reason.INVALID_SPEC, seen.spec_error, memory)


def suspend(look: Look) -> Decision | None:
    """A suspended model begins nothing and takes no step; a breach still rolls back, and a rollback still ends."""
    if not look.spec.suspend:
        return None
    interval = look.spec.rollout.analysis.interval if look.memory.canary else None
    message = "spec.suspend is true: nothing begins and no step is taken"
    decision = look.say("suspend", Phase.SUSPENDED, Reason.SUSPENDED, message, after=interval)
    return replace(decision, actions=())


def rest(look: Look) -> Decision:
    """Stable is what the spec asks for: keep it so."""
    stable = look.memory.stable
    name = stable.revision if stable else "none"
    if look.plan.reached:
        return look.say("rest", Phase.STABLE, Reason.UP_TO_DATE, f"revision {name} serves all traffic")
    message = f"revision {name} is stable: {look.plan.waiting or 'the route is being set'}"
    return look.say("rest", Phase.STABLE, Reason.WAITING_FOR_PODS, message, after=canary.PODS_TURN)


EARLY: tuple[EarlyRule, ...] = (leave_deleted, refuse_invalid)

RULES: tuple[Rule, ...] = (
    commands.obey,
    rollback.go_on,
    rollback.supersede,
    rollback.breach,
    rollback.deadline,
    suspend,
    prove.refuse_host,
    prove.resolve,
    canary.refuse_quarantined,
    prove.compile_model,
    prove.validate,
    prove.record,
    canary.refuse_unreachable,
    canary.start,
    canary.deploy_first,
    canary.lose_step,
    canary.reach_step,
    canary.hold_step,
)


def decide(seen: Observed) -> Decision:
    """Give the decision on one model: pure, total, and the same for the same observation."""
    early = next((found for rule in EARLY if (found := rule(seen))), None)
    if early or seen.spec is None:
        return early or Decision("refuse_invalid", Phase.BLOCKED, Reason.INVALID_SPEC, seen.spec_error, seen.status)
    look = Look.at(seen, seen.spec)
    return commands.remind(look, next((found for rule in RULES if (found := rule(look))), None) or rest(look))
