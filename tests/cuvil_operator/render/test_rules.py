"""The rendered PrometheusRules in promtool: sound for any SLO, firing on faults, still on health, silence and 4xx."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.render import Owner, prometheus_rule
from programs import run

pytestmark = pytest.mark.programs
OWNER = Owner("resnet18", "vision", "1")
Alerts = Mapping[str, set[tuple[str, str]]]
"""Alert → (severity, long window) of each that fires."""
SERIES = 'namespace="vision",model="resnet18",revision="0123456789ab",pod="a"'
ERRORS, LATENCY = "CuvilErrorBudgetBurn", "CuvilLatencyBudgetBurn"
PAGE_FAST, PAGE_SLOW = ("page", "1h"), ("page", "6h")
TICKET_FAST, TICKET_SLOW = ("ticket", "1d"), ("ticket", "3d")


def spec(
    error_rate: str = "0.5%", percentile: int = 95, threshold: str = "800ms", window: str = "30d"
) -> CuvilModelSpec:
    """Give a spec with this SLO."""
    latency = {"percentile": percentile, "threshold": threshold}
    model = {"uri": "https://models.example.com/a.onnx"}
    slo = {"errorRate": error_rate, "latency": latency, "window": window}
    return CuvilModelSpec.from_dict({"model": model, "target": "x86_64-cpu", "slo": slo})


def rule_file(folder: Path, wanted: CuvilModelSpec) -> Path:
    """Write the rule as a rule file of Prometheus."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(prometheus_rule(OWNER, wanted)["spec"]))))
    return path


def firing(alerts: Alerts) -> list[dict[str, Any]]:
    """Give the samples that stand for exactly these alerts, by (severity, long window)."""
    return [
        {"labels": f'{{alertname="{name}", severity="{severity}"' + (f', long="{long}"}}' if long else "}"), "value": 1}
        for name, many in alerts.items()
        for severity, long in many
    ]


def promtool(
    folder: Path,
    wanted: CuvilModelSpec,
    series: Mapping[str, str],
    at: Mapping[str, Alerts],
) -> None:
    """Let promtool evaluate the rules on series, and compare the set of firing alerts at each time."""
    rule_file(folder, wanted)
    expr = 'count by (alertname, severity, long) (ALERTS{alertstate="firing"})'
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": expr, "eval_time": time, "exp_samples": firing(alerts)} for time, alerts in at.items()
        ],
    }
    path = folder / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
    done = run("promtool", ["test", "rules", str(path)])
    assert done.returncode == 0, done.stdout + done.stderr


def requests(ok: str, error: str = "0x600", client: str = "0x600", late: str = "") -> dict[str, str]:
    """Give the series of one pod: requests by outcome, and the buckets at the threshold and at infinity."""
    name, bucket = "cuvil_requests_total", "cuvil_request_duration_seconds_bucket"
    return {
        f'{name}{{{SERIES},outcome="ok"}}': ok,
        f'{name}{{{SERIES},outcome="error"}}': error,
        f'{name}{{{SERIES},outcome="client_error"}}': client,
        f'{bucket}{{{SERIES},le="0.8"}}': late or ok,
        f'{bucket}{{{SERIES},le="+Inf"}}': ok,
    }


@pytest.mark.parametrize(
    "wanted",
    [
        spec(),
        spec("0.0001%", 99, "1ms", "1d"),
        spec("99%", 50, "10m", "90d"),
        spec(threshold="1s"),
        spec(threshold="1s500ms", window="7d"),
    ],
    ids=["usual", "strict", "loose", "whole second", "week"],
)
def test_rules_are_sound(wanted: CuvilModelSpec, tmp_path: Path) -> None:
    """promtool accepts the rules of every SLO that the schema admits, its lints included."""
    path = rule_file(tmp_path, wanted)
    done = run("promtool", ["check", "rules", "--lint=all", "--lint-fatal", str(path)])
    assert done.returncode == 0, done.stdout + done.stderr


def test_health_fires_nothing(tmp_path: Path) -> None:
    """A model within its objectives, with a share of client errors, raises no alert in ten hours."""
    promtool(tmp_path, spec(), requests("0+600x600", "0+1x600", "0+300x600"), {"10m": {}, "2h": {}, "10h": {}})


def test_silence_fires_nothing(tmp_path: Path) -> None:
    """No requests at all raise no alert: 0/0 is no sample."""
    promtool(tmp_path, spec(), requests("5x600"), {"2h": {}, "10h": {}})


def test_absence_fires_nothing(tmp_path: Path) -> None:
    """A model that was never scraped raises no alert."""
    promtool(tmp_path, spec(), {"up": "1x600"}, {"2h": {}})


def test_errors_page_and_end(tmp_path: Path) -> None:
    """A fifth of errors pages within minutes; minutes after the errors end, the fast page ends too."""
    after_end = {"75m": {ERRORS: {PAGE_SLOW, TICKET_FAST, TICKET_SLOW}}}
    whole = {ERRORS: {PAGE_FAST, PAGE_SLOW, TICKET_FAST, TICKET_SLOW}}
    promtool(
        tmp_path,
        spec(),
        requests("0+480x60 0+480x0 29280+600x540", "0+120x60 7200x541"),
        {"10m": whole, "60m": whole} | after_end,
    )


def test_slow_errors_write_a_ticket(tmp_path: Path) -> None:
    """Errors at twice the budget page nobody, and write the ticket of three days."""
    promtool(tmp_path, spec(), requests("0+990x600", "0+10x600"), {"8h": {ERRORS: {TICKET_SLOW}}})


def test_latency_pages(tmp_path: Path) -> None:
    """When all requests take longer than the threshold, the latency alerts fire and the error alerts do not."""
    every = {PAGE_FAST, PAGE_SLOW, TICKET_FAST, TICKET_SLOW}
    promtool(tmp_path, spec(), requests("0+600x600", late="0+60x600"), {"20m": {LATENCY: every}})


@pytest.mark.parametrize("bound", ["1", "1.0"])
def test_latency_of_a_whole_second(tmp_path: Path, bound: str) -> None:
    """The bucket at one second is found as Prometheus 2 and as Prometheus 3 spell its bound."""
    series = {
        name.replace('le="0.8"', f'le="{bound}"'): values
        for name, values in requests("0+600x600", late="0+60x600").items()
    }
    every = {PAGE_FAST, PAGE_SLOW, TICKET_FAST, TICKET_SLOW}
    promtool(tmp_path, spec(threshold="1s"), series, {"20m": {LATENCY: every}})


def test_slow_within_the_percentile_keeps_still(tmp_path: Path) -> None:
    """Four in a hundred late requests are within a p95 objective."""
    promtool(tmp_path, spec(), requests("0+600x600", late="0+576x600"), {"2h": {}, "9h": {}})


def test_another_models_errors_fire_nothing(tmp_path: Path) -> None:
    """The rules look at their own model and namespace alone."""
    mine = requests("0+600x600")
    other = {
        name.replace('"resnet18"', '"other"'): values for name, values in requests("0+1x600", "0+600x600").items()
    } | {name.replace('"vision"', '"speech"'): values for name, values in requests("0+1x600", "0+600x600").items()}
    promtool(tmp_path, spec(), mine | other, {"2h": {}})


def test_rollback_pages_at_once(tmp_path: Path) -> None:
    """A quarantined revision is an alert with revision and reason in its labels and a command in its words."""
    gauge = (
        'cuvil_model_quarantined{namespace="vision",model="resnet18",revision="r2",reason="LatencyBreached",pod="o"}'
    )
    rule_file(tmp_path, spec())
    labels = {
        "severity": "page", "namespace": "vision", "model": "resnet18", "revision": "r2", "reason": "LatencyBreached",
    }  # fmt: skip
    command = "kubectl -n vision get cuvilmodels.cuvil.dev resnet18 -o jsonpath='{.status.rollback}'"
    annotations = {
        "summary": "vision/resnet18: revision r2 was rolled back (LatencyBreached)",
        "description": f"See {command}. Change the spec, or order retry or clear-quarantine.",
    }
    expected = [{"exp_labels": labels, "exp_annotations": annotations}]
    test = {
        "interval": "1m",
        "input_series": [{"series": gauge, "values": "0x5 1x5 0x5"}],
        "alert_rule_test": [
            {"alertname": "CuvilRolledBack", "eval_time": "4m", "exp_alerts": []},
            {"alertname": "CuvilRolledBack", "eval_time": "6m", "exp_alerts": expected},
            {"alertname": "CuvilRolledBack", "eval_time": "14m", "exp_alerts": []},
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
    done = run("promtool", ["test", "rules", str(path)])
    assert done.returncode == 0, done.stdout + done.stderr


def test_stall_is_told_after_five_minutes(tmp_path: Path) -> None:
    """A model that stays Stalled is a ticket; one that is Stalled for a moment is not."""
    phase = 'cuvil_model_phase{namespace="vision",model="resnet18",phase="Stalled"}'
    promtool(tmp_path, spec(), {phase: "1x3 0x20"}, {"3m": {}, "20m": {}})
    promtool(tmp_path, spec(), {phase: "1x20"}, {"4m": {}, "6m": {"CuvilStalled": {("ticket", "")}}})
