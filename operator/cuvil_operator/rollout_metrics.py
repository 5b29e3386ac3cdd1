"""What changed between two statuses of a CuvilModel, as metrics: counters once an occurrence, gauges as of now."""

from cuvil_operator.api import CuvilModelStatus
from cuvil_operator.conventions import Phase, Reason
from cuvil_operator.facts import ModelKey
from cuvil_operator.metrics import Metrics


class RolloutMetrics:
    """Per-model series; those of a model that is gone, or of a revision that no longer runs, are taken away."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._shown: dict[ModelKey, set[tuple[str, ...]]] = {}

    def tell(self, key: ModelKey, before: CuvilModelStatus, after: CuvilModelStatus) -> None:
        """Count what is new in `after` and show how things are."""
        self._count(key, before, after)
        self._show(key, after)

    def forget(self, key: ModelKey) -> None:
        """Take the gauges of a model away; its counters stay, as counters must."""
        for labels in self._shown.pop(key, set()):
            self._remove(key, labels)

    def _count(self, key: ModelKey, before: CuvilModelStatus, after: CuvilModelStatus) -> None:
        now, then = after.rollback, before.rollback
        if now is not None and (then is None or then.started_at != now.started_at):
            self._metrics.rollbacks.labels(*key, now.reason).inc()
            self._metrics.rollouts.labels(*key, "rolled_back").inc()
        fresh = now is not None and (then is None or then.weight_zero_at is None)
        if fresh and now is not None and now.weight_zero_at is not None and now.crossed_at is not None:
            self._metrics.detection.observe((now.weight_zero_at - now.crossed_at).total_seconds())
        if after.history[:1] != before.history[:1] and after.history:
            self._metrics.rollouts.labels(*key, "promoted").inc()
        superseded = [one for one in after.timeline if one.reason == Reason.SUPERSEDED]
        if superseded and superseded[-1] not in before.timeline:
            self._metrics.rollouts.labels(*key, "superseded").inc()

    def _show(self, key: ModelKey, after: CuvilModelStatus) -> None:
        shown: set[tuple[str, ...]] = set()
        for role, one in (("stable", after.stable), ("canary", after.canary)):
            if one is not None:
                shown.add(("weight", one.revision, role))
                self._metrics.weight.labels(*key, one.revision, role).set(one.weight)
        for entry in after.quarantine:
            shown.add(("quarantined", entry.revision, entry.reason))
            self._metrics.quarantined.labels(*key, entry.revision, entry.reason).set(1)
        if after.phase in set(Phase):
            shown.add(("phase", str(after.phase)))
            self._metrics.phase.labels(*key, str(after.phase)).set(1)
        for labels in self._shown.get(key, set()) - shown:
            self._remove(key, labels)
        self._shown[key] = shown

    def _remove(self, key: ModelKey, labels: tuple[str, ...]) -> None:
        kind, *rest = labels
        of = self._metrics
        gauges = {"weight": of.weight, "quarantined": of.quarantined, "phase": of.phase}
        gauges[kind].remove(*key, *rest)
