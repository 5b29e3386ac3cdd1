"""What holds at every moment of a rollout, however it goes."""

from dataclasses import dataclass, field

from cluster_life import ClusterLife
from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus


@dataclass(slots=True)
class Invariants:
    """Checked after every write and every second; remembers how many pods stable ever had."""

    outage: bool = False
    """While set, pods are missing by the story's own hand: what needs them is not asserted."""
    _best: dict[str, int] = field(default_factory=dict)

    def check(self, life: ClusterLife, wanted: CuvilModelSpec, status: CuvilModelStatus, story: str) -> None:
        """Raises AssertionError with the story so far."""
        weights = life.weights()
        routed = wanted.rollout.traffic is not None
        if routed and weights:
            assert sum(weights.values()) == 100, f"weights {weights}\n{story}"
        lost = [one for one in weights if routed and weights[one] and not life.has_service(one)]
        assert not lost, f"the route names {lost} without a Service: the Gateway answers 500\n{story}"
        if not self.outage:
            broken = [one for one in weights if weights[one] and not life.ready_pods(one)]
            assert not broken, f"traffic on {broken} without a ready pod\n{story}"
            self._check_stable(life, wanted, status, story)

    def _check_stable(self, life: ClusterLife, wanted: CuvilModelSpec, status: CuvilModelStatus, story: str) -> None:
        if not status.stable:
            return
        revision, weights = status.stable.revision, life.weights()
        share = weights.get(revision, 0) * 100 // max(1, sum(weights.values()))
        have = len(life.ready_pods(revision))
        self._best[revision] = max(have, self._best.get(revision, 0))
        # replicas that were just asked for cannot be missed before they were there once
        whole = min(wanted.serving.replicas, self._best[revision])
        need = -(-whole * share // 100) if wanted.rollout.traffic else share * whole // 100
        assert have >= need, f"stable has {have} ready pods, {need} are needed\n{story}"
