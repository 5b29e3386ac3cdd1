"""Lease election: one leader at any time, fenced writes, quick and slow handover."""

import asyncio
from typing import Any

import pytest

from cuvil_operator.election import Election, LeaseLost, LeaseTerms
from cuvil_operator.gateways.failures import KubernetesConflict, KubernetesUnavailable, WriteRefused
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.protocols import Document
from fake_clock import FakeClock, settle


class Store:
    """LeaseStore in memory with compare-and-swap, and a switch that plays an API server that is away."""

    def __init__(self) -> None:
        self.lease: Document | None = None
        self.away = False
        self.slow: tuple[FakeClock, float] | None = None
        """A clock and the seconds that each write takes on it."""
        self.writes = 0

    async def read(self, namespace: str, name: str) -> Document | None:
        self._answer()
        return self.lease

    async def write(self, lease: Document, timeout: float) -> Document:
        if self.slow is not None:
            await self.slow[0].sleep(self.slow[1])
        self._answer()
        found = (self.lease or {}).get("metadata", {}).get("resourceVersion")
        if lease["metadata"].get("resourceVersion") != found:
            raise KubernetesConflict("another was faster")
        self.writes += 1
        self.lease = lease | {"metadata": lease["metadata"] | {"resourceVersion": str(self.writes)}}
        return self.lease

    def _answer(self) -> None:
        if self.away:
            raise KubernetesUnavailable("away")

    @property
    def holder(self) -> str:
        return str((self.lease or {"spec": {}})["spec"].get("holderIdentity"))


def candidate(store: Store, clock: FakeClock, name: str) -> tuple[Election, Fence]:
    fence = Fence(clock)
    return Election(store, clock, fence, LeaseTerms("ns", "lease", name)), fence


def is_open(fence: Fence) -> bool:
    try:
        return fence.remaining() > 0
    except WriteRefused:
        return False


async def leading(election: Election) -> None:
    await election.acquire()
    await election.hold()


def test_only_one_leads() -> None:
    """The second candidate stands by with a closed fence while the first renews."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        (one, first), (two, second) = candidate(store, clock, "one"), candidate(store, clock, "two")
        tasks = [asyncio.create_task(leading(one))]
        await settle()
        tasks.append(asyncio.create_task(leading(two)))
        await clock.run_for(120)
        assert store.holder == "one" and is_open(first) and not is_open(second)
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_a_released_lease_is_taken_within_a_retry() -> None:
    """A clean end costs the next one two seconds."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        (one, first), (two, second) = candidate(store, clock, "one"), candidate(store, clock, "two")
        await one.acquire()
        task = asyncio.create_task(leading(two))
        await clock.run_for(5)
        await one.release()
        assert not is_open(first)
        await clock.run_for(2.5)
        assert store.holder == "two" and is_open(second)
        task.cancel()

    asyncio.run(run())


def test_a_killed_leader_is_replaced_after_the_duration_and_its_fence_closes_before() -> None:
    """At no time are both fences open, and the handover takes duration + retry at most."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        (one, first), (two, second) = candidate(store, clock, "one"), candidate(store, clock, "two")
        await one.acquire()
        task = asyncio.create_task(leading(two))
        handover = None
        for half_second in range(80):
            await clock.run_for(0.5)
            assert not (is_open(first) and is_open(second))
            if is_open(second) and handover is None:
                handover = half_second / 2
        assert handover is not None and 15 <= handover <= 17.5
        assert store.lease is not None and store.lease["spec"]["leaseTransitions"] == 1
        task.cancel()

    asyncio.run(run())


def test_a_leader_that_is_cut_off_ends_by_itself() -> None:
    """With no answer from the API server the fence closes after the renew deadline and the loss is raised."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        one, fence = candidate(store, clock, "one")
        task = asyncio.create_task(leading(one))
        await settle()
        store.away = True
        await clock.run_for(8)
        assert is_open(fence) and not task.done()
        await clock.run_for(4)
        assert not is_open(fence)
        with pytest.raises(LeaseLost, match="no renewal"):
            task.result()

    asyncio.run(run())


def test_a_short_outage_is_survived() -> None:
    """Missed renewals within the deadline do no harm."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        one, fence = candidate(store, clock, "one")
        task = asyncio.create_task(leading(one))
        await settle()
        for _ in range(5):
            store.away = True
            await clock.run_for(6)
            store.away = False
            await clock.run_for(4)
        assert is_open(fence) and not task.done()
        task.cancel()

    asyncio.run(run())


def test_a_leader_that_sees_another_holder_ends() -> None:
    """A Lease that somebody else took is lost at the next renewal, whatever the deadline says."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        one, fence = candidate(store, clock, "one")
        task = asyncio.create_task(leading(one))
        await settle()
        assert store.lease is not None
        taken = {"spec": store.lease["spec"] | {"holderIdentity": "two"}}
        store.lease = store.lease | taken | {"metadata": store.lease["metadata"] | {"resourceVersion": "other"}}
        await clock.run_for(3)
        assert not is_open(fence)
        with pytest.raises(LeaseLost, match="two took the Lease"):
            task.result()

    asyncio.run(run())


def test_a_renewal_whose_answer_was_lost_is_found_to_be_ours() -> None:
    """A write that took effect without an answer makes the next one a conflict, which is looked at and survived."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        one, fence = candidate(store, clock, "one")
        task = asyncio.create_task(leading(one))
        await settle()
        assert store.lease is not None
        store.lease = store.lease | {"metadata": store.lease["metadata"] | {"resourceVersion": "other"}}
        await clock.run_for(20)
        assert is_open(fence) and not task.done()
        task.cancel()

    asyncio.run(run())


def test_a_late_renewal_that_succeeds_is_no_loss() -> None:
    """A slow API server closes the fence for a while; nobody took the Lease, so leading goes on."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        one, fence = candidate(store, clock, "one")
        task = asyncio.create_task(leading(one))
        await settle()
        store.slow = clock, 12.0
        await clock.run_for(13)
        assert not is_open(fence) and not task.done()
        store.slow = None
        await clock.run_for(4)
        assert is_open(fence) and not task.done()
        task.cancel()

    asyncio.run(run())


def test_release_leaves_another_holders_lease_alone() -> None:
    """A process that has lost the Lease does not free it under its new holder."""

    async def run() -> None:
        store, clock = Store(), FakeClock()
        one, _ = candidate(store, clock, "one")
        await one.acquire()
        assert store.lease is not None
        store.lease = store.lease | {"spec": store.lease["spec"] | {"holderIdentity": "two"}}
        await one.release()
        assert store.holder == "two"

    asyncio.run(run())


@pytest.mark.parametrize(
    "times", [{"duration": 5.0}, {"renew_deadline": 1.0}, {"retry": 0.0}], ids=["short", "hasty", "zero"]
)
def test_terms_that_would_let_two_lead_are_refused(times: dict[str, Any]) -> None:
    """The renew deadline must end before the duration."""
    with pytest.raises(ValueError, match="must rise"):
        LeaseTerms("ns", "lease", "one", **times)
