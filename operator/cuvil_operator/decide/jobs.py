"""How a Job ended, in the contract's words, whatever became of its container.

| seen                                         | means              |
|----------------------------------------------|--------------------|
| the Job's own deadline passed                | TIMEOUT            |
| the kernel killed it (OOMKilled, exit 137)   | TOO_LARGE          |
| a readable termination message               | its code           |
| a code of the contract, no message           | that code          |
| no container ended (lost node, eviction), or success without its message | INFRASTRUCTURE |
| any other exit code                          | INTERNAL           |

Only INFRASTRUCTURE is tried again with the same inputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cuvil_core.contract import ExitCode
from cuvil_operator.conventions import Reason, Stage
from cuvil_operator.facts import JobPhase, JobSeen, Observed

KILLED = 137
"""128 + SIGKILL."""

REASONS = {
    ExitCode.USAGE: Reason.BAD_COMMAND,
    ExitCode.BAD_MODEL: Reason.BAD_MODEL,
    ExitCode.UNSUPPORTED_OP: Reason.UNSUPPORTED_OP,
    ExitCode.WRONG_NUMBERS: Reason.WRONG_NUMBERS,
    ExitCode.TOO_SLOW: Reason.TOO_SLOW,
    ExitCode.TOO_LARGE: Reason.TOO_LARGE,
    ExitCode.TIMEOUT: Reason.TIMEOUT,
    ExitCode.BAD_ARTIFACT: Reason.BAD_ARTIFACT,
    ExitCode.UNSUPPORTED_TARGET: Reason.UNSUPPORTED_TARGET,
    ExitCode.DIGEST_MISMATCH: Reason.DIGEST_MISMATCH,
    ExitCode.NOT_FOUND: Reason.NOT_FOUND,
    ExitCode.INFRASTRUCTURE: Reason.INFRASTRUCTURE,
    ExitCode.INTERNAL: Reason.INTERNAL,
}

CURES = {
    ExitCode.TOO_LARGE: "raise memory in its resources, or take a smaller model",
    ExitCode.TIMEOUT: "raise spec.compile.timeout, or give it more CPU in its resources",
    ExitCode.INFRASTRUCTURE: "it is tried again by itself; look at the registry, the model's host and the nodes",
    ExitCode.INTERNAL: "look at the Job's log and report it as a fault of Cuvil",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a Job."""

    code: ExitCode
    message: str
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> Reason:
        """The constant for conditions and Events; OK has none."""
        return REASONS[self.code]


def find(seen: Observed, stage: Stage, key: str) -> JobSeen | None:
    """Give the Job of this stage and key."""
    return next((one for one in seen.jobs if one.stage is stage and one.key == key), None)


def ended(job: JobSeen) -> Ended | None:
    """Give how it ended, None while it is under way."""
    if job.phase not in (JobPhase.SUCCEEDED, JobPhase.FAILED):
        return None
    code = _code(job)
    if job.outcome is not None and job.outcome.code is code:
        return Ended(code, job.outcome.message, job.outcome.result)
    return Ended(code, f"the {job.stage.value} Job {job.name} {_FATES.get(code, _OTHER)}; {_cure(code)}")


def failed_before(job: JobSeen, moment: datetime | None) -> bool:
    """True for a failure older than the last retry command or change of the spec."""
    since = job.finished_at or job.created_at
    return moment is not None and since is not None and since < moment


def _code(job: JobSeen) -> ExitCode:
    if job.deadline_exceeded:
        return ExitCode.TIMEOUT
    if job.oom_killed or job.exit_code == KILLED:
        return ExitCode.TOO_LARGE
    if job.outcome is not None and (job.outcome.code is ExitCode.OK) is (job.phase is JobPhase.SUCCEEDED):
        return job.outcome.code
    if job.phase is JobPhase.SUCCEEDED or job.exit_code is None:
        return ExitCode.INFRASTRUCTURE
    known = {int(one) for one in ExitCode} - {int(ExitCode.OK)}
    return ExitCode(job.exit_code) if job.exit_code in known else ExitCode.INTERNAL


_OTHER = "ended without a word"
_FATES = {
    ExitCode.TIMEOUT: "did not end within its time limit",
    ExitCode.TOO_LARGE: "was killed for its memory",
    ExitCode.INFRASTRUCTURE: "was lost with its pod or its message",
}


def _cure(code: ExitCode) -> str:
    return CURES.get(code, "look at the Job's log")
