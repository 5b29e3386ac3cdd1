"""The API server itself refuses each bad spec with its sentence, and accepts the good ones and every rendered document.

Runs against the cluster of `make e2e`, of $KUBECONFIG, or the embedded one; nothing is stored but the CRD.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cuvil_operator.api import CuvilModelSpec
from e2e.cluster import settings
from e2e.cluster.programs import Programs
from e2e.stories.access import Access, reached, wait

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[1]
SPECS = yaml.safe_load((ROOT / "tests/crds/specs.yaml").read_text())
GOLDEN = sorted((ROOT / "tests/cuvil_operator/render/golden").glob("*.yaml"))
NAMESPACE = "cuvil-e2e-specs"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "cuvilmodels.cuvil.dev")
PATIENCE_SECONDS = 60.0
SPREAD_SECONDS = 3.0
"""A changed schema takes this long to be in force; the API server does not tell when it is."""


@pytest.fixture(scope="module")
def access() -> Iterator[Access]:
    """Give the cluster with the CRD of this tree and an own namespace."""
    cluster = reached()
    before = cluster.get(*CRD)
    after = cluster.apply(yaml.safe_load((ROOT / "crds/cuvilmodel.yaml").read_text()))
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    if before is None or before["metadata"]["generation"] != after["metadata"]["generation"]:
        time.sleep(SPREAD_SECONDS)
    wait("the API server to serve CuvilModels", lambda: admitted(cluster, "first", SPECS["least"]), PATIENCE_SECONDS)
    yield cluster
    cluster.delete("v1", "Namespace", NAMESPACE)


def merge(base: Any, patch: Any) -> Any:
    """Lay a JSON merge patch over a value."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        merged[key] = merge(merged.get(key), value)
        if value is None:
            del merged[key]
    return merged


def admitted(cluster: Access, name: str, spec: Any) -> dict[str, Any]:
    """Give the object as the API server would store it; raises ApiException where it refuses."""
    body = {"apiVersion": "cuvil.dev/v1alpha1", "kind": "CuvilModel", "metadata": {"name": name}, "spec": spec}
    where = ("cuvil.dev", "v1alpha1", NAMESPACE, "cuvilmodels")
    custom = client.CustomObjectsApi(cluster.api)
    return dict(custom.create_namespaced_custom_object(*where, body, dry_run="All", field_validation="Strict"))


def refusal(cluster: Access, name: str, spec: Any) -> str:
    """Give the sentence of the refusal, without the words that Kubernetes puts before each rule's message."""
    with pytest.raises(ApiException) as refused:
        admitted(cluster, name, spec)
    said = str(json.loads(refused.value.body)["message"])
    said = re.sub(r'Invalid value: "(?:string|object|array|integer)": (?!spec)', "Invalid value: ", said)
    return re.sub(r", <nil>: Invalid value: null: some validation rules were not checked[^\]]*", "", said)


@pytest.mark.parametrize("name", SPECS["good"])
def test_good_spec_is_accepted(access: Access, name: str) -> None:
    """A spec that the documents promise is admitted, with strict field validation."""
    stored = admitted(access, "good", merge(SPECS["least"], SPECS["good"][name]))
    assert stored["spec"]["rollout"]["analysis"]["onNoData"], "defaults were not filled in"


def test_example_is_accepted(access: Access) -> None:
    """The example of the documents is admitted as kubectl reads it, with strict field validation."""
    text = (ROOT / "examples/cuvilmodel.yaml").read_text().replace("namespace: vision", f"namespace: {NAMESPACE}")
    given = (("--kubeconfig", access.kubeconfig), ("--context", access.context))
    where = [part for flag, value in given if value for part in (flag, value)]
    kubectl = shutil.which("kubectl") or str(Programs(settings.from_environment().programs).path("kubectl"))
    command = [kubectl, *where, "apply", "--dry-run=server", "--validate=strict", "-f", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SPECS["bad"])
def test_bad_spec_is_refused_with_its_sentence(access: Access, name: str) -> None:
    """A bad spec is refused, its own sentence says what to change, and no other rule complains beside it."""
    case = SPECS["bad"][name]
    said = refusal(access, case.get("name", "bad"), merge(SPECS["least"], case["patch"]))
    assert case["sentence"] in said
    assert said.count("Invalid value") <= 1 or "in body must be" in said, said


def test_least_spec_gets_the_documented_defaults(access: Access) -> None:
    """The defaults that the API server fills in are those that the operator reads."""
    stored = admitted(access, "least", SPECS["least"])
    assert stored["spec"] == CuvilModelSpec.from_dict(SPECS["least"]).to_dict()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: str(path.stem))
def test_rendered_documents_are_accepted(access: Access, path: Path) -> None:
    """Every document that the operator renders is a valid server-side apply."""
    for one in yaml.safe_load_all(path.read_text()):
        one["metadata"]["namespace"] = NAMESPACE
        resource = access.resource(one["kind"], one["apiVersion"])
        access.dynamic.server_side_apply(
            resource,
            body=one,
            name=one["metadata"]["name"],
            namespace=NAMESPACE,
            field_manager="cuvil-operator",
            dry_run="All",
            query_params=[("fieldValidation", "Strict")],
        )
