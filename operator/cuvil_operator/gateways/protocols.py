"""What the controller needs from the world: a few Protocols, and the words that they exchange.

Each has a real form (kubernetes_api, lease_api, prometheus_api, clock); Kubernetes has a dry-run and a fake form too,
and the same contract tests hold fake and real to each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from cuvil_operator.conventions import EventKind

Document = dict[str, Any]
"""A Kubernetes object as its JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of the Kubernetes API and where it lies."""

    api_version: str
    """`v1` or `group/version`."""
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The last part of api_version."""
        return self.api_version.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ObjectStamp:
    """Which object, in which version: enough to see whether a watch has missed something."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    owners: tuple[tuple[str, str], ...] = ()
    """(kind, name) of each ownerReference."""

    @classmethod
    def of(cls, document: Document) -> "ObjectStamp":
        """Read the stamp of a document."""
        meta = document["metadata"]
        return cls(
            str(meta.get("namespace", "")),
            str(meta["name"]),
            str(meta["uid"]),
            str(meta["resourceVersion"]),
            dict(meta.get("labels") or {}),
            tuple((str(ref["kind"]), str(ref["name"])) for ref in meta.get("ownerReferences") or ()),
        )


@dataclass(frozen=True, slots=True)
class EventNote:
    """One Event about one object; an equal note within ten minutes is not written anew."""

    regarding: Document
    """The object that it is about: apiVersion, kind, metadata with namespace, name and uid are read."""
    type: EventKind
    reason: str
    """CamelCase constant."""
    message: str
    """One sentence; at most 1,024 bytes are kept."""


class KubernetesGateway(Protocol):
    """Objects of one cluster. Every write raises WriteRefused after the Lease's deadline.

    Raises the failures of `gateways.failures`: KubernetesUnavailable (retry), KubernetesConflict (look again),
    KubernetesDenied (RBAC or admission; names the verb and the resource), KubernetesInvalid (the document is refused).
    """

    async def knows(self, resource: Resource, namespace: str | None) -> bool:
        """Say whether the kind is installed; KubernetesDenied where it may not be listed there."""
        ...

    async def get(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """Give the object, or None where there is none (also where its kind is not installed)."""
        ...

    async def list(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> tuple[Document, ...]:
        """Give the objects that carry all labels, of one namespace or (None) of all, in order of namespace and name.

        A label with an empty value asks only that the key is there. Empty where the kind is not installed.
        """
        ...

    async def stamps(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> tuple[ObjectStamp, ...]:
        """Give only names and versions of what list would give: cheap."""
        ...

    async def create(self, document: Document) -> Document:
        """Create it, or KubernetesConflict where one of that name is there: for what is never changed afterwards.

        Of two turns that want the same shared Job one creates it and the other looks again and joins.
        """
        ...

    async def apply(self, document: Document) -> Document:
        """Server-side apply with force: create it or own the fields it names; fields no longer named go away.

        The document must not carry status or resourceVersion. Gives the object as stored. KindMissing where the CRD
        or the namespace is not there.
        """
        ...

    async def set_owners(
        self, resource: Resource, namespace: str, name: str, owners: Sequence[Document], resource_version: str
    ) -> Document:
        """Replace the ownerReferences of an object that several CuvilModels share.

        Apart from apply: under one field manager a second apply would take the first owner away again.
        KubernetesConflict where the object has moved on or is gone.
        """
        ...

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> bool:
        """Delete in the background with all it owns; False where it is gone already or has another uid."""
        ...

    async def patch_status(
        self, resource: Resource, namespace: str, name: str, status: Document, resource_version: str
    ) -> Document:
        """Replace the whole status; KubernetesConflict where the object has moved on from resource_version."""
        ...

    async def emit(self, note: EventNote) -> None:
        """Write an Event; never raises but WriteRefused: an Event is news, not state."""
        ...


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an instant vector."""

    labels: Mapping[str, str]
    time: float
    """Unix seconds of the evaluation."""
    value: str
    """As Prometheus writes it: `12`, `NaN`, `+Inf`; whoever reads it decides what it means."""


class SourceFault(Enum):
    """Why there is no answer; none of these says anything about a model."""

    UNREACHABLE = "Unreachable"
    TIMEOUT = "Timeout"
    SERVER_ERROR = "ServerError"
    """5xx, or 2xx with `status: error`."""
    BAD_QUERY = "BadQuery"
    """4xx: the query or the address is wrong; asking again does not help."""
    MALFORMED = "Malformed"
    """An answer that is not what the Prometheus API promises."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """An instant vector; empty where nothing matches."""

    query: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """No answer, and why."""

    query: str
    fault: SourceFault
    message: str
    """One sentence, without the address's credentials."""
    series: tuple[Series, ...] = field(default=(), init=False)


class LeaseStore(Protocol):
    """The one object that is written without the fence, since it moves the fence."""

    async def read(self, namespace: str, name: str) -> Document | None:
        """Give the Lease, or None."""
        ...

    async def write(self, lease: Document, timeout: float) -> Document:
        """Create it (no resourceVersion) or replace that version; KubernetesConflict where another was faster."""
        ...


class PrometheusGateway(Protocol):
    """One Prometheus (or what speaks its HTTP API)."""

    async def query(self, expression: str, timeout: float | None = None) -> QueryAnswer | QueryFailure:
        """Evaluate now; never raises, never retries, ends within its own timeout and the one given, seconds."""
        ...


class Clock(Protocol):
    """Time, so that tests can own it."""

    def now(self) -> datetime:
        """Wall time, UTC, aware: for what is written into status."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards: for deadlines within this process."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long on this clock."""
        ...
