"""Orders by people: `cuvil.dev/command: VERB@REVISION#NONCE`.

An order is taken once: its text is echoed in status.lastCommand together with what it changes in memory, in one write,
and a text that equals the echo is not read again. REVISION is 12 hex digits, so that a late order cannot hit a revision
that its sender never saw, or `latest` for what the spec asks for: while that is not known, the order waits. NONCE tells
two equal orders apart.

| verb             | acts on                     | does                                                             |
|------------------|-----------------------------|------------------------------------------------------------------|
| promote          | the canary                  | ends the present step and any pause                              |
| promote-full     | the canary                  | skips all steps that are left                                    |
| abort            | the canary, or one on its way | rolls back and quarantines                                     |
| retry            | the wanted revision         | clears its quarantine and makes its failed Jobs anew             |
| pause, resume    | the canary, or one on its way | holds the steps; analysis and rollback go on                   |
| restart          | stable or canary            | restarts its pods one by one                                     |
| clear-quarantine | a quarantined revision      | lets it be tried again                                           |

Where a verb has nothing to do it says so (NoOp); where it must not act it is Refused, with what would help.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from cuvil_core.contract import ExitCode
from cuvil_operator.api import CuvilModelStatus, LastCommand, QuarantineEntry
from cuvil_operator.conventions import EventKind, Phase, Reason, Stage, Verb
from cuvil_operator.decide import hashing, jobs, proof, rollback
from cuvil_operator.decide.look import Look, brief, noted
from cuvil_operator.decide.plan import rolling_back, superseded
from cuvil_operator.facts import Decision, EmitEvent

PATTERN = re.compile(r"(?P<verb>[a-z\-]{1,32})@(?P<revision>[0-9a-f]{12}|latest)#(?P<nonce>[A-Za-z0-9._:\-]{1,64})")
LATEST = "latest"
ECHO_LIMIT = 128
"""Characters of a malformed text that are echoed."""


class Result(StrEnum):
    """status.lastCommand.outcome."""

    DONE = "Done"
    REFUSED = "Refused"
    NO_OP = "NoOp"


REASONS = {
    Result.DONE: Reason.COMMAND_DONE,
    Result.REFUSED: Reason.COMMAND_REFUSED,
    Result.NO_OP: Reason.COMMAND_NO_OP,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an order."""

    result: Result
    message: str
    memory: CuvilModelStatus


def obey(look: Look) -> Decision | None:
    """Take a new order, unless it must wait."""
    text = _new(look)
    found = _parsed(text)
    if not text or _waits(look, found):
        return None
    if found is None:
        return _malformed(look, text)
    verb, revision = Verb(found["verb"]), found["revision"]
    if revision == LATEST:
        revision = look.wanted.revision if look.wanted else ""
    answer = VERBS[verb](look, revision)
    return _echo(look, text, answer, REASONS[answer.result])


def remind(look: Look, decision: Decision) -> Decision:
    """Add to a decision's sentence that an order waits."""
    text = _new(look)
    if not _waits(look, _parsed(text)):
        return decision
    waits = (
        f"the order {text!r} waits until it is known which revision this spec asks for; "
        "one that names a revision is carried out at once"
    )
    return replace(decision, message=f"{decision.message} ({waits})")


def _new(look: Look) -> str:
    """Give the text of an order that has no answer yet; empty where there is none."""
    text, last = look.seen.command.strip(), look.seen.status.last_command
    return "" if last and last.text == text[:ECHO_LIMIT] else text


def _parsed(text: str) -> re.Match[str] | None:
    found = PATTERN.fullmatch(text)
    return found if found and found["verb"] in {one.value for one in Verb} else None


def _waits(look: Look, order: re.Match[str] | None) -> bool:
    """True for `latest` while that is still a former generation's; a retry without which it stays so is not held."""
    if order is None or order["revision"] != LATEST or look.wanted is not None:
        return False
    return not (order["verb"] == Verb.RETRY and _resolve_failed(look))


def _resolve_failed(look: Look) -> bool:
    job = jobs.find(look.seen, Stage.RESOLVE, hashing.resolve_key(look.spec, look.seen.generation))
    end = jobs.ended(job) if job else None
    return end is not None and not (end.code is ExitCode.OK and proof.is_sha256(end.result.get("sha256")))


def _malformed(look: Look, text: str) -> Decision:
    verbs = ", ".join(one.value for one in Verb)
    message = (
        f"the command {text[:ECHO_LIMIT]!r} is not VERB@REVISION#NONCE with a verb of {verbs} and a revision of 12 hex "
        "digits or `latest`"
    )
    return _echo(look, text, Answer(Result.REFUSED, message, look.memory), Reason.COMMAND_MALFORMED)


def _echo(look: Look, text: str, answer: Answer, reason: Reason) -> Decision:
    echo = LastCommand(text[:ECHO_LIMIT], answer.result.value, answer.message, look.now)
    memory = replace(answer.memory, last_command=echo)
    kind = EventKind.WARNING if answer.result is Result.REFUSED else EventKind.NORMAL
    phase = Phase(look.seen.status.phase) if look.seen.status.phase in set(Phase) else Phase.PENDING
    return look.say(
        "obey",
        phase,
        reason,
        answer.message,
        memory=noted(memory, look.now, reason, answer.message),
        actions=(EmitEvent(kind, reason, answer.message),),
        after=timedelta(),
    )


def _promote(look: Look, revision: str) -> Answer:
    step = look.memory.step
    refusal = _needs_canary(look, revision)
    if refusal or step is None:
        return refusal or _no_op(look, "the first revision has no steps; it takes all traffic as soon as it is ready")
    if step.index >= len(look.spec.rollout.steps):
        return _no_op(look, f"revision {revision} is past its last step already")
    message = f"step {step.index + 1} of revision {revision} ended by command"
    return Answer(Result.DONE, message, rollback.at_step(look, replace(look.memory, paused=None), step.index + 1))


def _promote_full(look: Look, revision: str) -> Answer:
    step = look.memory.step
    refusal = _needs_canary(look, revision)
    if refusal or step is None:
        return refusal or _no_op(look, "the first revision has no steps; it takes all traffic as soon as it is ready")
    last = len(look.spec.rollout.steps)
    if step.index >= last:
        return _no_op(look, f"revision {revision} is past its last step already")
    message = f"the steps left of revision {revision} are skipped by command"
    return Answer(Result.DONE, message, rollback.at_step(look, replace(look.memory, paused=None), last))


def _abort(look: Look, revision: str) -> Answer:
    memory = look.memory
    if rolling_back(look.seen) and memory.rollback and memory.rollback.revision == revision:
        return _no_op(look, f"revision {revision} is being rolled back already")
    if _entry(look, revision):
        return _no_op(look, f"revision {revision} is quarantined already")
    if memory.canary and memory.canary.revision == revision:
        message = f"revision {revision} was aborted by command"
        return Answer(Result.DONE, message, rollback.begun(look, Reason.ABORTED, message))
    if memory.stable and memory.stable.revision == revision:
        return _refuse(look, f"revision {revision} is stable; change the spec to leave it")
    if memory.revision == revision:
        message = f"revision {revision} was aborted by command before it had traffic"
        entry = QuarantineEntry(revision, Reason.ABORTED.value, brief(message), look.now)
        kept = (entry, *memory.quarantine)[: rollback.QUARANTINE_LIMIT]
        return Answer(Result.DONE, message, replace(memory, quarantine=kept, paused=None))
    return _refuse(look, _unknown(look, revision))


def _retry(look: Look, revision: str) -> Answer:
    memory = look.memory
    if revision and revision != memory.revision:
        return _refuse(look, _unknown(look, revision))
    if memory.canary and memory.canary.revision == revision and not rolling_back(look.seen):
        return _no_op(look, f"revision {revision} is under way; there is nothing to retry")
    if memory.stable and memory.stable.revision == revision:
        return _no_op(look, f"revision {revision} is stable; there is nothing to retry")
    later = " when its rollback has ended" if rolling_back(look.seen) else ""
    message = f"{f'revision {revision}' if revision else 'the look behind the URI'} is tried again by command{later}"
    cleared = _cleared(look, revision)
    return Answer(Result.DONE, message, replace(memory, quarantine=cleared, retried_at=look.now, retry=None))


def _pause(look: Look, revision: str) -> Answer:
    refusal = _needs_rollout(look, revision)
    if refusal:
        return refusal
    if look.memory.paused:
        return _no_op(look, f"revision {revision} is paused already")
    return Answer(Result.DONE, f"revision {revision} is paused by command", replace(look.memory, paused=True))


def _resume(look: Look, revision: str) -> Answer:
    refusal = _needs_rollout(look, revision)
    if refusal:
        return refusal
    if not look.memory.paused:
        return _no_op(look, f"revision {revision} is not paused")
    return Answer(Result.DONE, f"revision {revision} goes on by command", replace(look.memory, paused=None))


def _restart(look: Look, revision: str) -> Answer:
    memory, message = look.memory, f"the pods of revision {revision} restart one by one by command"
    if memory.stable and memory.stable.revision == revision:
        stable = replace(memory.stable, restarted_at=look.now)
        return Answer(Result.DONE, message, replace(memory, stable=stable))
    if memory.canary and memory.canary.revision == revision and not rolling_back(look.seen):
        canary = replace(memory.canary, restarted_at=look.now)
        return Answer(Result.DONE, message, replace(memory, canary=canary))
    return _refuse(look, f"revision {revision} has no pods to restart")


def _clear(look: Look, revision: str) -> Answer:
    if not _entry(look, revision):
        return _no_op(look, f"revision {revision} is not quarantined")
    message = f"the quarantine of revision {revision} is cleared by command"
    memory = replace(look.memory, quarantine=_cleared(look, revision), retried_at=look.now)
    return Answer(Result.DONE, message, memory)


VERBS: dict[Verb, Callable[[Look, str], Answer]] = {
    Verb.PROMOTE: _promote,
    Verb.PROMOTE_FULL: _promote_full,
    Verb.ABORT: _abort,
    Verb.RETRY: _retry,
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
    Verb.RESTART: _restart,
    Verb.CLEAR_QUARANTINE: _clear,
}


def _needs_canary(look: Look, revision: str) -> Answer | None:
    memory = look.memory
    if rolling_back(look.seen) and memory.rollback and memory.rollback.revision == revision:
        return _refuse(look, f"revision {revision} is being rolled back; retry it instead")
    if _entry(look, revision):
        return _refuse(look, f"revision {revision} is quarantined; clear-quarantine or retry it first")
    if memory.stable and memory.stable.revision == revision:
        return _no_op(look, f"revision {revision} is stable already")
    if memory.canary and memory.canary.revision == revision:
        return None
    if memory.revision == revision:
        return _refuse(look, f"revision {revision} is no canary yet: it must be compiled and proved first")
    return _refuse(look, _unknown(look, revision))


def _needs_rollout(look: Look, revision: str) -> Answer | None:
    memory = look.memory
    if rolling_back(look.seen) and memory.rollback and memory.rollback.revision == revision:
        return _refuse(look, f"revision {revision} is being rolled back; that is not held")
    if superseded(look.seen, look.wanted) and memory.canary and memory.canary.revision == revision:
        return _refuse(look, f"revision {revision} gives way to {memory.revision}; that is not held")
    if memory.stable and memory.stable.revision == revision:
        return _no_op(look, f"revision {revision} is stable; there is no rollout to hold")
    if revision in (memory.revision, memory.canary.revision if memory.canary else None):
        return None
    return _refuse(look, _unknown(look, revision))


def _entry(look: Look, revision: str) -> QuarantineEntry | None:
    if look.wanted and look.wanted.revision == revision:
        return proof.quarantined(look.seen, look.spec, look.wanted)
    return next((one for one in look.memory.quarantine if one.revision == revision), None)


def _cleared(look: Look, revision: str) -> tuple[QuarantineEntry, ...]:
    """Drop a revision's entries and those of its artifact."""
    artifacts = {one.artifact_sha256 for one in look.memory.quarantine if one.revision == revision}
    if look.wanted and look.wanted.revision == revision:
        made = proof.artifact(look.seen, look.wanted)
        artifacts.add(made.sha256 if made else None)
    artifacts.discard(None)
    return tuple(
        one for one in look.memory.quarantine if one.revision != revision and one.artifact_sha256 not in artifacts
    )


def _unknown(look: Look, revision: str) -> str:
    memory = look.memory
    known = {
        "stable": memory.stable.revision if memory.stable else None,
        "canary": memory.canary.revision if memory.canary else None,
        "wanted": memory.revision,
    }
    named = ", ".join(f"{role} {one}" for role, one in known.items() if one) or "none is known yet"
    return f"revision {revision} is not here; {named}"


def _refuse(look: Look, message: str) -> Answer:
    return Answer(Result.REFUSED, message, look.memory)


def _no_op(look: Look, message: str) -> Answer:
    return Answer(Result.NO_OP, message, look.memory)
