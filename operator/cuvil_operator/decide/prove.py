"""The way from a spec to a proved revision: resolve, compile, validate, record. One Job at a time.

Each rule gives None once its part is done, so the next one speaks. A failure that only the spec can mend is Blocked
and leaves stable as it is; want of infrastructure is tried again (decide.backoff).
"""

from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

from cuvil_core.contract import ExitCode
from cuvil_operator.api import QuarantineEntry, Retry
from cuvil_operator.conventions import ConditionType, EventKind, Phase, Reason, Stage, gpu_resource, job_name
from cuvil_operator.decide import backoff, hashing, jobs, proof
from cuvil_operator.decide.look import Look, brief
from cuvil_operator.decide.rollback import QUARANTINE_LIMIT
from cuvil_operator.decide.wanted import model_sha256
from cuvil_operator.facts import (
    Action,
    Decision,
    DeleteJob,
    EmitEvent,
    EnsureRevision,
    JobPhase,
    JobSeen,
    RevisionRecord,
    RunCompile,
    RunResolve,
    RunValidate,
    Said,
    ServingRecord,
)

STAGE_PHASES = {Stage.RESOLVE: Phase.RESOLVING, Stage.COMPILE: Phase.COMPILING, Stage.VALIDATE: Phase.VALIDATING}
STAGE_REASONS = {Stage.RESOLVE: Reason.RESOLVING, Stage.COMPILE: Reason.COMPILING, Stage.VALIDATE: Reason.VALIDATING}


def refuse_host(look: Look) -> Decision | None:
    """A model from a host that the operator's settings do not allow is not fetched."""
    allowed = look.seen.platform.allowed_hosts
    asked = {"spec.model.uri": look.spec.model.uri, "spec.accuracy.goldenUri": look.spec.accuracy.golden_uri}
    for path, uri in asked.items():
        where = urlsplit(uri or "")
        if not allowed or not uri or where.scheme == "configmap" or _proved(look) or where.hostname in allowed:
            continue
        message = f"{path}: host {where.hostname} is not allowed here; allowed are {', '.join(allowed)}"
        return look.say("refuse_host", Phase.BLOCKED, Reason.INVALID_SPEC, message)
    return None


def resolve(look: Look) -> Decision | None:
    """Find the model's sha256 once a generation, in the model's own namespace with its own credentials."""
    if model_sha256(look.seen, look.spec) is not None:
        return None
    key = hashing.resolve_key(look.spec, look.seen.generation)
    job = jobs.find(look.seen, Stage.RESOLVE, key)
    if job is None:
        return _start(look, Stage.RESOLVE, RunResolve(key), f"finding the sha256 of {look.spec.model.uri}")
    end = jobs.ended(job)
    if end is None:
        return _wait(look, job, RunResolve(key))
    found = end.result.get("sha256")
    if end.code is not ExitCode.OK or not proof.is_sha256(found):
        return _failed(look, job, end)
    memory = replace(look.memory, model_digest=found, resolved_generation=look.seen.generation, retry=None)
    message = f"{look.spec.model.uri} is sha256:{found[:12]}…"
    return look.record("resolve", Phase.RESOLVING, Reason.RESOLVED, message, memory)


def compile_model(look: Look) -> Decision | None:
    """Compile once for each key in the namespace; join a Job that another CuvilModel has begun."""
    wanted, seen = look.wanted, look.seen
    if wanted is None or wanted.record or proof.artifact(seen, wanted):
        return None
    gpu = gpu_resource(look.spec.target)
    act = RunCompile(wanted.compile_key, wanted.model_sha256, wanted.images.compiler, gpu)
    job = jobs.find(seen, Stage.COMPILE, wanted.compile_key)
    if job is None:
        return _start(look, Stage.COMPILE, act, f"compiling revision {wanted.revision} for {look.spec.target}")
    end = jobs.ended(job)
    return _wait(look, job, act) if end is None else _failed(look, job, end)


def validate(look: Look) -> Decision | None:
    """Prove the artifact where it will serve: numbers, speed, memory."""
    wanted, seen = look.wanted, look.seen
    made = proof.artifact(seen, wanted) if wanted and not wanted.record else None
    if wanted is None or made is None:
        return None
    key = proof.validation_key(seen, look.spec, wanted, made)
    if any(one.validation_key == key for one in seen.records):
        return None
    base = proof.baseline(seen, wanted)
    act = RunValidate(
        key=key,
        model_sha256=wanted.model_sha256,
        artifact=made.reference,
        artifact_sha256=made.sha256,
        image=wanted.images.compiler,
        baseline=base.artifact if base else None,
        baseline_sha256=base.artifact_sha256 if base else None,
        gpu_resource=gpu_resource(look.spec.target),
    )
    job = jobs.find(seen, Stage.VALIDATE, key)
    if job is None:
        return _start(look, Stage.VALIDATE, act, f"proving revision {wanted.revision} against its source model")
    end = jobs.ended(job)
    if end is None:
        return _wait(look, job, act)
    return None if end.code is ExitCode.OK else _failed(look, job, end)


def record(look: Look) -> Decision | None:
    """Write the immutable ConfigMap of a revision that is proved."""
    wanted, seen = look.wanted, look.seen
    made = proof.artifact(seen, wanted) if wanted and not wanted.record else None
    if wanted is None or made is None:
        return None
    key = proof.validation_key(seen, look.spec, wanted, made)
    serving = look.spec.serving
    entry = RevisionRecord(
        model=seen.name,
        revision=wanted.revision,
        fingerprint=wanted.fingerprint,
        target=look.spec.target,
        model_sha256=wanted.model_sha256,
        compile_key=wanted.compile_key,
        validation_key=key,
        artifact=made.reference,
        artifact_sha256=made.sha256,
        artifact_size=made.size,
        threshold_seconds=look.spec.slo.latency.threshold.total_seconds(),
        images=wanted.images,
        serving=ServingRecord(
            reject_non_finite=serving.reject_non_finite,
            service_account_name=serving.service_account_name,
            node_selector=dict(serving.node_selector),
            tolerations=serving.tolerations,
            resources=serving.resources,
        ),
        facts=made.facts | {"validation": _report(look, key)},
    )
    message = f"revision {wanted.revision} is proved and recorded"
    return look.say(
        "record",
        Phase.VALIDATING,
        Reason.RECORDING_REVISION,
        message,
        memory=replace(look.memory, retry=None),
        actions=(EnsureRevision(entry),),
        conditions=proved_conditions(wanted.revision),
        after=timedelta(),
    )


def proved_conditions(revision: str) -> tuple[Said, ...]:
    """Say that a revision is compiled and validated."""
    return (
        Said(ConditionType.COMPILED, "True", Reason.COMPILED, f"revision {revision} is compiled"),
        Said(ConditionType.VALIDATED, "True", Reason.VALIDATED, f"revision {revision} is proved against its model"),
    )


def _proved(look: Look) -> bool:
    return look.wanted is not None and look.wanted.record is not None


def _report(look: Look, key: str) -> dict[str, object]:
    job = jobs.find(look.seen, Stage.VALIDATE, key)
    end = jobs.ended(job) if job else None
    if end:
        return dict(end.result)
    known = next((one for one in look.seen.records if one.validation_key == key), None)
    return dict(known.facts.get("validation", {})) if known else {}


def _start(look: Look, stage: Stage, act: RunResolve | RunCompile | RunValidate, message: str) -> Decision:
    event = EmitEvent(EventKind.NORMAL, STAGE_REASONS[stage], message)
    message += _last_failure(look, job_name(stage, look.seen.name, act.key))
    said = _said(stage, "Unknown", STAGE_REASONS[stage], message)
    return look.say(
        stage.value, STAGE_PHASES[stage], STAGE_REASONS[stage], message, actions=(act, event), conditions=said
    )


def _wait(look: Look, job: JobSeen, act: Action) -> Decision:
    stage = job.stage
    gpu = gpu_resource(look.spec.target)
    waits = stage is not Stage.RESOLVE and job.phase is JobPhase.PENDING
    lacking = gpu and waits and not look.seen.nodes.by_resource.get(gpu)
    reason, message = STAGE_REASONS[stage], f"the {stage.value} Job {job.name} is {job.phase.value.lower()}"
    if job.deleting:
        message = f"the former {stage.value} Job {job.name} is being deleted"
    elif lacking:
        reason, message = Reason.WAITING_FOR_NODE, f"no ready node advertises {gpu}; the Job {job.name} waits for one"
    elif job.waiting:
        message += f": {job.waiting}"
    message += _last_failure(look, job.name)
    joined = (act,) if look.seen.uid not in job.owners and not job.deleting else ()
    said = _said(stage, "Unknown", reason, message)
    return look.say(stage.value, STAGE_PHASES[stage], reason, message, actions=joined, conditions=said)


def _last_failure(look: Look, job: str) -> str:
    """Give what became of the last try of a Job that is tried again."""
    retry = look.memory.retry
    if retry is None or retry.job != job or not retry.message:
        return ""
    return f" (failure {retry.attempts} was: {retry.message})"


def _failed(look: Look, job: JobSeen, end: jobs.Ended) -> Decision:
    if job.deleting:
        return _wait(look, job, EmitEvent(EventKind.NORMAL, Reason.RETRYING, "the former Job ends"))
    if jobs.failed_before(job, look.memory.retried_at):
        return _again(look, job, f"the failed Job {job.name} is made anew, it said: {end.message}")
    if end.code is ExitCode.INFRASTRUCTURE:
        return _later(look, job, end)
    code = ExitCode.INTERNAL if end.code is ExitCode.OK else end.code
    reason = jobs.REASONS[code]
    message = end.message
    if end.code is ExitCode.OK:
        message = f"the {job.stage.value} Job {job.name} succeeded, but its result cannot be read; report it"
    said = _said(job.stage, "False", reason, message)
    if code is ExitCode.WRONG_NUMBERS and look.wanted:
        return _intrinsic(look, reason, message, said)
    if _told(look, reason, message):
        return look.say(job.stage.value, Phase.BLOCKED, reason, message, conditions=said)
    return look.record(
        job.stage.value, Phase.BLOCKED, reason, message, look.memory, kind=EventKind.WARNING, conditions=said
    )


def _told(look: Look, reason: Reason, message: str) -> bool:
    last = look.memory.timeline[-1] if look.memory.timeline else None
    return last is not None and (last.reason, last.message) == (reason.value, brief(message))


def _intrinsic(look: Look, reason: Reason, message: str, said: tuple[Said, ...]) -> Decision:
    """Wrong numbers are the artifact's own fault: no revision with it is tried again."""
    assert look.wanted is not None
    made = proof.artifact(look.seen, look.wanted)
    sha256 = made.sha256 if made else None
    entry = QuarantineEntry(
        look.wanted.revision, reason.value, brief(message), look.now, sha256, proof.bound(look.spec)
    )
    memory = replace(look.memory, quarantine=(entry, *look.memory.quarantine)[:QUARANTINE_LIMIT])
    return look.record("validate", Phase.BLOCKED, reason, message, memory, kind=EventKind.WARNING, conditions=said)


def _later(look: Look, job: JobSeen, end: jobs.Ended) -> Decision:
    retry = look.memory.retry
    said = _said(job.stage, "Unknown", Reason.INFRASTRUCTURE, end.message)
    if retry is None or retry.uid != job.uid:
        failures = retry.attempts + 1 if retry and retry.job == job.name else 1
        told = Retry(job.name, failures, look.now + backoff.delay(failures), job.uid, brief(end.message))
        memory = replace(look.memory, retry=told)
        return look.record(
            job.stage.value,
            STAGE_PHASES[job.stage],
            Reason.RETRY_LATER,
            f"{end.message} (failure {failures}, next try in {backoff.delay(failures).total_seconds():g} s)",
            memory,
            kind=EventKind.WARNING,
            conditions=said,
        )
    if look.now >= retry.next_at:
        return _again(look, job, f"trying {job.name} again after failure {retry.attempts}: {end.message}")
    phase = Phase.STALLED if retry.attempts >= backoff.STALLED_AFTER else STAGE_PHASES[job.stage]
    return look.say(
        job.stage.value, phase, Reason.RETRY_LATER, end.message, conditions=said, after=retry.next_at - look.now
    )


def _again(look: Look, job: JobSeen, message: str) -> Decision:
    return look.say(
        job.stage.value,
        STAGE_PHASES[job.stage],
        Reason.RETRYING,
        message,
        actions=(DeleteJob(job.name, job.uid),),
        after=timedelta(seconds=1),
    )


def _said(stage: Stage, status: str, reason: Reason, message: str) -> tuple[Said, ...]:
    """The condition of a stage; what an earlier spec's proof said is no longer said of this one."""
    if stage is Stage.VALIDATE:
        return (Said(ConditionType.VALIDATED, status, reason, message),)
    if stage is Stage.RESOLVE and status == "Unknown":
        # a look behind the URI mostly finds the model that is compiled already
        return ()
    waits = Said(ConditionType.VALIDATED, "Unknown", reason, "there is no artifact to prove yet")
    return (Said(ConditionType.COMPILED, status, reason, message), waits)
