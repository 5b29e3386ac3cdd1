"""Where requests go: the weights of an HTTPRoute, or pod counts behind one Service; two forms of one notion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cuvil_operator import conventions as names
from cuvil_operator.api import CuvilModelSpec, Traffic
from cuvil_operator.render.identity import SERVING, Document, Owner, document, labels, serving_selector
from cuvil_operator.render.revision import service_spec

Weights = Sequence[tuple[str, int]]
"""(revision, percent) in order stable, canary; sums to 100."""


class TrafficSplit(Protocol):
    """How a CuvilModel's requests reach its revisions."""

    def documents(self, owner: Owner, weights: Weights) -> tuple[Document, ...]:
        """Give the documents that send `weights` of the requests to each revision.

        The Service NAME is among them in both forms: it is the address inside the cluster that never changes.
        """
        ...


@dataclass(frozen=True, slots=True)
class PodCountSplit:
    """One Service over the pods of all weighted revisions; how many pods each has makes the shares."""

    def documents(self, owner: Owner, weights: Weights) -> tuple[Document, ...]:
        """Give the Service NAME: pinned to the one revision at 100, open to all where two share."""
        live = _live(weights)
        return (_entry(owner, live[0][0] if len(live) == 1 else None),)


@dataclass(frozen=True, slots=True)
class GatewaySplit:
    """An HTTPRoute with exact weights over the Services of the revisions."""

    traffic: Traffic

    def documents(self, owner: Owner, weights: Weights) -> tuple[Document, ...]:
        """Give the Service NAME, pinned to the first revision, and the HTTPRoute NAME.

        A weight of 0 is left out: a Service that is about to go must not be named.
        """
        live = _live(weights)
        return _entry(owner, live[0][0]), self._route(owner, live)

    def _route(self, owner: Owner, live: Weights) -> Document:
        gateway = self.traffic.gateway
        parent = {
            "group": "gateway.networking.k8s.io",
            "kind": "Gateway",
            "name": gateway.name,
            "namespace": gateway.namespace or owner.namespace,
        }
        if gateway.section_name:
            parent["sectionName"] = gateway.section_name
        rule = {
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "backendRefs": [_backend(owner, revision, weight) for revision, weight in live],
        }
        spec: Document = {"parentRefs": [parent], "rules": [rule]}
        if self.traffic.hostnames:
            spec["hostnames"] = list(self.traffic.hostnames)
        kind = ("gateway.networking.k8s.io/v1", "HTTPRoute")
        return document(kind, owner, owner.name, labels(owner, "traffic"), spec=spec)


def traffic_split(spec: CuvilModelSpec) -> TrafficSplit:
    """Give the form that spec.rollout.traffic asks for."""
    traffic = spec.rollout.traffic
    return PodCountSplit() if traffic is None else GatewaySplit(traffic)


def _live(weights: Weights) -> list[tuple[str, int]]:
    live = [(revision, weight) for revision, weight in weights if weight > 0]
    if sum(weight for _, weight in live) != 100:
        raise ValueError(f"weights {list(weights)} do not sum to 100; every request must go somewhere")
    return live


def _entry(owner: Owner, revision: str | None) -> Document:
    spec = service_spec(serving_selector(owner.name, revision))
    return document(("v1", "Service"), owner, owner.name, labels(owner, SERVING), spec=spec)


def _backend(owner: Owner, revision: str, weight: int) -> Document:
    return {
        "group": "",
        "kind": "Service",
        "name": names.revision_name(owner.name, revision),
        "port": names.SERVICE_PORT,
        "weight": weight,
    }
