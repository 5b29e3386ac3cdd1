"""What Prometheus is told: which pods to scrape, and which rules to evaluate."""

from datetime import timedelta

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.api.values import format_duration
from cuvil_operator.promql import rules
from cuvil_operator.render.identity import Document, Owner, document, labels, serving_selector

SLOWEST_SCRAPE = timedelta(seconds=15)
"""Burn rates over five minutes need a few samples each."""
FASTEST_SCRAPE = timedelta(seconds=1)


def scrape_interval(spec: CuvilModelSpec) -> timedelta:
    """Give at most half the analysis interval, so that each look has at least one new scrape of each pod."""
    return max(FASTEST_SCRAPE, min(SLOWEST_SCRAPE, spec.rollout.analysis.interval / 2))


def pod_monitor(owner: Owner, spec: CuvilModelSpec) -> Document:
    """Give the PodMonitor of all revisions; `model` and `revision` are labels of the metrics themselves."""
    interval = format_duration(scrape_interval(spec))
    endpoint = {
        "port": "http",
        "path": "/metrics",
        "interval": interval,
        # Prometheus refuses a timeout above the interval
        "scrapeTimeout": interval,
    }
    body = {
        "selector": {"matchLabels": serving_selector(owner.name)},
        "podMetricsEndpoints": [endpoint],
    }
    kind = ("monitoring.coreos.com/v1", "PodMonitor")
    return document(kind, owner, owner.name, labels(owner, "monitoring"), spec=body)


def prometheus_rule(owner: Owner, spec: CuvilModelSpec) -> Document:
    """Give the PrometheusRule of the model's SLO: recordings, burn-rate alerts, canary alerts."""
    kind = ("monitoring.coreos.com/v1", "PrometheusRule")
    groups = rules.as_documents(rules.groups(owner.name, owner.namespace, spec.slo))
    return document(kind, owner, owner.name, labels(owner, "monitoring"), spec={"groups": list(groups)})
