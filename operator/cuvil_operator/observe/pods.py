"""What the fields of a Pod say: pure."""

from collections.abc import Iterable
from typing import Any

from cuvil_operator.gateways.protocols import Document

CRASH_LOOP = "CrashLoopBackOff"


def newest_first(pods: Iterable[Document]) -> list[Document]:
    """Order by creation, newest first."""
    return sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), reverse=True)


def is_terminating(pod: Document) -> bool:
    """A pod that was deleted and still exists."""
    return "deletionTimestamp" in pod["metadata"]


def is_running(pod: Document) -> bool:
    """The kubelet has started a container and none has ended the pod."""
    return (pod.get("status") or {}).get("phase") == "Running"


def is_ready(pod: Document) -> bool:
    """It takes traffic: ready and not terminating."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not is_terminating(pod)


def terminated(pod: Document) -> dict[str, Any] | None:
    """Give the `terminated` state of its container that failed, else of one that ended; None where none did."""
    ends = [end for one in _containers(pod) if (end := (one.get("state") or {}).get("terminated"))]
    return next((end for end in ends if end["exitCode"] != 0), ends[0] if ends else None)


def is_crashing(pod: Document) -> bool:
    """The kubelet waits longer and longer before it starts a container again."""
    return any(((one.get("state") or {}).get("waiting") or {}).get("reason") == CRASH_LOOP for one in _containers(pod))


def why_waiting(pod: Document) -> str:
    """Give the kubelet's or the scheduler's sentence on why it does not run; empty where nothing holds it."""
    for one in _containers(pod):
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("message"):
            return f"{waiting.get('reason', 'waiting')}: {waiting['message']}"
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


def why_not_ready(pod: Document) -> str:
    """Give one sentence; empty for a ready pod."""
    if is_ready(pod):
        return ""
    for one in _containers(pod):
        last = ((one.get("lastState") or {}).get("terminated")) or {}
        if is_crashing(pod) and last:
            said = " ".join(str(last.get("message") or "").split())[:500]
            return f"{pod['metadata']['name']} ended with exit code {last.get('exitCode')}: {said}".rstrip(": ")
    return why_waiting(pod)


def _containers(pod: Document) -> list[dict[str, Any]]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
