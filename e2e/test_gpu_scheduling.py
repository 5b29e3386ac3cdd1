"""A GPU Job runs only where a node advertises the GPU: the real scheduler decides, on rendered documents."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.conventions import gpu_resource
from cuvil_operator.facts import Images, Platform, RunCompile
from cuvil_operator.render import Owner, compile_job
from e2e.stories.access import Access, reached, wait

pytestmark = pytest.mark.cluster
NAMESPACE = "cuvil-e2e-gpu"
RESOURCE = "nvidia.com/gpu"
PATIENCE_SECONDS = 60.0
MAJOR, MINOR = "nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor"
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
    if any(RESOURCE in node.status.allocatable for node in nodes(cluster)):
        pytest.fail(f"a node advertises {RESOURCE} already: use a cluster without GPUs for this test")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield cluster
    cluster.delete("v1", "Namespace", NAMESPACE)
    advertise(cluster, None)
    label(cluster, None, None)


def nodes(cluster: Access) -> list[Any]:
    """Give the nodes."""
    return list(client.CoreV1Api(cluster.api).list_node().items)


def advertise(cluster: Access, amount: str | None) -> None:
    """Make the first node advertise GPUs, as a device plugin does, or no longer."""
    name = nodes(cluster)[0].metadata.name
    body = {"status": {"capacity": {RESOURCE: amount}, "allocatable": {RESOURCE: amount}}}
    client.CoreV1Api(cluster.api).patch_node_status(name, body)


def label(cluster: Access, major: str | None, minor: str | None) -> None:
    """Label the first node with a compute capability, as feature discovery does, or no longer."""
    body = {"metadata": {"labels": {MAJOR: major, MINOR: minor}}}
    client.CoreV1Api(cluster.api).patch_node(nodes(cluster)[0].metadata.name, body)


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
