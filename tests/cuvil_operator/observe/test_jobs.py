"""Jobs and their pods → JobSeen."""

import json
from typing import Any

import pytest

from cuvil_core.contract import ExitCode
from cuvil_operator.facts import JobPhase
from cuvil_operator.observe.jobs import read_job


def job(status: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    labels = {"cuvil.dev/stage": "compile", "cuvil.dev/key": "abc"}
    whole = {
        "name": "cuvil-compile-abc",
        "namespace": "ns",
        "uid": "job-uid",
        "labels": labels,
        "annotations": {"cuvil.dev/full-key": "abcdef"},
        "creationTimestamp": "2030-01-01T12:00:00Z",
        "ownerReferences": [
            {"kind": "CuvilModel", "name": "a", "uid": "uid-a"},
            {"kind": "CuvilModel", "name": "b", "uid": "uid-b"},
            {"kind": "CronJob", "name": "c", "uid": "uid-c"},
        ],
    }
    return {"metadata": whole | meta, "spec": {}, "status": status or {}}


def pod(state: dict[str, Any], phase: str = "Running", created: str = "2030-01-01T12:00:01Z") -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": "cuvil-compile-abc"}
    meta = {"name": "p", "labels": labels, "creationTimestamp": created}
    return {"metadata": meta, "status": {"phase": phase, "containerStatuses": [{"name": "compile", "state": state}]}}


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return pod({"terminated": {"exitCode": code, "message": message, "reason": reason}}, "Failed")


FAILED = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}


def test_a_job_is_read_with_its_owners_and_key() -> None:
    """The whole key comes from the annotation, and only CuvilModels count as owners."""
    seen = read_job(job(), [])
    assert seen is not None
    assert (seen.key, seen.owners, seen.phase) == ("abcdef", ("uid-a", "uid-b"), JobPhase.PENDING)


def test_a_job_of_no_stage_is_none() -> None:
    """A Job that merely carries the label key with another value is not Cuvil's."""
    assert read_job(job(labels={"cuvil.dev/stage": "other"}), []) is None


PHASES = {
    "no pod": ({}, [], JobPhase.PENDING),
    "a pod that waits": ({}, [pod({"waiting": {"reason": "ContainerCreating"}}, "Pending")], JobPhase.PENDING),
    "a pod that runs": ({}, [pod({"running": {}})], JobPhase.RUNNING),
    "complete": ({"conditions": [{"type": "Complete", "status": "True"}]}, [], JobPhase.SUCCEEDED),
    "failed": (FAILED, [], JobPhase.FAILED),
    "about to fail": ({"conditions": [{"type": "FailureTarget", "status": "True"}]}, [], JobPhase.FINISHING),
    "about to succeed": ({"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}, [], JobPhase.FINISHING),
    "a pod whose container has ended": ({}, [pod({"terminated": {"exitCode": 0}})], JobPhase.FINISHING),
    "a pod that has succeeded": ({}, [pod({"terminated": {"exitCode": 0}}, "Succeeded")], JobPhase.FINISHING),
    "a pod that has failed": ({}, [pod({"terminated": {"exitCode": 11}}, "Failed")], JobPhase.FINISHING),
    "a condition that is false": ({"conditions": [{"type": "Complete", "status": "False"}]}, [], JobPhase.PENDING),
}


@pytest.mark.parametrize(("status", "pods", "phase"), PHASES.values(), ids=PHASES.keys())
def test_phases(status: dict[str, Any], pods: list[dict[str, Any]], phase: JobPhase) -> None:
    """The Job's own conditions decide its end, its pods whether it runs."""
    seen = read_job(job(status), pods)
    assert seen is not None and seen.phase is phase


def test_the_termination_message_is_the_outcome() -> None:
    """Exit code and message of the failed container become the outcome in the contract's words."""
    said = json.dumps({"code": 11, "reason": "UnsupportedOp", "message": "op Foo", "result": {}})
    seen = read_job(job(FAILED), [ended(11, said)])
    assert seen is not None and seen.exit_code == 11
    assert seen.outcome is not None and seen.outcome.code is ExitCode.UNSUPPORTED_OP


@pytest.mark.parametrize("said", ["", "no json", "[]", "{}", '{"code": 9999, "reason": "", "message": ""}'])
def test_a_message_that_is_none_leaves_the_exit_code(said: str) -> None:
    """A message that cannot be read is no outcome, and the code stays."""
    seen = read_job(job(FAILED), [ended(11, said)])
    assert seen is not None and seen.outcome is None and seen.exit_code == 11


def test_a_lost_pod_has_no_code() -> None:
    """A failed Job without a pod tells nothing of its container."""
    seen = read_job(job(FAILED), [])
    assert seen is not None and seen.exit_code is None and seen.outcome is None


def test_memory_and_deadline_are_told_apart() -> None:
    """OOMKilled comes from the container, DeadlineExceeded from the Job."""
    killed = read_job(job(FAILED), [ended(137, reason="OOMKilled")])
    late = read_job(job({"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}), [])
    assert killed is not None and killed.oom_killed and not killed.deadline_exceeded
    assert late is not None and late.deadline_exceeded and not late.oom_killed


def test_the_newest_pod_counts() -> None:
    """Of several pods the newest one's end is read."""
    old = ended(20) | {"metadata": ended(20)["metadata"] | {"creationTimestamp": "2030-01-01T11:00:00Z"}}
    seen = read_job(job(FAILED), [old, ended(11)])
    assert seen is not None and seen.exit_code == 11


def test_why_it_waits_is_told() -> None:
    """The kubelet's and the scheduler's sentences come through."""
    image = pod({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}, "Pending")
    nodes = {
        "metadata": image["metadata"],
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}],
        },
    }
    for one, words in ((image, "ImagePullBackOff: no such image"), (nodes, "0/1 nodes are available")):
        seen = read_job(job(), [one])
        assert seen is not None and seen.waiting == words


def test_a_former_jobs_pod_is_not_read() -> None:
    """A Job made anew has its predecessor's name: that one's last pod says nothing of the new one."""
    former = ended(11)
    former["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "cuvil-compile-abc", "uid": "former-uid"}]
    seen = read_job(job(), [former])
    assert seen is not None and (seen.phase, seen.exit_code) == (JobPhase.PENDING, None)
    former["metadata"]["ownerReferences"][0]["uid"] = "job-uid"
    seen = read_job(job(), [former])
    assert seen is not None and (seen.phase, seen.exit_code) == (JobPhase.FINISHING, 11)


def test_another_jobs_pod_is_not_read() -> None:
    """Only pods that carry the Job's name count."""
    other = ended(11) | {"metadata": {"name": "p", "labels": {"batch.kubernetes.io/job-name": "else"}}}
    seen = read_job(job(FAILED), [other])
    assert seen is not None and seen.exit_code is None
