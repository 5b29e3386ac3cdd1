"""A Kubernetes in memory, true in the points that the controller relies on; held to the real one by contract tests.

Kept: resourceVersion and generation, status apart from the rest, field ownership of server-side apply (maps merge,
lists are atomic but for ownerReferences), no-op writes that change nothing, conflicts, 404, immutable ConfigMaps and
Job templates, garbage collection by ownerReferences, Events counted by name. Not kept: schemas, defaults, admission,
built-in controllers: whoever needs a kubelet or a Deployment controller plays it through `put` and `set_status`.
"""

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from cuvil_operator.conventions import FIELD_MANAGER
from cuvil_operator.gateways import field_ownership as ownership
from cuvil_operator.gateways.event_documents import EventLedger, event_document, repeat_patch
from cuvil_operator.gateways.failures import KindMissing, KubernetesConflict, KubernetesInvalid
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.protocols import (
    Clock,
    Document,
    EventNote,
    ObjectStamp,
    Resource,
)
from cuvil_operator.gateways.resources import CONFIG_MAPS, EVENTS, JOBS, RESOURCES, resource_of

Key = tuple[Resource, str, str]
T = TypeVar("T")

GENERATION_LESS = frozenset({"ConfigMap", "Event", "Lease", "Pod", "Service"})
"""Kinds whose metadata.generation the API server does not keep."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write that was asked for, in the order in which they came."""

    verb: str
    """apply, delete, patch, status or create."""
    resource: Resource
    namespace: str
    name: str


class FakeKubernetes:
    """KubernetesGateway over a dict."""

    def __init__(self, clock: Clock, fence: Fence | None = None) -> None:
        self._clock = clock
        self._fence = fence or Fence.open(clock)
        self._objects: dict[Key, Document] = {}
        self._versions = itertools.count(1)
        self._ledger = EventLedger()
        self.missing_kinds: set[str] = set()
        """Kinds whose CRD is not installed."""
        self.writes: list[Write] = []
        """Every write of the gateway (not of put, set_status or remove), also the refused ones."""
        self.before_write: Callable[[Write], None] = lambda write: None
        """Called before each write takes effect; raise in it to play a fault or a kill before the write."""
        self.after_write: Callable[[Write], None] = lambda write: None
        """Called after each write took effect; raise in it to play a kill or a lost answer after the write."""
        self.on_change: list[Callable[[str, Document], None]] = []
        """Watchers: called with ADDED, MODIFIED or DELETED and a copy of the object."""

    # Reads

    async def knows(self, resource: Resource, namespace: str | None) -> bool:
        """Say whether the kind is installed."""
        return resource.kind not in self.missing_kinds

    async def get(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """Give a copy of the object, or None."""
        return _copied(self._objects.get((resource, namespace, name)))

    async def list(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> tuple[Document, ...]:
        """Give copies of the objects that carry all labels."""
        found = [
            (where, document)
            for (kind, where, _), document in self._objects.items()
            if kind == resource and namespace in (None, where) and _carries(document, labels or {})
        ]
        found.sort(key=lambda one: (one[0], one[1]["metadata"]["name"]))
        return tuple(_copied(document) for _, document in found)

    async def stamps(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> tuple[ObjectStamp, ...]:
        """Give names and versions of what list would give."""
        return tuple(ObjectStamp.of(document) for document in await self.list(resource, namespace, labels))

    # Writes of the controller

    async def create(self, document: Document) -> Document:
        """Create it, or KubernetesConflict where one of that name is there."""
        resource, meta = resource_of(document), document["metadata"]
        write = self._begin("create", resource, meta["namespace"], meta["name"])
        self._refuse_missing(resource)
        if (resource, meta["namespace"], meta["name"]) in self._objects:
            raise KubernetesConflict(f"{resource.kind} {meta['namespace']}/{meta['name']} already exists")
        return self._end(write, self._apply(resource, document, FIELD_MANAGER))

    async def apply(self, document: Document) -> Document:
        """Server-side apply with force under FIELD_MANAGER."""
        resource, meta = resource_of(document), document["metadata"]
        write = self._begin("apply", resource, meta["namespace"], meta["name"])
        self._refuse_missing(resource)
        if "status" in document or "resourceVersion" in meta:
            raise KubernetesInvalid("an applied document carries no status and no resourceVersion")
        return self._end(write, self._apply(resource, document, FIELD_MANAGER))

    async def set_owners(
        self, resource: Resource, namespace: str, name: str, owners: Sequence[Document], resource_version: str
    ) -> Document:
        """Replace the ownerReferences of that version."""
        write = self._begin("patch", resource, namespace, name)
        before = self._of_version(write, resource_version)
        after = _copied(before)
        after["metadata"]["ownerReferences"] = _copied(list(owners))
        return self._end(write, self._store((resource, namespace, name), after))

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> bool:
        """Delete with all it owns."""
        write = self._begin("delete", resource, namespace, name)
        before = self._objects.get((resource, namespace, name))
        if before is None or uid not in ("", before["metadata"]["uid"]):
            return False
        self.remove(resource, namespace, name)
        self.after_write(write)
        return True

    async def patch_status(
        self, resource: Resource, namespace: str, name: str, status: Document, resource_version: str
    ) -> Document:
        """Replace the status of that version."""
        write = self._begin("status", resource, namespace, name)
        before = self._of_version(write, resource_version)
        return self._end(
            write, self._store((resource, namespace, name), before | {"status": _copied(status)}, bump=False)
        )

    async def emit(self, note: EventNote) -> None:
        """Write or count an Event."""
        if not self._ledger.is_news(note, self._clock.monotonic()):
            return
        document = event_document(note, self._clock.now())
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        before = self._objects.get((EVENTS, namespace, name))
        write = self._begin("patch" if before else "create", EVENTS, namespace, name)
        after = before | repeat_patch(before, document) if before else document
        self._end(write, self._store((EVENTS, namespace, name), after))

    # The hands of users, kubelets and other controllers

    def put(self, document: Document, manager: str = "kubectl") -> Document:
        """Apply as somebody else; a status in it is ignored as the API server does."""
        return self._apply(resource_of(document), {k: v for k, v in document.items() if k != "status"}, manager)

    def set_status(self, resource: Resource, namespace: str, name: str, status: Document) -> Document:
        """Replace the status as its own controller does; KeyError where the object is not there."""
        key = (resource, namespace, name)
        return self._store(key, self._objects[key] | {"status": _copied(status)}, bump=False)

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete as a user does, then collect what it alone owned; KeyError where it is not there."""
        gone = self._objects.pop((resource, namespace, name))
        next(self._versions)
        self._tell("DELETED", gone)
        self.collect_garbage()

    def restarted(self) -> "FakeKubernetes":
        """Give this same world as a controller sees it after a restart: its memory of Events is empty."""
        again = copy.copy(self)
        again._ledger = EventLedger()
        return again

    def collect_garbage(self) -> None:
        """Delete every object that has owners of which none is left."""
        uids = {document["metadata"]["uid"] for document in self._objects.values()}
        for key, document in list(self._objects.items()):
            owners = document["metadata"].get("ownerReferences") or ()
            orphaned = bool(owners) and not any(owner["uid"] in uids for owner in owners)
            if orphaned and key in self._objects:
                self.remove(*key)

    def all(self) -> tuple[Document, ...]:
        """Give copies of everything, in order of kind, namespace and name."""
        order = sorted(self._objects, key=lambda key: (RESOURCES.index(key[0]), key[1], key[2]))
        return tuple(_copied(self._objects[key]) for key in order)

    # Inside

    def _refuse_missing(self, resource: Resource) -> None:
        if resource.kind in self.missing_kinds:
            raise KindMissing(f"install the CRD of {resource.kind} ({resource.api_version})")

    def _begin(self, verb: str, resource: Resource, namespace: str, name: str) -> Write:
        write = Write(verb, resource, namespace, name)
        self._fence.remaining()
        self.writes.append(write)
        self.before_write(write)
        return write

    def _end(self, write: Write, stored: Document) -> Document:
        self.after_write(write)
        return stored

    def _of_version(self, write: Write, resource_version: str) -> Document:
        before = self._objects.get((write.resource, write.namespace, write.name))
        if before is None:
            raise KubernetesConflict(f"{write.resource.kind} {write.namespace}/{write.name} is gone")
        if before["metadata"]["resourceVersion"] != resource_version:
            raise KubernetesConflict(f"{write.resource.kind} {write.namespace}/{write.name} has moved on")
        return before

    def _apply(self, resource: Resource, document: Document, manager: str) -> Document:
        meta = document["metadata"]
        key = (resource, meta["namespace"], meta["name"])
        before = self._objects.get(key)
        after = ownership.apply(before or {}, _copied(document), manager)
        if before is not None:
            _refuse_immutable(resource, before, after)
        return self._store(key, after)

    def _store(self, key: Key, after: Document, bump: bool = True) -> Document:
        """Keep a new version; an equal one keeps resourceVersion, and nobody is told, as with the API server."""
        before = self._objects.get(key)
        if before is not None and before == after:
            return _copied(before)
        version = next(self._versions)
        stored = _copied(after)
        meta = stored["metadata"]
        meta["resourceVersion"] = str(version)
        if before is None:
            meta["uid"] = f"00000000-0000-4000-8000-{version:012d}"
            meta["creationTimestamp"] = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        if key[0].kind not in GENERATION_LESS:
            changed = before is None or (bump and _essence(before) != _essence(stored))
            meta["generation"] = (before or {"metadata": {}})["metadata"].get("generation", 0) + int(changed)
        self._objects[key] = stored
        self._tell("MODIFIED" if before else "ADDED", stored)
        return _copied(stored)

    def _tell(self, kind: str, document: Document) -> None:
        for watcher in self.on_change:
            watcher(kind, _copied(document))


def _copied(value: T) -> T:
    """Copy JSON: several times faster than a deep copy, which must look for cycles."""
    if isinstance(value, dict):
        return cast(T, {key: _copied(part) for key, part in value.items()})
    return cast(T, [_copied(part) for part in value]) if isinstance(value, list) else value


def _carries(document: Document, labels: Mapping[str, str]) -> bool:
    has = document["metadata"].get("labels") or {}
    return all(key in has and has[key] == (value or has[key]) for key, value in labels.items())


def _essence(document: Document) -> dict[str, Any]:
    """All whose change raises generation."""
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def _refuse_immutable(resource: Resource, before: Document, after: Document) -> None:
    """The two immutabilities that the controller's design leans on."""
    frozen = ("data", "binaryData", "immutable") if resource == CONFIG_MAPS and before.get("immutable") else ()
    if any(before.get(field) != after.get(field) for field in frozen):
        raise KubernetesInvalid(f"ConfigMap {before['metadata']['name']} is immutable")
    if resource == JOBS and before["spec"].get("template") != after["spec"].get("template"):
        raise KubernetesInvalid(f"Job {before['metadata']['name']}: spec.template is immutable")
