"""What Prometheus is told: which pods to scrape, and which rules to evaluate."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.api.values import format_duration
from cuvil_operator.promql.rules import Rule, RuleGroup
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


def rule_groups(groups: Sequence[RuleGroup]) -> tuple[Mapping[str, Any], ...]:
    """Give promql's groups as the PrometheusRule spells them."""
    return tuple(
        _filled(name=group.name, interval=group.interval, rules=[_rule(rule) for rule in group.rules])
        for group in groups
    )


def _rule(rule: Rule) -> Mapping[str, Any]:
    told = {"record": rule.record, "alert": rule.alert, "expr": rule.expr, "for": rule.for_}
    return _filled(**told, labels=rule.labels, annotations=rule.annotations)


def _filled(**fields: Any) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value}


def prometheus_rule(owner: Owner, groups: Sequence[Mapping[str, Any]]) -> Document:
    """Give the PrometheusRule with the groups of promql."""
    kind = ("monitoring.coreos.com/v1", "PrometheusRule")
    body = {"groups": [dict(group) for group in groups]}
    return document(kind, owner, owner.name, labels(owner, "monitoring"), spec=body)
