"""What every rule sees: the observation, a spec that can be read, the memory so far, and what is derived from them."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus, TimelineEntry
from cuvil_operator.conventions import EventKind, Phase, Reason
from cuvil_operator.decide import analysis, collect, levels
from cuvil_operator.decide.plan import Plan, make
from cuvil_operator.decide.wanted import Wanted, wanted
from cuvil_operator.facts import Action, Decision, EmitEvent, Observed, Said

TIMELINE_LIMIT = 40
"""Entries kept of one rollout; the oldest go first."""
MESSAGE_LIMIT = 500
"""Characters of a message kept in timeline and quarantine."""


@dataclass(frozen=True, slots=True)
class Look:
    """One turn's material. `memory` is status with what every turn refreshes; acts always follow seen.status."""

    seen: Observed
    spec: CuvilModelSpec
    memory: CuvilModelStatus
    wanted: Wanted | None
    plan: Plan

    @classmethod
    def at(cls, seen: Observed, spec: CuvilModelSpec) -> "Look":
        """Derive what the rules need."""
        one = wanted(seen, spec)
        memory = replace(
            seen.status,
            observed_generation=seen.generation,
            revision=one.revision if one else seen.status.revision,
            analysis=analysis.look(seen, spec),
            retried_at=_retried_at(seen),
            # a pause was ordered for one revision and ends with it
            paused=None if one and one.revision != seen.status.revision else seen.status.paused,
        )
        return cls(seen, spec, memory, one, make(seen, spec, one))

    @property
    def now(self) -> datetime:
        """Time of the observation."""
        return self.seen.now

    def say(
        self,
        rule: str,
        phase: Phase,
        reason: Reason,
        message: str,
        *,
        memory: CuvilModelStatus | None = None,
        actions: tuple[Action, ...] = (),
        conditions: tuple[Said, ...] = (),
        after: timedelta | None = None,
    ) -> Decision:
        """Decide: keep serving by what status already holds, tidy up, and add the rule's own acts."""
        return Decision(
            rule=rule,
            phase=phase,
            reason=reason,
            message=message,
            memory=memory or self.memory,
            actions=(
                # an Event cannot fail, so it is told also when what follows does
                *(one for one in actions if isinstance(one, EmitEvent)),
                *levels.serve(self.seen, self.plan),
                *(one for one in actions if not isinstance(one, EmitEvent)),
                *collect.leftovers(self.seen, self.wanted),
            ),
            conditions=conditions,
            revision=self.wanted.revision if self.wanted else None,
            requeue_after=self._wake(after),
        )

    def _wake(self, after: timedelta | None) -> timedelta | None:
        """While there is a canary it is looked at every interval, whatever else is waited for or wakes the turn.

        The time runs from the last look: counted from this turn, events in between would put the next look off.
        """
        interval, last = self.spec.rollout.analysis.interval, self.memory.analysis
        if self.memory.canary is None:
            return after
        fresh = last is not None and last.revision == self.memory.canary.revision
        left = interval - (self.now - last.at) if last and fresh else interval
        left = left if left > timedelta() else interval
        return left if after is None else min(after, left)

    def record(
        self,
        rule: str,
        phase: Phase,
        reason: Reason,
        message: str,
        memory: CuvilModelStatus,
        *,
        kind: EventKind = EventKind.NORMAL,
        conditions: tuple[Said, ...] = (),
    ) -> Decision:
        """Decide something that must outlive the controller: remember it now, act on it in the next turn, at once."""
        return self.say(
            rule,
            phase,
            reason,
            message,
            memory=noted(memory, self.now, reason, message),
            actions=(EmitEvent(kind, reason, message),),
            conditions=conditions,
            after=timedelta(),
        )


def brief(message: str) -> str:
    """Cut what is kept in lists: a Job's message may have 4 KiB, and a status must stay small."""
    return message if len(message) <= MESSAGE_LIMIT else f"{message[: MESSAGE_LIMIT - 2]} …"


def noted(memory: CuvilModelStatus, at: datetime, reason: Reason, message: str) -> CuvilModelStatus:
    """Add one entry to the timeline."""
    entry = TimelineEntry(at, reason.value, brief(message))
    return replace(memory, timeline=(*memory.timeline, entry)[-TIMELINE_LIMIT:])


def _retried_at(seen: Observed) -> datetime | None:
    """A changed spec retries what failed before it: a longer timeout or more memory is in no key."""
    changed = seen.status.observed_generation not in (None, seen.generation)
    return seen.now if changed else seen.status.retried_at
