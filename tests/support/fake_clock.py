"""A clock that moves only when a test says so."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


class FakeClock:
    """Wall and monotonic time in step; sleepers wake when the test advances past them."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> datetime:
        """Give the wall time."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Give the seconds since the start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the test has advanced that far."""
        woken = asyncio.Event()
        self._sleepers.append((self._elapsed + max(0.0, seconds), woken))
        if seconds <= 0:
            woken.set()
        await woken.wait()

    def advance(self, seconds: float) -> None:
        """Move time on and wake whoever's time has come."""
        self._elapsed += seconds
        for due, woken in self._sleepers:
            if due <= self._elapsed:
                woken.set()
        self._sleepers = [one for one in self._sleepers if one[0] > self._elapsed]

    async def run_for(self, seconds: float, step: float = 0.5) -> None:
        """Advance in steps and let every task that can go on do so between them."""
        await settle()
        passed = 0.0
        while passed < seconds:
            self.advance(min(step, seconds - passed))
            passed += step
            await settle()

    @property
    def sleepers(self) -> int:
        """How many wait."""
        return len(self._sleepers)


async def settle(turns: int = 50) -> None:
    """Let every task that can go on do so."""
    for _ in range(turns):
        await asyncio.sleep(0)
