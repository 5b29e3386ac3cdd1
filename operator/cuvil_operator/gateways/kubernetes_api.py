"""The real Kubernetes gateway: bounded reads, fenced and limited writes, server-side apply."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from cuvil_operator.conventions import FIELD_MANAGER
from cuvil_operator.gateways.event_documents import EventLedger, event_document, repeat_patch
from cuvil_operator.gateways.failures import (
    KindMissing,
    KubernetesConflict,
    KubernetesFailure,
    KubernetesInvalid,
    WriteRefused,
)
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.limiter import RateLimiter
from cuvil_operator.gateways.protocols import (
    Clock,
    Document,
    EventNote,
    ObjectStamp,
    Resource,
)
from cuvil_operator.gateways.resources import EVENTS, path_of, resource_of
from cuvil_operator.gateways.transport import ApiTransport, NotFound

PAGE = 500
"""Objects a list request asks for at once."""
MOST_OBJECTS = 50_000
"""A list beyond this is refused: it would not fit the controller's memory limit."""
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

WriteMeter = Callable[[str, str, bool], None]
"""Called after each write with kind, verb and whether it succeeded."""


class ApiKubernetes:
    """KubernetesGateway over the API server. With dry_run the server validates every write and keeps none."""

    def __init__(
        self,
        transport: ApiTransport,
        clock: Clock,
        fence: Fence,
        limiter: RateLimiter,
        meter: WriteMeter = lambda kind, verb, done: None,
        dry_run: bool = False,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._fence = fence
        self._limiter = limiter
        self._meter = meter
        self._dry_run = dry_run
        self._ledger = EventLedger()

    async def knows(self, resource: Resource, namespace: str | None) -> bool:
        """Say whether the kind is installed."""
        try:
            await self._transport.request("GET", path_of(resource, namespace), [("limit", "1")], accept=METADATA_ONLY)
        except NotFound:
            return False
        return True

    async def get(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """Give the object, or None where there is none."""
        try:
            return await self._transport.request("GET", path_of(resource, namespace, name))
        except NotFound:
            return None

    async def list(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> tuple[Document, ...]:
        """Give the objects that carry all labels, in order of namespace and name."""
        found = await self._pages(resource, namespace, labels or {}, "application/json")
        # Items of a list carry no type of their own; a document always says what it is.
        return tuple(item | {"apiVersion": resource.api_version, "kind": resource.kind} for item in found)

    async def stamps(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> tuple[ObjectStamp, ...]:
        """Give only name, uid and resourceVersion of the objects: a cheap list."""
        found = await self._pages(resource, namespace, labels or {}, METADATA_ONLY)
        return tuple(ObjectStamp.of(item) for item in found)

    async def _pages(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str], accept: str
    ) -> Sequence[Document]:
        query = [("limit", str(PAGE))]
        if labels:
            query.append(("labelSelector", ",".join(f"{key}={labels[key]}" if labels[key] else key for key in labels)))
        found: list[Document] = []
        following = ""
        while True:
            asked = query + ([("continue", following)] if following else [])
            try:
                page = await self._transport.request("GET", path_of(resource, namespace), asked, accept=accept)
            except NotFound:
                return []
            found.extend(page.get("items") or ())
            following = str((page.get("metadata") or {}).get("continue") or "")
            if len(found) > MOST_OBJECTS:
                raise KubernetesInvalid(f"more than {MOST_OBJECTS} {resource.plural}: narrow the watched namespaces")
            if not following:
                return found

    async def create(self, document: Document) -> Document:
        """Create it, or KubernetesConflict where one of that name is there."""
        resource, meta = resource_of(document), document["metadata"]
        query = [("fieldManager", FIELD_MANAGER)]
        try:
            return await self._write("create", resource, "POST", path_of(resource, meta["namespace"]), query, document)
        except NotFound as fault:
            raise KindMissing(f"{fault}; install the CRD of {resource.kind} or create the namespace") from fault

    async def apply(self, document: Document) -> Document:
        """Server-side apply with force under the field manager of Cuvil."""
        resource, meta = resource_of(document), document["metadata"]
        path = path_of(resource, meta["namespace"], meta["name"])
        query = [("fieldManager", FIELD_MANAGER), ("force", "true")]
        try:
            return await self._write("apply", resource, "PATCH", path, query, document, "application/apply-patch+yaml")
        except NotFound as fault:
            raise KindMissing(
                f"{fault}; install the CRD of {resource.kind} ({resource.api_version}) or create the namespace"
            ) from fault

    async def set_owners(
        self, resource: Resource, namespace: str, name: str, owners: Sequence[Document], resource_version: str
    ) -> Document:
        """Replace the ownerReferences; KubernetesConflict where the object has moved on or is gone."""
        body = {"metadata": {"ownerReferences": list(owners), "resourceVersion": resource_version}}
        path = path_of(resource, namespace, name)
        query = [("fieldManager", FIELD_MANAGER)]
        try:
            return await self._write("patch", resource, "PATCH", path, query, body, "application/merge-patch+json")
        except NotFound as fault:
            raise KubernetesConflict(str(fault)) from fault

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> bool:
        """Delete in the background; False where it is gone already or has another uid."""
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            await self._write("delete", resource, "DELETE", path_of(resource, namespace, name), (), body)
        except (NotFound, KubernetesConflict):
            return False
        return True

    async def patch_status(
        self, resource: Resource, namespace: str, name: str, status: Document, resource_version: str
    ) -> Document:
        """Replace the whole status; KubernetesConflict where the object has moved on from resource_version."""
        path = path_of(resource, namespace, name, "status")
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": resource_version},
            "status": status,
        }
        try:
            # PUT, not PATCH: fields that the new status lacks must go, and the server compares resourceVersion itself.
            return await self._write("status", resource, "PUT", path, [("fieldManager", FIELD_MANAGER)], body)
        except NotFound as fault:
            raise KubernetesConflict(str(fault)) from fault

    async def emit(self, note: EventNote) -> None:
        """Write or count an Event."""
        now = self._clock.now()
        if not self._ledger.is_news(note, self._clock.monotonic()):
            return
        document = event_document(note, now)
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        try:
            await self._create_or_count(document, path_of(EVENTS, namespace), path_of(EVENTS, namespace, name))
        except WriteRefused:
            raise
        except KubernetesFailure:
            self._ledger.forget(note)

    async def _create_or_count(self, document: Document, collection: str, path: str) -> None:
        try:
            await self._write("create", EVENTS, "POST", collection, (), document)
        except KubernetesConflict:
            before = await self._transport.request("GET", path)
            patch = repeat_patch(before, document)
            await self._write("patch", EVENTS, "PATCH", path, (), patch, "application/merge-patch+json")

    async def _write(
        self,
        verb: str,
        resource: Resource,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: Any,
        content_type: str = "application/json",
    ) -> Document:
        """Send a write while the Lease lasts: the fence is asked after the limiter's wait, and bounds the request."""
        await self._limiter.acquire()
        left = self._fence.remaining()
        asked = [*query, ("dryRun", "All")] if self._dry_run else query
        return await self._counted(
            resource, verb, self._transport.request(method, path, asked, body, content_type, timeout=left)
        )

    async def _counted(self, resource: Resource, verb: str, request: Awaitable[Document]) -> Document:
        try:
            answer = await request
        except (KubernetesFailure, asyncio.CancelledError):
            self._meter(resource.kind, verb, False)
            raise
        self._meter(resource.kind, verb, True)
        return answer
