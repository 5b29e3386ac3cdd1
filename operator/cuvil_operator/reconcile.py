"""One turn of one CuvilModel: observe → decide → act → status.

Idempotent, and safe to kill between any two writes: the turn trusts nothing but what it has just read, each act leaves
alone what is already so, and the status is written last, once, against the version that was read.
"""

from datetime import timedelta

from cuvil_operator.act import Performer
from cuvil_operator.act.performer import Turn
from cuvil_operator.decide import decide
from cuvil_operator.errors import RetryError
from cuvil_operator.facts import Decision, ModelKey, Outcome, OutcomeKind, Platform
from cuvil_operator.gateways.protocols import Clock, KubernetesGateway, PrometheusGateway
from cuvil_operator.gateways.resources import CUVIL_MODELS
from cuvil_operator.metrics import Metrics
from cuvil_operator.observe import Look, Observer
from cuvil_operator.rollout_log import RolloutLog
from cuvil_operator.rollout_metrics import RolloutMetrics
from cuvil_operator.status import next_status


class Reconciler:
    """Turns keys into turns."""

    def __init__(
        self,
        kubernetes: KubernetesGateway,
        prometheus: PrometheusGateway,
        clock: Clock,
        platform: Platform,
        metrics: Metrics,
    ) -> None:
        self._kubernetes = kubernetes
        self._observer = Observer(kubernetes, prometheus, clock, platform)
        self._performer = Performer(kubernetes, clock)
        self._told = RolloutMetrics(metrics)
        self._log = RolloutLog()

    async def turn(self, key: ModelKey) -> timedelta | None:
        """Give after what time the key wants another turn though nothing may happen; None: no need.

        Raises OperatorErrors for the queue to back off by, after status has been told of an act that failed.
        """
        look = await self._observer.look(key)
        if look is None:
            # Owned objects go by garbage collection: there is no finalizer that could hang.
            self._told.forget(key)
            self._log.forget(key)
            return None
        decision = decide(look.observed)
        outcomes = await self._performer.perform(Turn(look.observed, look.document, look.present), decision)
        await self._write_status(look, decision, outcomes)
        failed = [one.message for one in outcomes if one.kind is OutcomeKind.FAILED]
        if failed:
            raise RetryError(failed[0])
        return decision.requeue_after

    async def _write_status(self, look: Look, decision: Decision, outcomes: tuple[Outcome, ...]) -> None:
        seen = look.observed
        after = next_status(seen, decision, outcomes)
        if after != seen.status and not seen.deleting:
            version = look.document["metadata"]["resourceVersion"]
            await self._kubernetes.patch_status(CUVIL_MODELS, seen.namespace, seen.name, after.to_dict(), version)
        # Counted and logged after the write: a turn that lost a race is not told twice.
        key = ModelKey(seen.namespace, seen.name)
        self._told.tell(key, seen.status, after)
        self._log.tell(key, seen.status, after, decision)
