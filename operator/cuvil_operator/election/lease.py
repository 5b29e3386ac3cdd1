"""The Lease document: pure."""

from dataclasses import dataclass
from datetime import datetime

from cuvil_operator.gateways.protocols import Document
from cuvil_operator.gateways.resources import LEASES


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """Seconds, and names. renew_deadline < duration: the old holder stops writing before a new one may start."""

    namespace: str
    name: str
    identity: str
    """Unique for each process, so that a restarted one is another holder."""
    duration: float = 15.0
    """How long others wait after the last renewal that they saw."""
    renew_deadline: float = 10.0
    """How long this process writes after the start of its last successful renewal."""
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew_deadline < self.duration:
            raise ValueError(
                f"Lease times must rise: retry {self.retry:g} s < renew deadline {self.renew_deadline:g} s "
                f"< duration {self.duration:g} s"
            )


def holder_of(lease: Document) -> str:
    """Give the identity that holds it; empty where it was released."""
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def duration_of(lease: Document) -> float:
    """Give the seconds that its holder asked others to wait."""
    return float((lease.get("spec") or {}).get("leaseDurationSeconds") or 0)


def held(terms: LeaseTerms, before: Document | None, now: datetime) -> Document:
    """Give the Lease as held by us; it names the version it replaces, so a faster one makes the write fail."""
    spec = dict((before or {}).get("spec") or {})
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    ours = before is not None and holder_of(before) == terms.identity
    spec |= {
        "holderIdentity": terms.identity,
        "leaseDurationSeconds": round(terms.duration),
        "acquireTime": spec.get("acquireTime", stamp) if ours else stamp,
        "renewTime": stamp,
        "leaseTransitions": int(spec.get("leaseTransitions") or 0) + int(before is not None and not ours),
    }
    return _document(terms, before) | {"spec": spec}


def released(terms: LeaseTerms, before: Document, now: datetime) -> Document:
    """Give the Lease as free at once for the next one."""
    spec = dict(before.get("spec") or {})
    spec |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    return _document(terms, before) | {"spec": spec}


def _document(terms: LeaseTerms, before: Document | None) -> Document:
    meta = {"namespace": terms.namespace, "name": terms.name}
    if before is not None:
        meta["resourceVersion"] = str(before["metadata"]["resourceVersion"])
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta}
