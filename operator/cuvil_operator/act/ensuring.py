"""Has a document be there as rendered, without a write where it already is.

The server changes what it stores (defaults, canonical quantities), so a wanted document cannot be compared with a live
one. What can be compared: what was wanted last time with what is wanted now, and what the server held after that apply
with what it holds now. Both equal: nothing to do. The comparison lives in this process only; after a restart each
document is applied once more, which changes nothing on the server.
"""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from cuvil_operator.errors import GiveUpError
from cuvil_operator.gateways.present import Present
from cuvil_operator.gateways.protocols import Clock, Document, KubernetesGateway, Resource
from cuvil_operator.gateways.resources import resource_of

REMEMBERED = 20_000
"""Documents whose last apply is remembered."""
TRUSTED_SECONDS = 60.0
"""For how long a kind that a turn does not read anyway is taken to be as it was applied."""


@dataclass(frozen=True, slots=True)
class _Applied:
    wanted: str
    """Digest of the rendered document."""
    held: str
    """Digest of what the server held after the apply."""
    at: float


class Ensuring:
    """Applies documents of one owner each; remembers what it applied."""

    def __init__(self, kubernetes: KubernetesGateway, clock: Clock) -> None:
        self._kubernetes = kubernetes
        self._clock = clock
        self._applied: OrderedDict[tuple[Resource, str, str], _Applied] = OrderedDict()

    async def ensure(self, document: Document, owner_uid: str, present: Present) -> bool:
        """Have the document; True where that took a change. `present` is what this turn has read.

        Raises GiveUpError where an object of that name belongs to somebody else: it is never taken over.
        """
        resource, meta = resource_of(document), document["metadata"]
        key = (resource, meta["namespace"], meta["name"])
        before, wanted = self._applied.get(key), _digest(document)
        live = present.get(resource, meta["name"])
        if live is None:
            if not present.was_read(resource) and self._is_fresh(before, wanted):
                return False
            # Absent under Cuvil's labels may still be somebody's: one more look before it would be taken over.
            live = await self._kubernetes.get(*key)
        if live is not None:
            refuse_foreign(live, owner_uid)
            held = _digest(_essence(live))
            if before is not None and (before.wanted, before.held) == (wanted, held):
                self._remember(key, _Applied(wanted, held, self._clock.monotonic()))
                return False
        stored = await self._kubernetes.apply(document)
        self._remember(key, _Applied(wanted, _digest(_essence(stored)), self._clock.monotonic()))
        return live is None or stored["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]

    def forget(self, resource: Resource, namespace: str, name: str) -> None:
        """Know nothing of a document that is being deleted, so that it is applied when it is wanted again."""
        self._applied.pop((resource, namespace, name), None)

    def _is_fresh(self, before: _Applied | None, wanted: str) -> bool:
        same = before is not None and before.wanted == wanted
        return same and before is not None and self._clock.monotonic() - before.at < TRUSTED_SECONDS

    def _remember(self, key: tuple[Resource, str, str], applied: _Applied) -> None:
        self._applied[key] = applied
        self._applied.move_to_end(key)
        if len(self._applied) > REMEMBERED:
            self._applied.popitem(last=False)


def refuse_foreign(live: Document, owner_uid: str) -> None:
    """Raise GiveUpError where the object is not owned by this CuvilModel."""
    if not any(ref["uid"] == owner_uid for ref in live["metadata"].get("ownerReferences") or ()):
        meta = live["metadata"]
        raise GiveUpError(
            f"{live['kind']} {meta['namespace']}/{meta['name']} exists and does not belong to this CuvilModel: "
            "delete it, or give the CuvilModel another name"
        )


def _essence(live: Document) -> dict[str, Any]:
    """What controllers and users may change and Cuvil may have to change back."""
    meta = {key: live["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences", "uid")}
    return {key: value for key, value in live.items() if key not in ("metadata", "status")} | {"metadata": meta}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
