"""What the kubelet and Prometheus are told over HTTP."""

import asyncio
import socket
from typing import Any

import aiohttp
import pytest

from cuvil_operator import lifecycle, settings
from cuvil_operator.gateways.protocols import ObjectStamp
from cuvil_operator.gateways.resources import CUVIL_MODELS, JOBS
from cuvil_operator.lifecycle import Process


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def environment() -> dict[str, str]:
    return {
        "CUVIL_COMPILER_IMAGE": "registry.example/compiler:1",
        "CUVIL_RUNTIME_IMAGE": "registry.example/runtime:1",
        "CUVIL_REPOSITORY": "registry.example/cuvil/artifacts",
        "CUVIL_PROMETHEUS_URL": "http://127.0.0.1:9",
        "CUVIL_NAMESPACE": "default",
        "CUVIL_IDENTITY": "test",
        "CUVIL_METRICS_PORT": str(free_port()),
        "CUVIL_HEALTH_PORT": str(free_port()),
    }


def serving(test: Any) -> None:
    """Run the test beside a process that has opened its doors and does nothing else."""

    async def run() -> None:
        found = settings.read(environment())
        process = Process(found)
        servers = await process._serve()

        async def get(port: int, path: str) -> tuple[int, str]:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()

        try:
            await test(process, found, get)
        finally:
            for server in servers:
                await server.cleanup()

    asyncio.run(run())


def test_a_dead_watch_fails_liveness_until_it_tells_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe names the watch that owes for longer than the grace, and is well again once it has paid."""
    monkeypatch.setattr(lifecycle, "WATCH_GRACE", 0.0)

    async def test(process: Process, found: settings.Settings, get: Any) -> None:
        assert await get(found.health_port, "/healthz") == (200, "ok")
        process._health.compare(JOBS, [ObjectStamp("ns", "j", "uid-j", "1", {})])
        status, said = await get(found.health_port, "/healthz")
        assert status == 503 and "the watch of jobs" in said
        told = {"metadata": {"namespace": "ns", "name": "j", "uid": "uid-j", "resourceVersion": "1"}}
        process._seen(JOBS, "MODIFIED", told)
        assert await get(found.health_port, "/healthz") == (200, "ok")

    serving(test)


def test_it_is_ready_once_the_api_server_has_answered() -> None:
    """Before that a rollout of the controller itself must not go on."""

    async def test(process: Process, found: settings.Settings, get: Any) -> None:
        status, said = await get(found.health_port, "/readyz")
        assert status == 503 and "has not answered yet" in said
        process._ready = True
        assert await get(found.health_port, "/readyz") == (200, "ok")

    serving(test)


def test_metrics_are_those_of_now() -> None:
    """A scrape shows how many keys wait at this moment."""

    async def test(process: Process, found: settings.Settings, get: Any) -> None:
        meta = {"namespace": "ns", "name": "m", "uid": "uid-m", "resourceVersion": "1"}
        process._seen(CUVIL_MODELS, "", {"metadata": meta})
        status, said = await get(found.metrics_port, "/metrics")
        assert status == 200 and "cuvil_operator_queue_depth 1.0" in said

    serving(test)
