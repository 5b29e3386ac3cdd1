"""The API server keeps the contract that the controller's fake Kubernetes is held to."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

import kubernetes_contract as contract
from cuvil_operator.gateways.clock import SystemClock
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.kubernetes_api import ApiKubernetes
from cuvil_operator.gateways.limiter import RateLimiter
from cuvil_operator.gateways.protocols import Document
from cuvil_operator.gateways.resources import path_of, resource_of
from cuvil_operator.gateways.transport import ApiTransport
from e2e.stories.access import reached

pytestmark = pytest.mark.cluster


async def client() -> ApiClient:
    """Connect to the cluster that `make e2e` names, that of $KUBECONFIG, or the embedded one."""
    where, found = reached(), Configuration()
    await config.load_kube_config(config_file=where.kubeconfig, context=where.context, client_configuration=found)
    return ApiClient(found)


@asynccontextmanager
async def real_world() -> AsyncIterator[contract.World]:
    """A namespace of its own, deleted at the end."""
    clock, namespace = SystemClock(), f"contract-{uuid.uuid4().hex[:8]}"
    transport, fence = ApiTransport(await client()), Fence.open(clock)

    def fresh() -> ApiKubernetes:
        return ApiKubernetes(transport, clock, fence, RateLimiter(clock, 50, 50))

    async def as_other(document: Document) -> Any:
        meta = document["metadata"]
        path = path_of(resource_of(document), meta["namespace"], meta["name"])
        query = [("fieldManager", "somebody-else"), ("force", "true")]
        return await transport.request("PATCH", path, query, document, "application/apply-patch+yaml")

    async def eventually(condition: contract.Condition) -> None:
        until = time.monotonic() + 60
        while not await condition():
            assert time.monotonic() < until, "not true within 60 s"
            await asyncio.sleep(0.5)

    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await transport.request("POST", "/api/v1/namespaces", body=space)
    try:
        yield contract.World(namespace, fresh(), fence, fresh, as_other, eventually)
    finally:
        await transport.request("DELETE", f"/api/v1/namespaces/{namespace}")
        await transport.close()


@pytest.mark.parametrize("check", contract.CHECKS, ids=contract.NAMES)
def test_the_api_server_keeps_the_contract(check: Any) -> None:
    """The real API server does what the check's docstring says."""

    async def run() -> None:
        async with real_world() as world:
            await check(world)

    asyncio.run(run())
