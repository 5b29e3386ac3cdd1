"""The fence and the rate limiter."""

import asyncio

import pytest

from cuvil_operator.gateways.failures import WriteRefused
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.limiter import RateLimiter
from fake_clock import FakeClock, settle


def test_a_fence_is_closed_until_it_is_extended_and_after_its_deadline() -> None:
    """Only the time between counts, and it tells how much is left."""
    clock = FakeClock()
    fence = Fence(clock)
    with pytest.raises(WriteRefused):
        fence.remaining()
    fence.extend(10.0)
    clock.advance(4.0)
    assert fence.remaining() == 6.0
    clock.advance(5.6)
    with pytest.raises(WriteRefused):
        fence.remaining()


def test_a_burst_is_free_and_then_the_rate_holds() -> None:
    """Of 10 writes with a burst of 4 and 2 a second, the last one leaves after 3 s, in order."""

    async def run() -> None:
        clock = FakeClock()
        limiter = RateLimiter(clock, rate=2, burst=4)
        left: list[tuple[int, float]] = []

        async def write(number: int) -> None:
            await limiter.acquire()
            left.append((number, clock.monotonic()))

        tasks = [asyncio.create_task(write(number)) for number in range(10)]
        await settle()
        assert [number for number, _ in left] == [0, 1, 2, 3]
        await clock.run_for(5)
        assert [number for number, _ in left] == list(range(10))
        assert left[-1][1] == 3.0
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_tokens_come_back_but_not_beyond_the_burst() -> None:
    """An hour of quiet gives one burst, not an hour's worth."""

    async def run() -> None:
        clock = FakeClock()
        limiter = RateLimiter(clock, rate=2, burst=4)
        clock.advance(3600)
        tasks = [asyncio.create_task(limiter.acquire()) for _ in range(6)]
        await settle()
        assert sum(task.done() for task in tasks) == 4
        await clock.run_for(2)
        await asyncio.gather(*tasks)

    asyncio.run(run())
