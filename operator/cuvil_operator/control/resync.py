"""The slow resync: every model is looked at now and then, and every watch is compared with a fresh list."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuvil_operator.control.keys import keys_of
from cuvil_operator.control.watch_health import WatchHealth
from cuvil_operator.control.work_queue import WorkQueue
from cuvil_operator.gateways.failures import KubernetesFailure
from cuvil_operator.gateways.protocols import Clock, KubernetesGateway, Resource
from cuvil_operator.gateways.resources import CUVIL_MODELS
from cuvil_operator.metrics import Metrics

log = logging.getLogger(__name__)

PROOF_SECONDS = 30.0
"""Between two comparisons of watch and list."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is watched, and where."""

    resources: Sequence[Resource]
    namespaces: Sequence[str]
    """Empty: the whole cluster."""
    labels: Mapping[str, str]
    """Of everything but the CuvilModels themselves."""


class Resync:
    """Lists in turn, one request at a time."""

    def __init__(
        self,
        kubernetes: KubernetesGateway,
        queue: WorkQueue,
        health: WatchHealth,
        clock: Clock,
        metrics: Metrics,
        scope: Scope,
        every: float,
    ) -> None:
        self._kubernetes = kubernetes
        self._queue = queue
        self._health = health
        self._clock = clock
        self._metrics = metrics
        self._scope = scope
        self._every = every
        self._full_at = clock.monotonic() + every
        self.proved_at = clock.monotonic()
        """Monotonic time of the last comparison that got through."""

    async def run(self) -> None:
        """Go on for ever; a list that fails is tried again at the next turn."""
        while True:
            await self._clock.sleep(min(PROOF_SECONDS, self._every))
            try:
                await self.turn()
            except KubernetesFailure as fault:
                log.warning("the watches could not be compared with lists: %s", fault)

    async def turn(self) -> None:
        """Compare every watch with a list; what it has not told is reconciled now, everything when that is due."""
        full = self._clock.monotonic() >= self._full_at
        for resource in self._scope.resources:
            labels = {} if resource == CUVIL_MODELS else self._scope.labels
            stamps = [
                stamp
                for namespace in self._scope.namespaces or (None,)
                for stamp in await self._kubernetes.stamps(resource, namespace, labels)
            ]
            untold = self._health.compare(resource, stamps)
            self._metrics.watch_lag.labels(resource.plural).set(self._health.lag(resource))
            for stamp in stamps if full and resource == CUVIL_MODELS else untold:
                for key in keys_of(resource, stamp):
                    self._queue.add(key)
        self.proved_at = self._clock.monotonic()
        if full:
            self._full_at = self.proved_at + self._every
