"""The PrometheusRule of one model: recordings, burn-rate alerts, canary alerts.

Two objectives from spec.slo, each with a bad share and a budget:

    errors   bad = error + rejected of all requests but client_error      budget = errorRate
    latency  bad = answered requests slower than the threshold            budget = 1 − percentile/100

Multi-window, multi-burn-rate (SRE Workbook, chapter 5, "Alerting on SLOs", table 5-8): with an error budget for 30 days

| budget spent | long window | short window | burn rate | severity |
|--------------|-------------|--------------|-----------|----------|
| 2 %          | 1 h         | 5 m          | 14.4      | page     |
| 5 %          | 6 h         | 30 m         | 6         | page     |
| 10 %         | 1 d         | 2 h          | 3         | ticket   |
| 10 %         | 3 d         | 6 h          | 1         | ticket   |

An alert fires while both windows burn faster than the rate, so it ends soon after the cause does. For another window W
the rate is share of budget · W / long window. The one difference from the book: a window without requests gives no
sample, where 0/0 would be NaN, so silence never fires and never resolves by accident.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from cuvil_core.contract import RequestOutcome, ServingMetric
from cuvil_operator.api import Slo
from cuvil_operator.conventions import GROUP, Metric
from cuvil_operator.promql.queries import quoted
from cuvil_operator.promql.results import BREACHES


@dataclass(frozen=True, slots=True)
class Rule:
    """One recording rule (record) or alert (alert)."""

    expr: str
    record: str | None = None
    alert: str | None = None
    for_: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are evaluated together, one after the other."""

    name: str
    rules: tuple[Rule, ...]
    interval: str | None = None
    """None: the Prometheus's own."""


@dataclass(frozen=True, slots=True)
class Burn:
    """One line of the table."""

    spent: Decimal
    long: timedelta
    short: timedelta
    severity: str


BURNS = (
    Burn(Decimal("0.02"), timedelta(hours=1), timedelta(minutes=5), "page"),
    Burn(Decimal("0.05"), timedelta(hours=6), timedelta(minutes=30), "page"),
    Burn(Decimal("0.10"), timedelta(days=1), timedelta(hours=2), "ticket"),
    Burn(Decimal("0.10"), timedelta(days=3), timedelta(hours=6), "ticket"),
)
WINDOWS = sorted({window for burn in BURNS for window in (burn.long, burn.short)})

RECORD_ERRORS = "cuvil:requests_bad:ratio"
RECORD_LATENCY = "cuvil:requests_slow:ratio"
ALERT_ERRORS = "CuvilErrorBudgetBurn"
ALERT_LATENCY = "CuvilLatencyBudgetBurn"
ALERT_ROLLED_BACK = "CuvilRolledBack"
ALERT_STALLED = "CuvilStalled"


def groups(name: str, namespace: str, slo: Slo) -> tuple[RuleGroup, ...]:
    """Give the rule groups of a CuvilModel; names of groups are unique in the namespace."""
    model = f"namespace={quoted(namespace)},model={quoted(name)}"
    labels = {"namespace": namespace, "model": name}
    slow_budget = Decimal(100 - slo.latency.percentile) / 100
    threshold = slo.latency.threshold.total_seconds()
    return (
        RuleGroup(
            f"cuvil-{namespace}-{name}-record",
            tuple(_error_share(model, labels, window) for window in WINDOWS)
            + tuple(_slow_share(model, labels, window, threshold) for window in WINDOWS),
        ),
        RuleGroup(
            f"cuvil-{namespace}-{name}-slo",
            tuple(_burn(ALERT_ERRORS, RECORD_ERRORS, model, slo, slo.error_rate, burn, labels) for burn in BURNS)
            + tuple(_burn(ALERT_LATENCY, RECORD_LATENCY, model, slo, slow_budget, burn, labels) for burn in BURNS),
        ),
        RuleGroup(f"cuvil-{namespace}-{name}-canary", _canary(model, name, namespace, labels)),
    )


def span(window: timedelta) -> str:
    """Give a window as PromQL writes it, in its largest whole unit: 5m, 1h, 3d."""
    seconds = int(window.total_seconds())
    units = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
    return next(f"{seconds // size}{unit}" for size, unit in units if seconds % size == 0)


def burn_rate(burn: Burn, window: timedelta) -> Decimal:
    """Give the burn rate that spends the share of the budget within the long window: 0.02 · 30 d / 1 h = 14.4."""
    return burn.spent * int(window.total_seconds()) / int(burn.long.total_seconds())


def _error_share(model: str, labels: dict[str, str], window: timedelta) -> Rule:
    breaching = "|".join(BREACHES)
    bad = _rate(f'{ServingMetric.REQUESTS}{{{model},outcome=~"{breaching}"}}', window)
    all_ = _rate(f'{ServingMetric.REQUESTS}{{{model},outcome!="{RequestOutcome.CLIENT_ERROR}"}}', window)
    return _share(f"{RECORD_ERRORS}_rate{span(window)}", f"({bad} or 0 * {all_})", all_, labels)


def _slow_share(model: str, labels: dict[str, str], window: timedelta, threshold: float) -> Rule:
    all_ = _rate(f'{ServingMetric.DURATION_BUCKET}{{{model},le="+Inf"}}', window)
    within = _rate(f'{ServingMetric.DURATION_BUCKET}{{{model},le=~"{_bounds(threshold)}"}}', window)
    return _share(f"{RECORD_LATENCY}_rate{span(window)}", f"({all_} - {within})", all_, labels)


def _share(record: str, bad: str, all_: str, labels: dict[str, str]) -> Rule:
    return Rule(record=record, expr=f"{bad} / ({all_} > 0)", labels=labels)


def _rate(selector: str, window: timedelta) -> str:
    return f"sum(rate({selector}[{span(window)}]))"


def _bounds(threshold: float) -> str:
    """A bound as Prometheus 2 (as scraped) and 3 (as a float) spell it: 1 and 1.0."""
    short = f"{threshold:g}"
    spellings = {short, repr(float(threshold))}
    return "|".join(sorted(one.replace(".", "\\\\.").replace("+", "\\\\+") for one in spellings))


def _burn(alert: str, record: str, model: str, slo: Slo, budget: Decimal, burn: Burn, labels: dict[str, str]) -> Rule:
    rate = burn_rate(burn, slo.window)
    # a share cannot exceed 1: with a large budget a high burn rate would never be reached
    limit = min(rate * budget, Decimal("0.99"))
    text = f"{limit.normalize():f}"
    long, short = (f"{record}_rate{span(window)}{{{model}}} > {text}" for window in (burn.long, burn.short))
    what = "fail" if record == RECORD_ERRORS else f"take longer than {slo.latency.threshold.total_seconds():g} s"
    return Rule(
        alert=alert,
        expr=f"{long} and {short}",
        labels=labels | {"severity": burn.severity, "long": span(burn.long), "short": span(burn.short)},
        annotations={
            "summary": f"{labels['namespace']}/{labels['model']}: too many requests {what}",
            "description": (
                f"{{{{ $value | humanizePercentage }}}} of the requests {what} over {span(burn.long)}; "
                f"at {rate.normalize():f} times the budget of {(budget * 100).normalize():f}% the {span(slo.window)} "
                "are spent too early."
            ),
        },
    )


def _canary(model: str, name: str, namespace: str, labels: dict[str, str]) -> tuple[Rule, ...]:
    where = f"{namespace}/{name}"
    return (
        Rule(
            alert=ALERT_ROLLED_BACK,
            expr=f"max by (namespace, model, revision, reason) ({Metric.MODEL_QUARANTINED}{{{model}}}) == 1",
            labels={"severity": "page"},
            annotations={
                "summary": f"{where}: revision {{{{ $labels.revision }}}} was rolled back ({{{{ $labels.reason }}}})",
                "description": (
                    f"See kubectl -n {namespace} get cuvilmodels.{GROUP} {name} -o jsonpath='{{.status.rollback}}'. "
                    "Change the spec, or order retry or clear-quarantine."
                ),
            },
        ),
        Rule(
            alert=ALERT_STALLED,
            expr=f'max by (namespace, model, phase) ({Metric.MODEL_PHASE}{{{model},phase=~"Stalled|Blocked"}}) == 1',
            for_="5m",
            labels={"severity": "ticket"} | labels,
            annotations={
                "summary": f"{where} is {{{{ $labels.phase }}}}",
                "description": f"See kubectl -n {namespace} describe cuvilmodels.{GROUP} {name}.",
            },
        ),
    )


def as_documents(wanted: tuple[RuleGroup, ...]) -> tuple[dict[str, object], ...]:
    """Give the groups as `spec.groups` of a PrometheusRule, and as a rule file of Prometheus, writes them."""
    return tuple(_group(one) for one in wanted)


def _group(group: RuleGroup) -> dict[str, object]:
    interval = {"interval": group.interval} if group.interval else {}
    return {"name": group.name} | interval | {"rules": [_rule(one) for one in group.rules]}


def _rule(rule: Rule) -> dict[str, object]:
    whole = {
        "record": rule.record,
        "alert": rule.alert,
        "expr": rule.expr,
        "for": rule.for_,
        "labels": rule.labels,
        "annotations": rule.annotations,
    }
    return {key: value for key, value in whole.items() if value}
