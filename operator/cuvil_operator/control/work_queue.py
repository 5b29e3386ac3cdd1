"""One queue of keys, each at most once in it, never handed out twice at the same time.

add(k) while k waits        → nothing new: the coming turn sees the newest world anyway
add(k) while k is worked on → k waits again as soon as its turn ends
add_after(k, s)             → k waits in s seconds, or sooner if anything adds it
"""

import asyncio
from collections import OrderedDict

from cuvil_operator.facts import ModelKey
from cuvil_operator.gateways.protocols import Clock


class WorkQueue:
    """Keys to reconcile."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: OrderedDict[ModelKey, None] = OrderedDict()
        self._working: set[ModelKey] = set()
        self._again: set[ModelKey] = set()
        self._later: dict[ModelKey, float] = {}
        self._changed = asyncio.Event()

    @property
    def depth(self) -> int:
        """How many keys wait for a worker now."""
        return len(self._waiting) + len(self._again)

    def add(self, key: ModelKey) -> None:
        """Have the key reconciled as soon as a worker is free."""
        self._later.pop(key, None)
        if key in self._working:
            self._again.add(key)
        else:
            self._waiting[key] = None
        self._changed.set()

    def add_after(self, key: ModelKey, seconds: float) -> None:
        """Have the key reconciled in that many seconds at the latest."""
        due = self._clock.monotonic() + max(0.0, seconds)
        self._later[key] = min(due, self._later.get(key, due))
        self._changed.set()

    async def get(self) -> ModelKey:
        """Wait for a key and take it; call done(key) after its turn."""
        while True:
            self._move_due()
            if self._waiting:
                key, _ = self._waiting.popitem(last=False)
                self._working.add(key)
                # Whatever was planned for later is planned anew by this turn.
                self._later.pop(key, None)
                return key
            self._changed.clear()
            await self._until_change()

    def done(self, key: ModelKey) -> None:
        """End the key's turn."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _move_due(self) -> None:
        now = self._clock.monotonic()
        for key in [key for key, due in self._later.items() if due <= now]:
            self.add(key)

    async def _until_change(self) -> None:
        """Wait for an add, or for the earliest planned key."""
        if not self._later:
            await self._changed.wait()
            return
        pause = min(self._later.values()) - self._clock.monotonic()
        sleeping = asyncio.ensure_future(self._clock.sleep(pause))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((sleeping, changing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            changing.cancel()
