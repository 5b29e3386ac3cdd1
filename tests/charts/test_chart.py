"""The Helm chart renders what was reviewed, asks for no more rights than needed, and refuses values with a reason."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cuvil_operator import settings
from cuvil_operator.gateways import resources
from cuvil_operator.gateways.protocols import Resource
from programs import run

pytestmark = pytest.mark.programs
ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/cuvil"
NEEDED = {
    "images.operator": "registry.example.com/cuvil/operator@sha256:" + "0" * 64,
    "images.compiler": "registry.example.com/cuvil/compiler@sha256:" + "1" * 64,
    "images.runtime": "registry.example.com/cuvil/runtime@sha256:" + "2" * 64,
    "artifacts.repository": "registry.example.com:5000/cuvil/artifacts",
    "prometheus.url": "http://prometheus.monitoring:9090",
}
FULL = """
replicas: 2
watchNamespaces: [vision, speech]
images: {pullPolicy: Always, pullSecrets: [pull]}
artifacts: {insecure: true, secretName: registry, shareAcrossNamespaces: true}
models: {allowedHosts: [models.example.com], maxBytes: 1048576}
leaderElection: {leaseName: cuvil-main}
operator: {logLevel: debug}
serviceAccount: {annotations: {example.com/role: cuvil}}
nodeSelector: {pool: control}
tolerations: [{key: control, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: system-cluster-critical
podAnnotations: {example.com/a: b}
podLabels: {team: ml}
monitoring:
  podMonitor: {interval: 1s, labels: {release: main}}
  rules: {labels: {release: main}}
"""


def helm(values: dict[str, str], *more: str) -> Any:
    """Run `helm template` with values by --set-string."""
    sets = [part for key, value in values.items() for part in ("--set-string", f"{key}={value}")]
    base = ["template", "cuvil", str(CHART), "--namespace", "cuvil-system", "--kube-version", "1.34.4"]
    return run("helm", [*base, *sets, *more])


def documents(values: dict[str, str], *more: str) -> list[dict[str, Any]]:
    """Give the rendered documents."""
    done = helm(values, *more)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


@pytest.fixture
def full(tmp_path: Path) -> list[str]:
    """Give arguments for values that use every part of the chart."""
    path = tmp_path / "full.yaml"
    path.write_text(FULL)
    return ["--values", str(path)]


def test_golden_default(golden: Callable[[str, str], None]) -> None:
    """With the needed values alone, the chart is word for word what was reviewed."""
    golden("default.yaml", helm(NEEDED).stdout)


def test_golden_full(golden: Callable[[str, str], None], full: list[str]) -> None:
    """With every value set, the chart is word for word what was reviewed."""
    golden("full.yaml", helm(NEEDED, *full).stdout)


@pytest.mark.parametrize("missing", NEEDED)
def test_missing_value_is_named(missing: str) -> None:
    """A value that must be set is named in one sentence with what to write."""
    done = helm({key: value for key, value in NEEDED.items() if key != missing})
    assert done.returncode != 0 and f"{missing} is not set; give " in done.stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("artifacts.repository", "https://registry.example.com/a"),
        ("artifacts.repository", "registry.example.com/a:tag"),
        ("prometheus.url", "prometheus:9090"),
        ("replicas", "3"),
        ("operator.logLevel", "chatty"),
        ("image.operator", "a"),
        ("watchNamespaces[0]", "My_Space"),
    ],
)
def test_bad_value_is_refused(key: str, value: str) -> None:
    """The values' schema refuses what the operator could not start with, and unknown keys."""
    sets = ["--set", f"{key}={value}"]
    done = helm({name: one for name, one in NEEDED.items() if name != key}, *sets)
    assert done.returncode != 0 and "values don't meet the specifications of the schema" in done.stderr


def container(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the operator's container."""
    (deployment,) = [one for one in found if one["kind"] == "Deployment"]
    return dict(deployment["spec"]["template"]["spec"]["containers"][0])


@pytest.mark.parametrize("more", [False, True], ids=["default", "full"])
def test_operator_reads_what_the_chart_sets(full: list[str], more: bool) -> None:
    """The environment that the chart writes is one that the operator starts with, and no variable goes unread."""
    env = container(documents(NEEDED, *(full if more else [])))["env"]
    environment = {one["name"]: one.get("value", "from-the-pod") for one in env}
    found = settings.read(environment)
    assert found.platform.repository == NEEDED["artifacts.repository"]
    assert found.namespaces == (("vision", "speech") if more else ())
    assert found.platform.registry_secret == ("registry" if more else "")
    read = set(re.findall(r'text\.\w+\("([A-Z_]+)"', (ROOT / "operator/cuvil_operator/settings.py").read_text()))
    assert {name.removeprefix("CUVIL_") for name in environment if name != "USER"} == read


def test_operator_pod_meets_the_restricted_profile(full: list[str]) -> None:
    """A namespace that enforces restricted pod security admits the operator."""
    for found in (documents(NEEDED), documents(NEEDED, *full)):
        (deployment,) = [one for one in found if one["kind"] == "Deployment"]
        pod = deployment["spec"]["template"]["spec"]
        security = container(found)["securityContext"]
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}


def granted(found: list[dict[str, Any]]) -> dict[tuple[str, str], set[str]]:
    """Give the verbs by API group and resource, over all roles."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for role in (one for one in found if one["kind"] in ("Role", "ClusterRole")):
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    verbs.setdefault((group, resource), set()).update(rule["verbs"])
    return verbs


def test_rights_are_those_of_the_gateways() -> None:
    """Every kind that the gateways reach has rights, no other has; no wildcard, no Secret, no escalation."""
    verbs = granted(documents(NEEDED))
    kinds: set[tuple[str, str]] = {(one.group, one.plural) for one in resources.RESOURCES}
    model: Resource = resources.CUVIL_MODELS
    of_models = {(model.group, f"{model.plural}/{part}") for part in ("status", "finalizers")}
    assert set(verbs) == kinds | of_models
    assert not [one for one in verbs.values() if "*" in one or one & {"escalate", "bind", "impersonate"}]
    assert verbs["", "pods"] == {"get", "list", "watch"} and verbs["", "nodes"] == {"list"}
    assert verbs[model.group, model.plural] == {"get", "list", "watch"}


def test_namespaced_operator_has_no_rights_elsewhere(full: list[str]) -> None:
    """With watchNamespaces only reading nodes is cluster-wide; all else is a Role in each namespace."""
    found = documents(NEEDED, *full)
    (cluster,) = [one for one in found if one["kind"] == "ClusterRole"]
    assert cluster["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    roles = {one["metadata"]["namespace"] for one in found if one["kind"] == "Role"}
    assert roles == {"cuvil-system", "vision", "speech"}


def test_monitoring_can_be_left_out() -> None:
    """A cluster without prometheus-operator can have the chart, with no kind of its CRDs."""
    found = documents(NEEDED, "--set", "monitoring.podMonitor.enabled=false,monitoring.rules.enabled=false")
    assert not [one for one in found if one["apiVersion"].startswith("monitoring.coreos.com")]


def test_operator_rules_are_sound(tmp_path: Path, full: list[str]) -> None:
    """promtool accepts the alerts on the operator itself."""
    (rule,) = [one for one in documents(NEEDED, *full) if one["kind"] == "PrometheusRule"]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rule["spec"]))
    done = run("promtool", ["check", "rules", "--lint=all", "--lint-fatal", str(path)])
    assert done.returncode == 0, done.stdout + done.stderr


def test_operator_alerts_fire_and_keep_still() -> None:
    """Each alert on the operator fires on its fault, and none does on a healthy operator."""
    done = run("promtool", ["test", "rules", str(ROOT / "tests/charts/operator-rules-test.yaml")])
    assert done.returncode == 0, done.stdout + done.stderr
