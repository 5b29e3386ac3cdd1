"""Proof that a watch lives: what a fresh list shows must have come through the watch, at the latest a grace later.

The age of the last event proves nothing in a quiet cluster, and a probe that asks the framework can stay green while a
watch is dead. So each resync lists names and versions (cheap) and compares: an object in a version that the watch has
not told, or an object that the watch knows and the list lacks, is a debt. The next event of that object pays it. A debt
older than the grace means a dead watch.
"""

from collections.abc import Iterable

from cuvil_operator.gateways.protocols import Clock, ObjectStamp, Resource


class WatchHealth:
    """What each watch has told, and what it owes."""

    def __init__(self, clock: Clock, grace: float) -> None:
        self._clock = clock
        self._grace = grace
        self._told: dict[Resource, dict[str, str]] = {}
        self._owed: dict[Resource, dict[str, float]] = {}

    def told(self, resource: Resource, uid: str, resource_version: str, deleted: bool) -> None:
        """Note an event of the watch: it pays the object's debt."""
        versions = self._told.setdefault(resource, {})
        if deleted:
            versions.pop(uid, None)
        else:
            versions[uid] = resource_version
        self._owed.get(resource, {}).pop(uid, None)

    def compare(self, resource: Resource, listed: Iterable[ObjectStamp]) -> tuple[ObjectStamp, ...]:
        """Book the debts that a list shows; gives the objects whose present version the watch has not told."""
        now = self._clock.monotonic()
        versions, owed = self._told.setdefault(resource, {}), self._owed.setdefault(resource, {})
        present = {stamp.uid: stamp for stamp in listed}
        untold = [stamp for uid, stamp in present.items() if versions.get(uid) != stamp.resource_version]
        vanished = [uid for uid in versions if uid not in present]
        for uid in [stamp.uid for stamp in untold] + vanished:
            owed.setdefault(uid, now)
        # A debt for an object that was never told and is gone again cannot be paid by an event any more.
        for uid in [uid for uid in owed if uid not in present and uid not in versions]:
            del owed[uid]
        return tuple(untold)

    def lag(self, resource: Resource) -> float:
        """Give the age of the oldest debt, seconds; 0 where the watch owes nothing."""
        owed = self._owed.get(resource)
        return self._clock.monotonic() - min(owed.values()) if owed else 0.0

    def dead(self) -> tuple[Resource, ...]:
        """Give the resources whose watch owes for longer than the grace."""
        return tuple(resource for resource in self._owed if self.lag(resource) > self._grace)
