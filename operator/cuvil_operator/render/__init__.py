"""What should be, as Kubernetes documents.

Holds: pure functions from a CuvilModel's spec, a revision's record and the facts of an action to the Jobs, ConfigMap,
Deployment, Services, PodDisruptionBudget, HTTPRoute, PodMonitor and PrometheusRule that carry it.
Takes frozen facts and gives dicts that are ready for server-side apply: deterministic, without nulls, always owned by
the CuvilModel, with no label or annotation of it copied. Must not decide, look at the cluster, or know gateways.
"""

from cuvil_operator.render.identity import Document, Owner
from cuvil_operator.render.jobs import compile_job, resolve_job, validate_job
from cuvil_operator.render.monitoring import pod_monitor, prometheus_rule
from cuvil_operator.render.revision import config_map, revision_service
from cuvil_operator.render.traffic import GatewaySplit, PodCountSplit, TrafficSplit, traffic_split
from cuvil_operator.render.workload import deployment, disruption_budget, workload

__all__ = [
    "Document",
    "GatewaySplit",
    "Owner",
    "PodCountSplit",
    "TrafficSplit",
    "compile_job",
    "config_map",
    "deployment",
    "disruption_budget",
    "pod_monitor",
    "prometheus_rule",
    "resolve_job",
    "revision_service",
    "traffic_split",
    "validate_job",
    "workload",
]
