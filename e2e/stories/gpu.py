"""A node that seems to have a GPU: its status and labels are patched, as a device plugin and feature discovery do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client

from e2e.stories.access import Access, StoryError

RESOURCE = "nvidia.com/gpu"
MAJOR, MINOR = "nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor"


@contextmanager
def no_gpu(access: Access) -> Iterator[None]:
    """A cluster without GPUs, as it is and as it is left; raises StoryError where a node advertises one."""
    if any(RESOURCE in node.status.allocatable for node in nodes(access)):
        raise StoryError(f"a node advertises {RESOURCE} already: use a cluster without GPUs for this")
    try:
        yield
    finally:
        advertise(access, None)
        label(access, None, None)


def nodes(access: Access) -> list[Any]:
    """Give the nodes."""
    return list(client.CoreV1Api(access.api).list_node().items)


def advertise(access: Access, amount: str | None) -> None:
    """Make the first node advertise GPUs, or no longer."""
    name = nodes(access)[0].metadata.name
    body = {"status": {"capacity": {RESOURCE: amount}, "allocatable": {RESOURCE: amount}}}
    client.CoreV1Api(access.api).patch_node_status(name, body)


def label(access: Access, major: str | None, minor: str | None) -> None:
    """Label the first node with a compute capability, or no longer."""
    body = {"metadata": {"labels": {MAJOR: major, MINOR: minor}}}
    client.CoreV1Api(access.api).patch_node(nodes(access)[0].metadata.name, body)
