"""kopf as a watcher: what it tells, what it survives, and that it writes nothing."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from cuvil_operator import handlers
from cuvil_operator.gateways.connect import Access, access
from cuvil_operator.gateways.protocols import Document, Resource
from cuvil_operator.gateways.resources import CUVIL_MODELS, JOBS
from cuvil_operator.handlers import Watch, Watcher
from watch_server import WatchServer, watch_server

LABEL = "app.kubernetes.io/managed-by=cuvil-operator"
Told = tuple[str, str, str]


class Ear:
    """Keeps what the watcher tells, and waits for it."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self._heard = asyncio.Event()

    def __call__(self, resource: Resource, event: str, document: Document) -> None:
        self.told.append((resource.kind, event, document["metadata"]["name"]))
        self._heard.set()

    async def until(self, *wanted: Told) -> None:
        """Return when all of these were told; TimeoutError after 60 s."""
        async with asyncio.timeout(60):
            while not set(wanted) <= set(self.told):
                self._heard.clear()
                await self._heard.wait()


Test = Callable[[WatchServer, Watcher, Ear], Awaitable[None]]


def watching(
    test: Test, folder: Path, monkeypatch: pytest.MonkeyPatch, namespaces: tuple[str, ...] = ()
) -> WatchServer:
    """Run the test beside a server with one model, and a watcher that has told of it."""

    async def run() -> WatchServer:
        async with watch_server([CUVIL_MODELS, JOBS], folder) as (server, config):
            monkeypatch.setenv("KUBECONFIG", str(config))
            server.put(CUVIL_MODELS, "m")
            ear = Ear()
            watcher = Watcher([Watch(CUVIL_MODELS), Watch(JOBS, LABEL)], namespaces, ear)
            watcher.start()
            await ear.until(("CuvilModel", "", "m"))
            await until(lambda: server.watches == 2)
            try:
                await test(server, watcher, ear)
            finally:
                watcher.stop()
                async with asyncio.timeout(60):
                    await watcher.ended
            return server

    server = asyncio.run(run())
    # What kopf left in cycles is finalized here: in the midst of a later parse it would trip CPython 3.11 (gh-106905).
    gc.collect()
    return server


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds; TimeoutError after 60 s."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def test_events_reach_the_main_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Additions, changes and deletions of every watched kind are told once they happen."""

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        server.put(JOBS, "j")
        await ear.until(("Job", "ADDED", "j"))
        server.put(CUVIL_MODELS, "m")
        await ear.until(("CuvilModel", "MODIFIED", "m"))
        server.remove(JOBS, "j")
        await ear.until(("Job", "DELETED", "j"))

    watching(test, tmp_path, monkeypatch)


def test_kopf_only_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No finalizer, no annotation, no Event: over a whole life there is not one request that writes."""

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        server.put(CUVIL_MODELS, "m", labels={"a": "b"})
        await ear.until(("CuvilModel", "MODIFIED", "m"))
        server.remove(CUVIL_MODELS, "m")
        await ear.until(("CuvilModel", "DELETED", "m"))

    server = watching(test, tmp_path, monkeypatch)
    assert {method for method, _ in server.asked} == {"GET"}


def test_children_are_selected_by_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are listed and watched by label, so other people's Jobs never cross the wire; models are not filtered."""

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        return None

    server = watching(test, tmp_path, monkeypatch)
    jobs = [path for _, path in server.asked if "/jobs" in path]
    models = [path for _, path in server.asked if "/cuvilmodels" in path]
    assert jobs and all("labelSelector=app.kubernetes.io/managed-by" in path for path in jobs)
    assert models and not any("labelSelector" in path for path in models)


def test_only_the_named_namespaces_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespaced controller never asks for the whole cluster."""

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        return None

    server = watching(test, tmp_path, monkeypatch, namespaces=("ns",))
    asked = [path for _, path in server.asked if "/jobs" in path or "/cuvilmodels" in path]
    assert asked and all("/namespaces/ns/" in path for path in asked)


def test_a_broken_connection_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes while the watch is down is told when it is up again."""

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        for number in range(3):
            server.drop()
            server.put(JOBS, f"j{number}")
            await ear.until(("Job", "ADDED", f"j{number}"))

    watching(test, tmp_path, monkeypatch)


def test_a_watch_that_is_too_old_lists_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """410 Gone leads to a new list, which tells of every object."""

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        ear.told.clear()
        server.gone = True
        server.drop()
        await until(lambda: not server.gone)
        server.put(CUVIL_MODELS, "n")
        server.put(JOBS, "j")
        await until(lambda: {name for _, _, name in ear.told} >= {"n", "j"})

    watching(test, tmp_path, monkeypatch)


def test_a_watch_that_is_refused_ends_the_watcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that the server calls wrong is no silent half-life: the watcher ends with the fault."""
    # Kept records would keep kopf's failed tasks alive until some later moment.
    caplog.set_level(logging.CRITICAL + 1, "kopf")

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        server.refuse_watches = 400
        server.drop()
        async with asyncio.timeout(60):
            assert "400" in await watcher.ended

    watching(test, tmp_path, monkeypatch)


def test_a_login_that_has_run_out_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With credentials that live for a moment only, broken watches come back with new ones."""
    logins: list[float] = []

    async def counted() -> Access:
        logins.append(asyncio.get_running_loop().time())
        return await access()

    monkeypatch.setattr(handlers, "LOGIN_LIFE", timedelta(seconds=0.2))
    monkeypatch.setattr(handlers, "access", counted)

    async def test(server: WatchServer, watcher: Watcher, ear: Ear) -> None:
        for number in range(3):
            before = len(logins)
            async with asyncio.timeout(60):
                while len(logins) == before:
                    server.drop()
                    await asyncio.sleep(0.1)
            server.put(JOBS, f"j{number}")
            await ear.until(("Job", "ADDED", f"j{number}"))

    watching(test, tmp_path, monkeypatch)
    assert len(logins) >= 4
