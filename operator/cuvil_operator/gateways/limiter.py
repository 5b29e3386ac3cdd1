"""A token bucket before every write: neither kopf nor the client library limits how fast a loop may write."""

from cuvil_operator.gateways.protocols import Clock


class RateLimiter:
    """At most `burst` writes at once and `rate` a second for long."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    async def acquire(self) -> None:
        """Take one token, waiting for it where the bucket is empty; waiters are served in order of arrival."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        # The debt is booked before the wait, so that the next caller waits behind this one.
        self._tokens -= 1.0
        if self._tokens < 0:
            await self._clock.sleep(-self._tokens / self._rate)
