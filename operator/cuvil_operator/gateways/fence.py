"""The write fence: no write leaves this process after the deadline that the Lease gave it.

Losing a Lease is noticed late by design (a paused process, a stopped virtual machine, a slow API server), so each write
looks at a monotonic deadline itself; whoever takes the Lease over waits longer than that deadline.
"""

import math

from cuvil_operator.gateways.failures import WriteRefused
from cuvil_operator.gateways.protocols import Clock

LEAST_SECONDS = 0.5
"""A write that could only live shorter than this is not begun."""


class Fence:
    """A monotonic deadline that only the election moves."""

    def __init__(self, clock: Clock, deadline: float = -math.inf) -> None:
        self._clock = clock
        self._deadline = deadline

    @classmethod
    def open(cls, clock: Clock) -> "Fence":
        """Give a fence that never closes: for one process without election (development, tests)."""
        return cls(clock, math.inf)

    def extend(self, deadline: float) -> None:
        """Allow writes until this monotonic time."""
        self._deadline = deadline

    def close(self) -> None:
        """Refuse every write from now on."""
        self._deadline = -math.inf

    def remaining(self) -> float:
        """Give the seconds for which writes are still allowed; WriteRefused where there are none."""
        left = self._deadline - self._clock.monotonic()
        if left < LEAST_SECONDS:
            raise WriteRefused("the Lease's deadline is over, so nothing is written until it is renewed")
        return left
