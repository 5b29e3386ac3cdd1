"""The reading half of an API server on the loopback: discovery, lists, and watches to feed, drop and refuse."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from cuvil_operator.gateways.protocols import Resource

CLOSE = object()
BACKBONE = (
    Resource("v1", "Namespace", "namespaces", namespaced=False),
    Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
)
"""Kinds that kopf wants to find in every cluster, even where it does not watch them."""


class WatchServer:
    """Objects of a few resources; every change goes to the open watches and into the log that late ones replay."""

    def __init__(self, resources: list[Resource]) -> None:
        self.resources = resources
        self.url = ""
        self.asked: list[tuple[str, str]] = []
        """(method, path with query) of each request."""
        self.refuse_watches = 0
        """Status to refuse watches with; 0 lets them be."""
        self.gone = False
        """True: a watch from an old version is told 410 Gone, once."""
        self._version = 0
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._log: list[tuple[int, str, dict[str, Any]]] = []
        self._watches: dict[asyncio.Queue[Any], str] = {}

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def put(self, resource: Resource, name: str, **meta: Any) -> None:
        """Add or change an object."""
        key = (resource.plural, name)
        self._version += 1
        whole = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "resourceVersion": str(self._version)}
        document = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": whole | meta}
        self._tell("MODIFIED" if key in self._objects else "ADDED", resource, document)
        self._objects[key] = document

    def remove(self, resource: Resource, name: str) -> None:
        """Delete an object."""
        self._version += 1
        document = self._objects.pop((resource.plural, name))
        gone = document | {"metadata": document["metadata"] | {"resourceVersion": str(self._version)}}
        self._tell("DELETED", resource, gone)

    def drop(self) -> None:
        """Close every watch as a broken connection does."""
        for queue in list(self._watches):
            queue.put_nowait(CLOSE)

    def _tell(self, kind: str, resource: Resource, document: dict[str, Any]) -> None:
        self._log.append((self._version, kind, document))
        for queue, plural in self._watches.items():
            if plural == resource.plural:
                queue.put_nowait((kind, document))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Route one request."""
        self.asked.append((request.method, request.path_qs))
        await request.read()
        for resource in self.resources:
            if request.path.endswith(f"/{resource.plural}"):
                wants_watch = request.query.get("watch") == "true"
                return await (self._watch if wants_watch else self._list)(request, resource)
        return web.json_response(self._discover(request.path))

    def _discover(self, path: str) -> dict[str, Any]:
        known = (*self.resources, *BACKBONE)
        groups = sorted({one.group for one in known if one.group})
        if path == "/apis":
            named = {one.group: one for one in known}
            entries = [{"groupVersion": named[one].api_version, "version": named[one].version} for one in groups]
            return {
                "groups": [
                    {"name": group, "versions": [entry], "preferredVersion": entry}
                    for group, entry in zip(groups, entries, strict=True)
                ]
            }
        if path == "/api":
            return {"versions": ["v1"]}
        here = path.removeprefix("/apis/").removeprefix("/api/")
        verbs = ["list", "watch", "get", "patch"]
        return {
            "groupVersion": here,
            "resources": [
                {"name": one.plural, "singularName": "", "kind": one.kind, "namespaced": one.namespaced, "verbs": verbs}
                for one in known
                if one.api_version == here
            ],
        }

    async def _list(self, request: web.Request, resource: Resource) -> web.Response:
        items = [document for (plural, _), document in self._objects.items() if plural == resource.plural]
        meta = {"resourceVersion": str(self._version)}
        kind = f"{resource.kind}List"
        return web.json_response({"apiVersion": resource.api_version, "kind": kind, "metadata": meta, "items": items})

    async def _watch(self, request: web.Request, resource: Resource) -> web.StreamResponse:
        if self.refuse_watches:
            return web.json_response({"kind": "Status", "code": self.refuse_watches}, status=self.refuse_watches)
        stream = web.StreamResponse()
        await stream.prepare(request)
        if self.gone:
            self.gone = False
            status = {"kind": "Status", "code": 410, "metadata": {}}
            await stream.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            return stream
        queue: asyncio.Queue[Any] = asyncio.Queue()
        since = int(request.query.get("resourceVersion") or 0)
        for version, kind, document in self._log:
            if version > since and document["kind"] == resource.kind:
                queue.put_nowait((kind, document))
        self._watches[queue] = resource.plural
        try:
            while (told := await queue.get()) is not CLOSE:
                await stream.write(json.dumps({"type": told[0], "object": told[1]}).encode() + b"\n")
            assert request.transport is not None
            request.transport.abort()
        finally:
            del self._watches[queue]
        return stream


@asynccontextmanager
async def watch_server(resources: list[Resource], folder: Path) -> AsyncIterator[tuple[WatchServer, Path]]:
    """Run the server; gives it and a kubeconfig that leads to it."""
    server = WatchServer(resources)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    config = folder / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                "clusters": [{"name": "here", "cluster": {"server": server.url}}],
                "users": [{"name": "me", "user": {}}],
            }
        )
    )
    try:
        yield server, config
    finally:
        await runner.cleanup()
