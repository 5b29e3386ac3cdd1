"""The documents as golden text, and the promises that hold for each of them."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from cuvil_core.contract import ServingSettings
from cuvil_core.errors import MissingError
from cuvil_core.fetching import fetch
from cuvil_operator import conventions as names
from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.errors import GiveUpError
from cuvil_operator.facts import (
    Images,
    Platform,
    RevisionRecord,
    RunCompile,
    RunResolve,
    RunValidate,
    ServingRecord,
)
from cuvil_operator.render import (
    Document,
    Owner,
    compile_job,
    config_map,
    pod_monitor,
    prometheus_rule,
    resolve_job,
    traffic_split,
    validate_job,
    workload,
)

OWNER = Owner("resnet18", "vision", "7d2c1f0a-0000-4000-8000-000000000001")
IMAGES = Images(
    "registry.example.com/cuvil/compiler@sha256:" + "1" * 64, "registry.example.com/cuvil/runtime@sha256:" + "2" * 64
)
PLATFORM = Platform(
    IMAGES, "registry.example.com:5000/cuvil/artifacts", insecure_registry=True, registry_secret="registry"
)
RAW: dict[str, Any] = {
    "model": {
        "uri": "https://models.example.com/resnet18.onnx",
        "secretRef": {"name": "models-reader"},
        "sha256": "a" * 64,
        "inputs": [{"name": "x", "shape": ["N", 3, 224, 224], "bounds": {"N": {"min": 1, "max": 32}}}],
    },
    "target": "x86_64-cpu",
    "accuracy": {"rtol": "1e-3", "atol": "1e-4", "goldenUri": "https://models.example.com/golden.npz"},
    "compile": {
        "nodeSelector": {"pool": "build"},
        "timeout": "90s",
        "resources": {"limits": {"cpu": 2, "memory": "4Gi"}},
    },
    "serving": {
        "replicas": 2,
        "serviceAccountName": "vision",
        "tolerations": [{"key": "pool", "operator": "Equal", "value": "serve", "effect": "NoSchedule"}],
        "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
    },
    "slo": {"errorRate": "0.5%", "latency": {"threshold": "800ms"}},
    "rollout": {
        "traffic": {
            "gateway": {"name": "public", "namespace": "infra", "sectionName": "web"},
            "hostnames": ["resnet18.example.com"],
        }
    },
}
SPEC = CuvilModelSpec.from_dict(RAW)
GPU_SPEC = CuvilModelSpec.from_dict(RAW | {"target": "cuda-sm_90"})
TINY_SPEC = CuvilModelSpec.from_dict(RAW | {"model": {"uri": "configmap://tiny/model.onnx"}})
KEY = "c0ffee" * 10 + "beef"
RECORD = RevisionRecord(
    model="resnet18",
    revision="0123456789ab",
    fingerprint="f" * 64,
    target="x86_64-cpu",
    model_sha256="a" * 64,
    compile_key=KEY,
    validation_key="d" * 64,
    artifact="registry.example.com:5000/cuvil/artifacts@sha256:" + "3" * 64,
    artifact_sha256="4" * 64,
    artifact_size=46_000_000,
    threshold_seconds=0.8,
    images=IMAGES,
    serving=ServingRecord(True, "vision", {"pool": "serve"}, SPEC.serving.tolerations, SPEC.serving.resources),
    facts={"inputs": ["x"]},
)
COMPILE = RunCompile(KEY, "a" * 64, IMAGES.compiler)
VALIDATE = RunValidate("d" * 64, "a" * 64, RECORD.artifact, "4" * 64, IMAGES.compiler, RECORD.artifact, "4" * 64)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

DOCUMENTS: dict[str, tuple[Document, ...]] = {
    "resolve": (resolve_job(OWNER, SPEC, PLATFORM, RunResolve("e" * 64)),),
    "compile": (compile_job(OWNER, SPEC, PLATFORM, COMPILE),),
    "compile-gpu": (compile_job(OWNER, GPU_SPEC, PLATFORM, replace(COMPILE, gpu_resource="nvidia.com/gpu")),),
    "compile-from-configmap": (compile_job(OWNER, TINY_SPEC, PLATFORM, COMPILE),),
    "validate": (validate_job(OWNER, SPEC, PLATFORM, VALIDATE),),
    "revision": (config_map(OWNER, RECORD, insecure_registry=True),),
    "workload": workload(OWNER, RECORD, 2, NOON, registry_secret="registry"),
    "workload-gpu": workload(OWNER, replace(RECORD, target="rocm-gfx942"), 1),
    "traffic-gateway": traffic_split(SPEC).documents(OWNER, (("0123456789ab", 95), ("ba9876543210", 5))),
    "traffic-pods": traffic_split(replace(SPEC, rollout=replace(SPEC.rollout, traffic=None))).documents(
        OWNER, (("0123456789ab", 50), ("ba9876543210", 50))
    ),
    "monitoring": (pod_monitor(OWNER, SPEC), prometheus_rule(OWNER, SPEC)),
}
ALL = [(name, one) for name, many in DOCUMENTS.items() for one in many]
IDS = [f"{name}-{one['kind']}" for name, one in ALL]
POD_KINDS = ("Job", "Deployment")


class _Quoting(yaml.SafeDumper):
    """Quotes texts that YAML 1.2 reads as numbers though PyYAML does not: 1e-3."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    number = re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", value)
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'" if number else None)


_Quoting.add_representer(str, _text)


def walk(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Give every value inside a document with its path."""
    yield where, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, f"{where}.{key}")
    if isinstance(value, list):
        for at, inner in enumerate(value):
            yield from walk(inner, f"{where}[{at}]")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    """Each document is word for word what was reviewed."""
    golden(
        f"{name}.yaml",
        yaml.dump_all(json.loads(json.dumps(DOCUMENTS[name])), Dumper=_Quoting, sort_keys=False, width=118),
    )


@pytest.mark.parametrize(("name", "one"), ALL, ids=IDS)
def test_owned_and_without_nulls(name: str, one: Document) -> None:
    """Every document goes with its CuvilModel, and server-side apply can compare it field by field."""
    meta = one["metadata"]
    assert [owner["uid"] for owner in meta["ownerReferences"]] == [OWNER.uid]
    assert meta["namespace"] == OWNER.namespace and len(meta["name"]) <= 63
    assert meta["labels"][names.LABEL_MANAGED_BY] == names.MANAGED_BY
    assert all(len(value) <= 63 for value in meta["labels"].values())
    assert not [where for where, value in walk(one) if value is None]
    assert json.loads(json.dumps(one)) == one


@pytest.mark.parametrize("one", [one for _, one in ALL if one["kind"] in POD_KINDS], ids=lambda one: str(one["kind"]))
def test_pods_meet_the_restricted_profile(one: Document) -> None:
    """A namespace that enforces restricted pod security admits every pod, and no pod carries an API token."""
    pod = one["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {
        "type": "RuntimeDefault"
    }
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]} and security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    allowed = {"emptyDir", "configMap", "secret", "name"}
    assert all(set(volume) <= allowed for volume in pod["volumes"])
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    pointed = {entry["value"] for entry in container["env"] if entry["name"] in ("HOME", "TMPDIR")}
    assert pointed <= writable


@pytest.mark.parametrize("name", ["resolve", "compile", "validate"])
def test_jobs_are_tried_once_and_end(name: str) -> None:
    """The operator alone decides on another try, and no Job outlives its deadline."""
    spec = DOCUMENTS[name][0]["spec"]
    assert spec["backoffLimit"] == 0 and spec["activeDeadlineSeconds"] > 0 and "ttlSecondsAfterFinished" not in spec


def test_no_secret_stands_on_a_command_line() -> None:
    """Credentials are files: a process list shows nothing of them."""
    container = DOCUMENTS["compile"][0]["spec"]["template"]["spec"]["containers"][0]
    folders = {entry["value"] for entry in container["env"] if entry["name"].endswith("CREDENTIALS_DIR")}
    assert folders == {"/var/run/cuvil/credentials", "/var/run/cuvil/registry"}
    assert not [word for word in container["args"] if "token" in word or "password" in word]


@pytest.mark.parametrize(("name", "one"), ALL, ids=IDS)
def test_what_users_make_never_holds_a_pod(name: str, one: Document) -> None:
    """A pod starts without the Secrets and ConfigMaps of people, so that its command can name what is missing."""
    if one["kind"] not in POD_KINDS:
        return
    volumes = one["spec"]["template"]["spec"]["volumes"]
    theirs = [volume[kind] for volume in volumes for kind in ("secret", "configMap") if kind in volume]
    own = names.revision_name(RECORD.model, RECORD.revision)
    assert all(source.get("optional") is True for source in theirs if source.get("name") != own)


CONFIG_MAP_JOBS = {
    "resolve": resolve_job(OWNER, TINY_SPEC, PLATFORM, RunResolve("e" * 64)),
    "compile": compile_job(OWNER, TINY_SPEC, PLATFORM, COMPILE),
    "validate": validate_job(OWNER, TINY_SPEC, PLATFORM, VALIDATE),
}


@pytest.mark.parametrize("job", CONFIG_MAP_JOBS.values(), ids=CONFIG_MAP_JOBS)
def test_a_missing_config_map_is_named(job: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the ConfigMap, or without its key, the command says in one sentence which of them it lacks."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    [mount] = [one for one in container["volumeMounts"] if one["name"] == "model"]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    [uri] = [one for one in container["args"] if one.startswith("file://")]
    assert mount["mountPath"] == f"{env['CUVIL_CONFIG_MAPS_DIR']}/tiny"
    monkeypatch.setenv("CUVIL_CONFIG_MAPS_DIR", str(tmp_path))
    uri = uri.replace(env["CUVIL_CONFIG_MAPS_DIR"], str(tmp_path))
    folder, target = tmp_path / "tiny", tmp_path / "got"
    folder.mkdir()
    (folder / "..data").mkdir()
    with pytest.raises(MissingError, match=r"ConfigMap tiny is not there.* create it with the key model.onnx"):
        fetch(uri, target, max_bytes=100)
    (folder / "other.onnx").write_bytes(b"x")
    with pytest.raises(MissingError, match=r"ConfigMap tiny has no key model.onnx, only other.onnx; add it or correct"):
        fetch(uri, target, max_bytes=100)
    (folder / "model.onnx").write_bytes(b"model")
    assert fetch(uri, target, max_bytes=100).size == 5


def test_allowed_hosts_hold_within_jobs() -> None:
    """A redirect cannot leave the allowed hosts, and the artifact registry is always among them."""
    job = resolve_job(OWNER, SPEC, replace(PLATFORM, allowed_hosts=("models.example.com",)), RunResolve("e" * 64))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert env["CUVIL_ALLOWED_HOSTS"] == "models.example.com,registry.example.com"
    assert env["CUVIL_INSECURE_REGISTRIES"] == "registry.example.com:5000"
    assert "CUVIL_ALLOWED_HOSTS" not in str(DOCUMENTS["resolve"])


def test_compile_job_is_nobodys_alone() -> None:
    """Equal keys of two models render one name and equal labels, and neither claims to be the one controller."""
    other = compile_job(replace(OWNER, name="other", uid="2"), SPEC, PLATFORM, COMPILE)
    mine = DOCUMENTS["compile"][0]
    assert other["metadata"]["name"] == mine["metadata"]["name"]
    assert other["metadata"]["labels"] == mine["metadata"]["labels"] and other["spec"] == mine["spec"]
    assert "controller" not in mine["metadata"]["ownerReferences"][0]


def test_job_pods_are_selected_by_no_service() -> None:
    """A Job's pod never gets requests: it lacks a label that every Service selects."""
    job_labels = DOCUMENTS["validate"][0]["spec"]["template"]["metadata"]["labels"]
    for one in (*DOCUMENTS["workload"], *DOCUMENTS["traffic-pods"]):
        if one["kind"] == "Service":
            assert not one["spec"]["selector"].items() <= job_labels.items()


def test_services_select_the_deployments_pods() -> None:
    """Entry, revision Service, budget and PodMonitor meet the labels that the Deployment gives its pods."""
    service, deployment, budget = DOCUMENTS["workload"]
    pod = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod
    assert service["spec"]["selector"].items() <= pod
    assert budget["spec"]["selector"]["matchLabels"].items() <= pod
    assert DOCUMENTS["traffic-pods"][0]["spec"]["selector"].items() <= pod
    assert DOCUMENTS["monitoring"][0]["spec"]["selector"]["matchLabels"].items() <= pod


def test_serving_settings_are_readable_by_the_runtime() -> None:
    """What the ConfigMap holds is what the serving pod reads."""
    data = DOCUMENTS["revision"][0]["data"]
    settings = ServingSettings.from_json(data[names.SERVING_KEY])
    assert (settings.model, settings.revision, settings.threshold_seconds) == ("resnet18", "0123456789ab", 0.8)
    assert settings.insecure_registry and settings.reject_non_finite
    assert RevisionRecord.from_json(data[names.RECORD_KEY]) == RECORD
    assert DOCUMENTS["revision"][0]["immutable"] is True


def test_record_too_large_is_refused() -> None:
    """A ConfigMap that etcd would refuse is refused before, with a cure."""
    with pytest.raises(GiveUpError, match="give the model fewer inputs"):
        config_map(OWNER, replace(RECORD, facts={"inputs": ["x" * (256 << 10)]}))


def test_one_revision_pins_the_service() -> None:
    """By pod count the Service names the one live revision; with two it is open to both."""
    split = traffic_split(replace(SPEC, rollout=replace(SPEC.rollout, traffic=None)))
    (alone,) = split.documents(OWNER, (("0123456789ab", 100), ("ba9876543210", 0)))
    assert alone["spec"]["selector"][names.LABEL_REVISION] == "0123456789ab"
    (both,) = split.documents(OWNER, (("0123456789ab", 99), ("ba9876543210", 1)))
    assert names.LABEL_REVISION not in both["spec"]["selector"]


def test_route_names_no_revision_without_weight() -> None:
    """A canary at 0 is out of the route, so that its Service can go."""
    _, route = traffic_split(SPEC).documents(OWNER, (("0123456789ab", 100), ("ba9876543210", 0)))
    (rule,) = route["spec"]["rules"]
    assert [(ref["name"], ref["weight"]) for ref in rule["backendRefs"]] == [("resnet18-0123456789ab", 100)]


@pytest.mark.parametrize("weights", [(("a", 90), ("b", 9)), (), (("a", 100), ("b", 100))])
def test_weights_sum_to_a_hundred(weights: tuple[tuple[str, int], ...]) -> None:
    """No document ever sends a part of the requests nowhere."""
    with pytest.raises(ValueError, match="do not sum to 100"):
        traffic_split(SPEC).documents(OWNER, weights)


def test_gpu_pods_ask_for_the_gpu() -> None:
    """A GPU Job requests the resource, tolerates its taint and shuns nodes known to be of another capability."""
    pod = DOCUMENTS["compile-gpu"][0]["spec"]["template"]["spec"]
    resources = pod["containers"][0]["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["9"] and terms[0]["matchExpressions"][1]["values"] == ["0"]


def test_limits_are_never_below_default_requests() -> None:
    """A limit alone brings no default request beside it, which could exceed the limit."""
    spec = CuvilModelSpec.from_dict(RAW | {"compile": {"resources": {"limits": {"memory": "64Mi"}}}})
    job = compile_job(OWNER, spec, PLATFORM, COMPILE)
    assert "memory" not in job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]


def test_scrapes_are_twice_as_often_as_looks() -> None:
    """The scrape interval is at most half the analysis interval, and its timeout no longer than itself."""
    (endpoint,) = DOCUMENTS["monitoring"][0]["spec"]["podMetricsEndpoints"]
    assert endpoint["interval"] == endpoint["scrapeTimeout"] == "7s500ms"
