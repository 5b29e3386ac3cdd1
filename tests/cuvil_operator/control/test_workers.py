"""Workers: plans, backoff, isolation, the end by a lost Lease."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from cuvil_operator.control.work_queue import WorkQueue
from cuvil_operator.control.workers import Workers
from cuvil_operator.facts import ModelKey
from cuvil_operator.gateways.failures import KubernetesDenied, KubernetesUnavailable, WriteRefused
from cuvil_operator.metrics import Metrics
from fake_clock import FakeClock, settle

A, B = ModelKey("ns", "a"), ModelKey("ns", "b")


class Turns:
    """Counts turns by time, and answers or fails as told."""

    def __init__(self, clock: FakeClock, answer: Callable[[ModelKey], timedelta | None]) -> None:
        self.clock = clock
        self.answer = answer
        self.at: list[tuple[ModelKey, float]] = []

    async def __call__(self, key: ModelKey) -> timedelta | None:
        self.at.append((key, self.clock.monotonic()))
        return self.answer(key)

    def times(self, key: ModelKey) -> list[float]:
        return [at for one, at in self.at if one == key]


def start(clock: FakeClock, turns: Turns, count: int = 2) -> tuple[WorkQueue, "asyncio.Task[None]"]:
    queue = WorkQueue(clock)
    return queue, asyncio.create_task(Workers(queue, turns, clock, Metrics()).run(count))


def failing(fault: Exception, also: ModelKey = A) -> Callable[[ModelKey], timedelta | None]:
    def answer(key: ModelKey) -> timedelta | None:
        if key == also:
            raise fault
        return None

    return answer


def test_a_turn_that_asks_for_another_gets_it() -> None:
    """requeue_after is honoured, turn after turn."""

    async def run() -> None:
        clock = FakeClock()
        turns = Turns(clock, lambda key: timedelta(seconds=5))
        queue, task = start(clock, turns)
        queue.add(A)
        await clock.run_for(11)
        assert turns.times(A) == [0, 5, 10]
        task.cancel()

    asyncio.run(run())


def test_failures_back_off_and_leave_others_alone() -> None:
    """A failing key comes after 0.5, 1, 2, 4 s; another key has its turn at once."""

    async def run() -> None:
        clock = FakeClock()
        turns = Turns(clock, failing(KubernetesUnavailable("away")))
        queue, task = start(clock, turns)
        queue.add(A)
        queue.add(B)
        await clock.run_for(8)
        assert turns.times(A) == [0, 0.5, 1.5, 3.5, 7.5]
        assert turns.times(B) == [0]
        task.cancel()

    asyncio.run(run())


def test_the_servers_own_pause_is_kept() -> None:
    """Retry-After of a 429 is the least pause."""

    async def run() -> None:
        clock = FakeClock()
        turns = Turns(clock, failing(KubernetesUnavailable("too many requests", retry_after=7)))
        queue, task = start(clock, turns)
        queue.add(A)
        await clock.run_for(8)
        assert turns.times(A) == [0, 7]
        task.cancel()

    asyncio.run(run())


def test_what_only_a_person_can_mend_is_looked_at_seldom() -> None:
    """A denied write is tried again after half a minute, not sooner."""

    async def run() -> None:
        clock = FakeClock()
        turns = Turns(clock, failing(KubernetesDenied("may not")))
        queue, task = start(clock, turns)
        queue.add(A)
        await clock.run_for(31)
        assert turns.times(A) == [0, 30]
        task.cancel()

    asyncio.run(run())


def test_an_event_cuts_a_backoff_short() -> None:
    """A change of the world is looked at now, whatever was planned."""

    async def run() -> None:
        clock = FakeClock()
        turns = Turns(clock, failing(KubernetesDenied("may not")))
        queue, task = start(clock, turns)
        queue.add(A)
        await clock.run_for(3)
        queue.add(A)
        await settle()
        assert turns.times(A) == [0, 3]
        task.cancel()

    asyncio.run(run())


def test_a_refused_write_is_a_turn_to_be_done_again() -> None:
    """A fence that closes for a moment costs a pause; whether the process must end is the election's to say."""

    async def run() -> None:
        clock = FakeClock()
        turns = Turns(clock, failing(WriteRefused("the deadline is over")))
        queue, task = start(clock, turns)
        queue.add(A)
        await clock.run_for(2)
        assert turns.times(A) == [0, 0.5, 1.5] and not task.done()
        task.cancel()

    asyncio.run(run())


def test_outcomes_are_measured() -> None:
    """Each turn lands in the histogram under its outcome."""

    async def run() -> None:
        clock, metrics = FakeClock(), Metrics()
        queue = WorkQueue(clock)
        turns = Turns(clock, failing(KubernetesUnavailable("away")))
        task = asyncio.create_task(Workers(queue, turns, clock, metrics).run(1))
        queue.add(A)
        queue.add(B)
        await settle()
        name = "cuvil_operator_reconcile_seconds_count"
        assert metrics.registry.get_sample_value(name, {"outcome": "error"}) == 1
        assert metrics.registry.get_sample_value(name, {"outcome": "ok"}) == 1
        task.cancel()

    asyncio.run(run())
