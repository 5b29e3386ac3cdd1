"""Acquire, renew, lose and release the Lease.

No two machines' clocks are compared: a Lease counts as expired when this process itself has seen the same version for
the holder's whole duration, and our own deadline starts before the request that renews it was sent. So for any skew

    last renewal sent < our deadline (+ renew_deadline) < anyone else's takeover (+ duration, seen later than sent)
"""

import logging

from cuvil_operator.election.lease import LeaseTerms, duration_of, held, holder_of, released
from cuvil_operator.errors import FencedError
from cuvil_operator.gateways.failures import KubernetesConflict, KubernetesFailure, KubernetesUnavailable
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.protocols import Clock, Document, LeaseStore

log = logging.getLogger(__name__)


class LeaseLost(FencedError):
    """Another controller leads, or nobody could be asked in time: this process must end."""


class Election:
    """One candidate for one Lease."""

    def __init__(self, store: LeaseStore, clock: Clock, fence: Fence, terms: LeaseTerms) -> None:
        self._store = store
        self._clock = clock
        self._fence = fence
        self._terms = terms
        self._seen_version = ""
        self._seen_since = 0.0
        self._deadline = 0.0
        self._holder = ""
        self._lease: Document | None = None
        """As last seen or written."""

    async def acquire(self) -> None:
        """Return when this process holds the Lease; a KubernetesDenied ends the wait at once."""
        waiting_for = ""
        while not await self._try_acquire():
            if self._holder != waiting_for:
                waiting_for = self._holder
                log.info("standing by: %s leads", waiting_for or "nobody yet")
            await self._clock.sleep(self._terms.retry)
        log.info("leading as %s", self._terms.identity)

    async def hold(self) -> None:
        """Renew until the Lease is lost; then close the fence and raise LeaseLost."""
        try:
            while True:
                await self._clock.sleep(self._terms.retry)
                await self._renew()
        finally:
            self._fence.close()

    async def release(self) -> None:
        """Close the fence, then let the next one in at once; a failure only costs the next one the duration."""
        self._fence.close()
        try:
            lease = await self._store.read(self._terms.namespace, self._terms.name)
            if lease is not None and holder_of(lease) == self._terms.identity:
                await self._store.write(released(self._terms, lease, self._clock.now()), self._terms.retry)
        except KubernetesFailure as fault:
            log.warning("the Lease was not released: %s", fault)

    async def _try_acquire(self) -> bool:
        try:
            self._lease = await self._store.read(self._terms.namespace, self._terms.name)
            if self._lease is not None and not self._is_free(self._lease):
                return False
            await self._take()
        except (KubernetesConflict, KubernetesUnavailable) as fault:
            log.info("the Lease was not taken: %s", fault)
            return False
        return True

    def _is_free(self, lease: Document) -> bool:
        self._holder = holder_of(lease)
        version, now = str(lease["metadata"]["resourceVersion"]), self._clock.monotonic()
        if version != self._seen_version:
            self._seen_version, self._seen_since = version, now
        return self._holder in ("", self._terms.identity) or now - self._seen_since > duration_of(lease)

    async def _take(self) -> None:
        """Write ourselves as the holder over the version last seen; success moves the fence."""
        started = self._clock.monotonic()
        # A third of the deadline: a request that hangs must leave time for two more.
        limit = self._terms.renew_deadline / 3
        self._lease = await self._store.write(held(self._terms, self._lease, self._clock.now()), limit)
        self._deadline = started + self._terms.renew_deadline
        self._fence.extend(self._deadline)

    async def _renew(self) -> None:
        """Renew, if need be after the deadline too: the write succeeds only where nobody has taken the Lease since."""
        try:
            try:
                await self._take()
            except KubernetesConflict:
                # Another's write, or one of ours whose answer was lost: look whose.
                self._lease = await self._store.read(self._terms.namespace, self._terms.name)
                if self._lease is not None and holder_of(self._lease) != self._terms.identity:
                    taker = holder_of(self._lease) or "an administrator"
                    raise LeaseLost(f"{taker} took the Lease; this controller ends") from None
                await self._take()
        except KubernetesFailure as fault:
            log.warning("the Lease was not renewed: %s", fault)
            if self._clock.monotonic() >= self._deadline:
                raise LeaseLost(
                    f"no renewal of the Lease within {self._terms.renew_deadline:g} s; this controller ends"
                ) from fault
