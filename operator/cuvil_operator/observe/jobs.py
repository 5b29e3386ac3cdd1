"""Job and its pods → JobSeen: pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from cuvil_core.contract import Outcome as JobOutcome
from cuvil_operator import conventions
from cuvil_operator.api.values import parse_time
from cuvil_operator.facts import JobPhase, JobSeen
from cuvil_operator.gateways.protocols import Document
from cuvil_operator.gateways.resources import JOBS
from cuvil_operator.observe.pods import is_running, newest_first, terminated, why_waiting

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"


def read_job(job: Document, pods: Iterable[Document]) -> JobSeen | None:
    """Read a Job with the pods that carry its name; None where it is none of Cuvil's stages."""
    meta = job["metadata"]
    stage = (meta.get("labels") or {}).get(conventions.LABEL_STAGE)
    if stage not in set(conventions.Stage):
        return None
    own = newest_first(pod for pod in pods if _is_of(pod, meta))
    ended = next((end for pod in own if (end := terminated(pod)) is not None), None)
    conditions = _true_conditions(job)
    failed = conditions.get("Failed") or conditions.get("FailureTarget")
    return JobSeen(
        name=meta["name"],
        uid=meta["uid"],
        stage=conventions.Stage(stage),
        key=str((meta.get("annotations") or {}).get(conventions.ANNOTATION_KEY, "")),
        phase=_phase(conditions, own),
        owners=tuple(ref["uid"] for ref in meta.get("ownerReferences") or () if ref["kind"] == conventions.KIND),
        created_at=_time(meta.get("creationTimestamp")),
        finished_at=_finished(job, conditions),
        exit_code=None if ended is None else int(ended["exitCode"]),
        oom_killed=ended is not None and ended.get("reason") == "OOMKilled",
        deadline_exceeded=failed is not None and failed.get("reason") == "DeadlineExceeded",
        outcome=_outcome(ended),
        waiting=next((why for pod in own if (why := why_waiting(pod))), ""),
        deleting="deletionTimestamp" in meta,
    )


def _is_of(pod: Document, job: Document) -> bool:
    """True for a pod of this Job, false for one of a former Job of the same name that still ends."""
    meta = pod["metadata"]
    owners = {ref["uid"] for ref in meta.get("ownerReferences") or () if ref["kind"] == JOBS.kind}
    named = (meta.get("labels") or {}).get(JOB_NAME_LABEL) == job["name"]
    return bool(named and (not owners or job["uid"] in owners))


def _true_conditions(job: Document) -> dict[str, dict[str, Any]]:
    found = (job.get("status") or {}).get("conditions") or ()
    return {one["type"]: one for one in found if one.get("status") == "True"}


def _phase(conditions: dict[str, dict[str, Any]], pods: list[Document]) -> JobPhase:
    if "Complete" in conditions:
        return JobPhase.SUCCEEDED
    if "Failed" in conditions:
        return JobPhase.FAILED
    # These two come first, while pods still end: the Job is not over yet.
    if {"FailureTarget", "SuccessCriteriaMet"} & set(conditions) or any(map(terminated, pods[:1])):
        return JobPhase.FINISHING
    return JobPhase.RUNNING if any(map(is_running, pods)) else JobPhase.PENDING


def _finished(job: Document, conditions: dict[str, dict[str, Any]]) -> datetime | None:
    end = conditions.get("Complete") or conditions.get("Failed")
    when = (job.get("status") or {}).get("completionTime") or (end or {}).get("lastTransitionTime")
    return _time(when) if end else None


def _outcome(ended: dict[str, Any] | None) -> JobOutcome | None:
    try:
        return JobOutcome.from_json(str((ended or {}).get("message") or ""))
    except ValueError:
        return None


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None
