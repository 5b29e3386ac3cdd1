"""The pods of one revision: Deployment and PodDisruptionBudget."""

import hashlib
import math
from collections.abc import Mapping
from datetime import datetime

from cuvil_operator import conventions as names
from cuvil_operator.api.values import format_time
from cuvil_operator.facts import RevisionRecord
from cuvil_operator.render import pods
from cuvil_operator.render.identity import SERVING, Document, Owner, document, labels, serving_selector
from cuvil_operator.render.revision import revision_service

SETTINGS_FOLDER = "/etc/cuvil"
DEFAULT_REQUESTS: Mapping[str, str] = {"cpu": "100m", "memory": "256Mi"}
DRAIN_SECONDS = 30
"""Requests under way and queued ones are answered within this time and one latency threshold."""
UNROUTE_SECONDS = 5
"""A pod that is told to stop still serves until every proxy has heard of it."""
START_SECONDS = 600
"""Fetch, digest and warm-up of the largest artifact."""


def workload(
    owner: Owner,
    record: RevisionRecord,
    replicas: int,
    restarted_at: datetime | None = None,
    *,
    registry_secret: str = "",
) -> tuple[Document, ...]:
    """Give Service, Deployment and PodDisruptionBudget `NAME-REVISION`, in the order to apply them.

    The Service comes first: whoever sees ready pods, a controller that was killed in between included, may route to it.
    """
    return (
        revision_service(owner, record.revision),
        deployment(owner, record, replicas, restarted_at, registry_secret=registry_secret),
        disruption_budget(owner, record.revision),
    )


def deployment(
    owner: Owner,
    record: RevisionRecord,
    replicas: int,
    restarted_at: datetime | None = None,
    *,
    registry_secret: str = "",
) -> Document:
    """Give the Deployment: pods are replaced one by one, a new one ready before an old one goes."""
    labelled = labels(owner, SERVING, {names.LABEL_REVISION: record.revision})
    selector = serving_selector(owner.name, record.revision)
    moment = format_time(restarted_at) if restarted_at else None
    template = {
        "metadata": {
            "labels": labelled,
            "annotations": {
                f"{names.GROUP}/record-sha256": hashlib.sha256(record.to_json().encode()).hexdigest(),
                **pods.annotations_of_restart(moment),
            },
        },
        "spec": _pod(owner, record, selector, registry_secret),
    }
    spec = {
        "replicas": replicas,
        "revisionHistoryLimit": 0,
        "progressDeadlineSeconds": START_SECONDS + 60,
        "selector": {"matchLabels": selector},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": template,
    }
    name = names.revision_name(owner.name, record.revision)
    return document(("apps/v1", "Deployment"), owner, name, labelled, spec=spec)


def disruption_budget(owner: Owner, revision: str) -> Document:
    """Give the budget: a node drain takes one pod at a time, and broken pods never block it."""
    labelled = labels(owner, SERVING, {names.LABEL_REVISION: revision})
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": serving_selector(owner.name, revision)},
    }
    name = names.revision_name(owner.name, revision)
    return document(("policy/v1", "PodDisruptionBudget"), owner, name, labelled, spec=spec)


def _pod(owner: Owner, record: RevisionRecord, selector: dict[str, str], registry_secret: str) -> Document:
    serving = record.serving
    gpu = names.gpu_resource(record.target)
    registry, variables = pods.registry_credentials(registry_secret)
    items = [{"key": names.SERVING_KEY, "path": names.SERVING_KEY}]
    source = {"configMap": {"name": names.revision_name(owner.name, record.revision), "items": items}}
    mounts = [
        pods.Mount("settings", SETTINGS_FOLDER, source, read_only=True),
        pods.scratch("tmp", "/tmp"),
        pods.scratch("cache", pods.CACHE),
        *registry,
    ]
    port = str(names.CONTAINER_PORT)
    container: Document = {
        "name": SERVING,
        "image": record.images.runtime,
        "command": ["python", "-m", "cuvil_core.serving"],
        "args": ["--settings", f"{SETTINGS_FOLDER}/{names.SERVING_KEY}", "--port", port],
        "env": pods.environment({"CUVIL_CACHE_DIR": pods.CACHE, **variables}),
        "ports": [{"name": "http", "containerPort": names.CONTAINER_PORT, "protocol": "TCP"}],
        "resources": pods.resources(serving.resources, DEFAULT_REQUESTS, gpu),
        "lifecycle": {"preStop": {"sleep": {"seconds": UNROUTE_SECONDS}}},
        **_probes(),
    }
    more: Document = {
        "terminationGracePeriodSeconds": UNROUTE_SECONDS + DRAIN_SECONDS + math.ceil(record.threshold_seconds),
        "topologySpreadConstraints": [_spread(key, selector) for key in _SPREAD_KEYS],
    }
    if serving.service_account_name:
        more["serviceAccountName"] = serving.service_account_name
    return pods.pod_spec(
        container, mounts, pods.placement(record.target, serving.node_selector, serving.tolerations, gpu), **more
    )


_SPREAD_KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")


def _spread(key: str, selector: dict[str, str]) -> Document:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
    }


def _probes() -> Document:
    live = {"httpGet": {"path": "/v2/health/live", "port": "http"}}
    ready = {"httpGet": {"path": "/v2/health/ready", "port": "http"}}
    return {
        "startupProbe": {**live, "periodSeconds": 2, "failureThreshold": START_SECONDS // 2, "timeoutSeconds": 2},
        # generous: a pod that is slow under load must answer for its latency, not be restarted out of it
        "livenessProbe": {**live, "periodSeconds": 10, "failureThreshold": 6, "timeoutSeconds": 5},
        "readinessProbe": {**ready, "periodSeconds": 2, "failureThreshold": 3, "timeoutSeconds": 3},
    }
