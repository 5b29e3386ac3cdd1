"""The real gateway's requests and its reading of refusals, against a scripted server."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient, Configuration

from cuvil_operator.conventions import EventKind
from cuvil_operator.gateways import failures, resources
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.kubernetes_api import ApiKubernetes
from cuvil_operator.gateways.limiter import RateLimiter
from cuvil_operator.gateways.protocols import EventNote
from cuvil_operator.gateways.transport import ApiTransport
from fake_clock import FakeClock
from scripted_http import Answer, ScriptedServer, scripted_server

MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "a"}}


def with_gateway(
    script: ScriptedServer, use: Callable[[ApiKubernetes], Awaitable[Any]], timeout: float = 5.0, **options: Any
) -> Any:
    async def run() -> Any:
        where = Configuration()
        where.host = script.url
        clock = FakeClock()
        transport = ApiTransport(ApiClient(where), timeout)
        fence = options.pop("fence", None) or Fence.open(clock)
        try:
            return await use(ApiKubernetes(transport, clock, fence, RateLimiter(clock, 10, 10), **options))
        finally:
            await transport.close()

    return asyncio.run(run())


REFUSALS = {
    "conflict": (409, failures.KubernetesConflict),
    "forbidden": (403, failures.KubernetesDenied),
    "unauthorized": (401, failures.KubernetesDenied),
    "invalid": (422, failures.KubernetesInvalid),
    "bad request": (400, failures.KubernetesInvalid),
    "too large": (413, failures.KubernetesInvalid),
    "too many": (429, failures.KubernetesUnavailable),
    "server fault": (500, failures.KubernetesUnavailable),
    "starting up": (503, failures.KubernetesUnavailable),
    "no such kind": (404, failures.KindMissing),
}


@pytest.mark.parametrize(("status", "kind"), REFUSALS.values(), ids=REFUSALS.keys())
def test_each_refusal_has_its_failure(status: int, kind: type[Exception]) -> None:
    """The status decides what the caller does; the server's words are kept."""
    with scripted_server() as script:
        script.answer = Answer(status, json.dumps({"message": "because of this"}).encode())
        with pytest.raises(kind, match="because of this"):
            with_gateway(script, lambda gateway: gateway.apply(MAP))
        assert len(script.asked) == 1


def test_the_servers_pause_is_read() -> None:
    """Retry-After of a 429 reaches the queue."""
    with scripted_server() as script:
        script.answer = Answer(429, b"{}", {"Retry-After": "7"})
        with pytest.raises(failures.KubernetesUnavailable) as caught:
            with_gateway(script, lambda gateway: gateway.apply(MAP))
    assert caught.value.retry_after == 7


def test_an_apply_is_a_forced_server_side_apply() -> None:
    """Method, content type, field manager and force are what server-side apply wants."""
    with scripted_server() as script:
        script.answer = Answer(200, json.dumps(MAP).encode())
        with_gateway(script, lambda gateway: gateway.apply(MAP))
        (asked,) = script.asked
    assert asked.method == "PATCH"
    assert asked.path == "/api/v1/namespaces/ns/configmaps/a?fieldManager=cuvil-operator&force=true"
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(asked.body) == MAP


def test_a_dry_run_asks_the_server_to_keep_nothing() -> None:
    """With dry_run each write carries dryRun=All."""
    with scripted_server() as script:
        script.answer = Answer(200, json.dumps(MAP).encode())
        with_gateway(script, lambda gateway: gateway.apply(MAP), dry_run=True)
        assert script.asked[0].path.endswith("&dryRun=All")


def test_a_silent_server_costs_the_timeout() -> None:
    """A request that hangs becomes unavailable within its time."""
    with scripted_server() as script:
        script.answer = Answer(hang=threading.Event())
        with pytest.raises(failures.KubernetesUnavailable, match=r"no answer within 0\.2 s"):
            with_gateway(script, lambda gateway: gateway.get(resources.CONFIG_MAPS, "ns", "a"), timeout=0.2)
        assert script.answer.hang is not None
        script.answer.hang.set()


def test_a_write_is_cut_at_the_lease_deadline() -> None:
    """A request that would outlive the Lease is ended with it."""
    with scripted_server() as script:
        script.answer = Answer(hang=threading.Event())
        with pytest.raises(failures.KubernetesUnavailable, match=r"no answer within 0\.6 s"):
            with_gateway(script, lambda gateway: gateway.apply(MAP), fence=Fence(FakeClock(), 0.6))
        assert script.answer.hang is not None
        script.answer.hang.set()


def test_a_server_that_is_away_is_unavailable() -> None:
    """A refused connection is one sentence."""
    with scripted_server() as script:
        pass
    with pytest.raises(failures.KubernetesUnavailable, match="cannot be reached"):
        with_gateway(script, lambda gateway: gateway.get(resources.CONFIG_MAPS, "ns", "a"))


def test_news_that_cannot_be_told_stops_nothing() -> None:
    """An Event that is refused is dropped, and told again next time."""
    note = EventNote(MAP, EventKind.NORMAL, "Promoted", "done")

    async def twice(gateway: ApiKubernetes) -> None:
        await gateway.emit(note)
        await gateway.emit(note)

    with scripted_server() as script:
        script.answer = Answer(403, b"{}")
        with_gateway(script, twice)
        assert len(script.asked) == 2


def test_writes_are_counted() -> None:
    """The meter hears kind, verb and success of each write."""
    heard: list[tuple[str, str, bool]] = []
    with scripted_server() as script:
        script.answer = Answer(200, json.dumps(MAP).encode())
        with_gateway(script, lambda gateway: gateway.apply(MAP), meter=lambda *told: heard.append(told))
    assert heard == [("ConfigMap", "apply", True)]


def test_a_kind_outside_the_table_is_refused() -> None:
    """The controller reaches only the kinds that its roles name."""
    with scripted_server() as script:
        with pytest.raises(failures.KubernetesInvalid, match="does not handle Secret"):
            with_gateway(script, lambda gateway: gateway.apply(MAP | {"kind": "Secret"}))
        assert script.asked == []
