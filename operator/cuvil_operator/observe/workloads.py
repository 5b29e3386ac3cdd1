"""Deployment and its pods → WorkloadSeen: pure."""

from collections.abc import Iterable

from cuvil_operator import conventions
from cuvil_operator.facts import WorkloadSeen
from cuvil_operator.gateways.protocols import Document
from cuvil_operator.observe.jobs import JOB_NAME_LABEL
from cuvil_operator.observe.pods import is_crashing, newest_first, why_not_ready


def serving_pods(pods: Iterable[Document]) -> list[Document]:
    """Keep the pods that serve a revision: they carry one, and no Job made them."""
    kept = []
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(conventions.LABEL_REVISION) and JOB_NAME_LABEL not in labels:
            kept.append(pod)
    return kept


def revision_of(document: Document) -> str:
    """Give the revision label, or an empty text."""
    return str((document["metadata"].get("labels") or {}).get(conventions.LABEL_REVISION, ""))


def read_workload(deployment: Document, pods: Iterable[Document]) -> WorkloadSeen:
    """Read a Deployment of one revision; `pods` are the model's serving pods of all revisions."""
    revision, status = revision_of(deployment), deployment.get("status") or {}
    own = newest_first(pod for pod in pods if revision_of(pod) == revision)
    return WorkloadSeen(
        revision=revision,
        replicas=int(deployment["spec"].get("replicas", 1)),
        # Both count pods: ready ones of any template, and ones of the newest template. During a restart the lesser
        # one is sure to be both.
        ready=min(int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)),
        pods=len(own),
        crashing=any(map(is_crashing, own)),
        message=next((why for pod in own if (why := why_not_ready(pod))), ""),
    )
