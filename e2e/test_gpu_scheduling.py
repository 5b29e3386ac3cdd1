"""A GPU Job runs only where a node advertises the GPU: the real scheduler decides, on rendered documents."""

from collections.abc import Iterator

import pytest
from kubernetes import client

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.conventions import gpu_resource
from cuvil_operator.facts import Images, Platform, RunCompile
from cuvil_operator.render import Owner, compile_job
from e2e.stories.access import Access, reached, wait
from e2e.stories.gpu import RESOURCE, advertise, label, no_gpu

pytestmark = pytest.mark.cluster
NAMESPACE = "cuvil-e2e-gpu"
PATIENCE_SECONDS = 60.0
IMAGES = Images("compiler.invalid/cuvil:1", "runtime.invalid/cuvil:1")
SPEC = CuvilModelSpec.from_dict(
    {
        "model": {"uri": "https://models.example.com/a.onnx"},
        "target": "cuda-sm_90",
        "slo": {"latency": {"threshold": "800ms"}},
    }
)


@pytest.fixture
def access() -> Iterator[Access]:
    """Give the cluster with an own namespace and a node that advertises no GPU."""
    cluster = reached()
    with no_gpu(cluster):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield cluster
        cluster.delete("v1", "Namespace", NAMESPACE)


def scheduled(cluster: Access) -> tuple[str, str]:
    """Give status and message of the Job's pod's PodScheduled; empty while there is no pod."""
    for pod in client.CoreV1Api(cluster.api).list_namespaced_pod(NAMESPACE).items:
        for one in pod.status.conditions or ():
            if one.type == "PodScheduled":
                return one.status, one.message or ""
    return "", ""


def test_gpu_job_waits_for_a_fitting_gpu(access: Access) -> None:
    """The Job waits while no node has the GPU, while the GPU is of another capability, and is placed once it fits."""
    owner = client.CoreV1Api(access.api).read_namespace(NAMESPACE)
    platform = Platform(IMAGES, "registry.invalid/cuvil/artifacts")
    wanted = RunCompile("c0ffee" * 10 + "beef", "a" * 64, IMAGES.compiler, gpu_resource(SPEC.target))
    job = compile_job(Owner("a", NAMESPACE, owner.metadata.uid), SPEC, platform, wanted)
    # the CuvilModel itself is not part of this test
    del job["metadata"]["ownerReferences"]
    access.apply(job)
    wait("the pod to wait for a GPU", lambda: f"Insufficient {RESOURCE}" in scheduled(access)[1], PATIENCE_SECONDS)
    label(access, "8", "0")
    advertise(access, "1")
    what = "the pod to shun a GPU of another capability"
    wait(what, lambda: "didn't match Pod's node affinity" in scheduled(access)[1], PATIENCE_SECONDS)
    label(access, "9", "0")
    wait("the pod to be placed", lambda: scheduled(access)[0] == "True", PATIENCE_SECONDS)
