"""The system's clock."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Wall and monotonic time of this machine."""

    def now(self) -> datetime:
        """Give the wall time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Give seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for that long."""
        await asyncio.sleep(seconds)
