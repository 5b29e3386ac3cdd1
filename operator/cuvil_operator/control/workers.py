"""Workers: take a key, reconcile it, plan its next turn. One faulty model never stops another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from cuvil_operator.control.work_queue import WorkQueue
from cuvil_operator.errors import FencedError, GiveUpError, OperatorError
from cuvil_operator.facts import ModelKey
from cuvil_operator.gateways.failures import KubernetesConflict, KubernetesUnavailable
from cuvil_operator.gateways.protocols import Clock
from cuvil_operator.metrics import Metrics

log = logging.getLogger(__name__)

Reconcile = Callable[[ModelKey], Awaitable[timedelta | None]]
"""One turn; gives after what time the key wants another one though nothing may happen, or None."""

FIRST_BACKOFF = 0.5
MOST_BACKOFF = 60.0
GIVE_UP_BACKOFF = 30.0
"""Where only a change elsewhere (RBAC, a CRD) helps: looked at seldom, since no watch tells of it."""
TURN_LIMIT = 120.0
"""Seconds of one turn; one that hangs longer is cancelled and retried."""


class Workers:
    """A fixed number of loops over one queue."""

    def __init__(self, queue: WorkQueue, reconcile: Reconcile, clock: Clock, metrics: Metrics) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._metrics = metrics
        self._failures: dict[ModelKey, int] = {}

    async def run(self, count: int) -> None:
        """Work for ever; whether the Lease is lost and the process must end is the election's to say."""
        async with asyncio.TaskGroup() as group:
            for index in range(count):
                group.create_task(self._loop(), name=f"worker {index}")

    async def _loop(self) -> None:
        while True:
            key = await self._queue.get()
            self._metrics.queue_depth.set(self._queue.depth)
            try:
                await self._turn(key)
            finally:
                self._queue.done(key)

    async def _turn(self, key: ModelKey) -> None:
        started = self._clock.monotonic()
        outcome = "ok"
        try:
            async with asyncio.timeout(TURN_LIMIT):
                again = await self._reconcile(key)
            self._failures.pop(key, None)
            if again is not None:
                self._queue.add_after(key, again.total_seconds())
        except FencedError as fault:
            # Like a kill between two writes: what is left of the turn is done by the next one, here or elsewhere.
            outcome = "fenced"
            log.warning("%s: %s", key, fault)
            self._queue.add_after(key, self._backoff(key))
        except KubernetesConflict as fault:
            outcome = "conflict"
            log.debug("%s: %s", key, fault)
            self._queue.add_after(key, self._backoff(key))
        except Exception as fault:
            outcome = "error"
            self._tell(key, fault)
            self._queue.add_after(key, self._pause(key, fault))
        finally:
            self._metrics.reconcile.labels(outcome).observe(self._clock.monotonic() - started)

    def _tell(self, key: ModelKey, fault: Exception) -> None:
        if isinstance(fault, OperatorError):
            log.warning("%s: %s", key, fault)
        elif isinstance(fault, TimeoutError):
            log.warning("%s: the turn took longer than %g s and was cancelled", key, TURN_LIMIT)
        else:
            # A fault of the controller itself: the one place where a traceback helps somebody.
            log.error("%s: internal fault, retried later: %s", key, fault, exc_info=fault)

    def _pause(self, key: ModelKey, fault: Exception) -> float:
        if isinstance(fault, GiveUpError):
            return max(GIVE_UP_BACKOFF, self._backoff(key))
        asked = fault.retry_after if isinstance(fault, KubernetesUnavailable) else None
        return max(asked or 0.0, self._backoff(key))

    def _backoff(self, key: ModelKey) -> float:
        """0.5, 1, 2, … 60 seconds."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        return float(min(MOST_BACKOFF, FIRST_BACKOFF * 2 ** min(count, 10)))
