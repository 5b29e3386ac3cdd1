"""The queue of keys."""

import asyncio

from cuvil_operator.control.work_queue import WorkQueue
from cuvil_operator.facts import ModelKey
from fake_clock import FakeClock, settle

A, B = ModelKey("ns", "a"), ModelKey("ns", "b")


def test_a_key_waits_once() -> None:
    """Ten adds of one key give one turn, in order of the first add."""

    async def run() -> None:
        queue = WorkQueue(FakeClock())
        for key in (A, B, A, A):
            queue.add(key)
        assert queue.depth == 2
        assert [await queue.get(), await queue.get()] == [A, B]
        assert queue.depth == 0

    asyncio.run(run())


def test_a_key_is_never_worked_on_twice_at_once() -> None:
    """An add during the key's turn starts another turn only after it."""

    async def run() -> None:
        queue = WorkQueue(FakeClock())
        queue.add(A)
        assert await queue.get() == A
        queue.add(A)
        waiting = asyncio.create_task(queue.get())
        await settle()
        assert not waiting.done()
        queue.done(A)
        await settle()
        assert waiting.result() == A

    asyncio.run(run())


def test_a_planned_key_comes_when_its_time_has_come() -> None:
    """The earliest of several plans counts."""

    async def run() -> None:
        clock = FakeClock()
        queue = WorkQueue(clock)
        queue.add_after(A, 10)
        queue.add_after(A, 5)
        queue.add_after(A, 20)
        waiting = asyncio.create_task(queue.get())
        await clock.run_for(4.5)
        assert not waiting.done()
        await clock.run_for(1)
        assert waiting.result() == A

    asyncio.run(run())


def test_a_turn_replaces_the_plan() -> None:
    """A key that an event brought forward does not come again for the plan made before its turn."""

    async def run() -> None:
        clock = FakeClock()
        queue = WorkQueue(clock)
        queue.add_after(A, 5)
        queue.add(A)
        assert await queue.get() == A
        queue.done(A)
        waiting = asyncio.create_task(queue.get())
        await clock.run_for(10)
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(run())


def test_a_plan_made_while_a_worker_waits_is_heard() -> None:
    """A worker that waits for a far plan wakes for a nearer one."""

    async def run() -> None:
        clock = FakeClock()
        queue = WorkQueue(clock)
        queue.add_after(A, 100)
        waiting = asyncio.create_task(queue.get())
        await settle()
        queue.add_after(B, 1)
        await clock.run_for(2)
        assert waiting.result() == B

    asyncio.run(run())
