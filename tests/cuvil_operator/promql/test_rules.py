"""The rule groups of an SLO: their arithmetic; tests of render ask promtool."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from cuvil_operator.api import LatencyObjective, Slo
from cuvil_operator.promql import rules

SLO = Slo(LatencyObjective(timedelta(milliseconds=800)), Decimal("0.005"))


def alerts(slo: Slo) -> list[rules.Rule]:
    """Give the burn-rate alerts."""
    return [
        one for group in rules.groups("m", "vision", slo) for one in group.rules if one.alert and "long" in one.labels
    ]


def test_burn_rates_are_the_workbooks() -> None:
    """For 30 days: 14.4, 6, 3 and 1."""
    assert [rules.burn_rate(one, timedelta(days=30)) for one in rules.BURNS] == [Decimal("14.4"), 6, 3, 1]


def test_burn_rates_follow_the_window() -> None:
    """A window of seven days is spent earlier: the same share of the budget in the same hour is a lower rate."""
    assert rules.burn_rate(rules.BURNS[0], timedelta(days=7)) == Decimal("3.36")


def test_thresholds_are_rate_times_budget() -> None:
    """0.5 % errors at 14.4: 0.072; 5 % slow at 14.4: 0.72; none exceeds what a share can be."""
    found = alerts(SLO)
    assert "> 0.072 and" in found[0].expr and "> 0.72 and" in found[4].expr
    loose = alerts(Slo(LatencyObjective(timedelta(seconds=1), 50), Decimal("0.2")))
    assert "> 0.99 and" in loose[0].expr


def test_every_alert_reads_a_recording_that_is_there() -> None:
    """No alert rests on a name that nobody records."""
    records = {one.record for group in rules.groups("m", "vision", SLO) for one in group.rules if one.record}
    used = {part.partition("{")[0] for one in alerts(SLO) for part in one.expr.split(" and ")}
    assert used <= records


def test_severities_and_names() -> None:
    """Fast burns page, slow ones make a ticket; each alert says which model."""
    found = alerts(SLO)
    assert [one.labels["severity"] for one in found] == ["page", "page", "ticket", "ticket"] * 2
    assert {(one.labels["namespace"], one.labels["model"]) for one in found} == {("vision", "m")}


@pytest.mark.parametrize(
    ("window", "text"), [(300, "5m"), (3600, "1h"), (7200, "2h"), (86400, "1d"), (259200, "3d"), (90, "90s")]
)
def test_spans(window: int, text: str) -> None:
    """A window is written in its largest whole unit."""
    assert rules.span(timedelta(seconds=window)) == text


def test_documents_are_what_a_rule_file_holds(golden: Callable[[str, str], None]) -> None:
    """The groups as JSON, which is YAML."""
    golden("rules.json", json.dumps({"groups": rules.as_documents(rules.groups("m", "vision", SLO))}, indent=1) + "\n")
