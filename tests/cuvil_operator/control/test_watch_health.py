"""The proof that watches live, and the resync that rests on it."""

import asyncio

from cuvil_operator.control.keys import keys_of
from cuvil_operator.control.resync import Resync, Scope
from cuvil_operator.control.watch_health import WatchHealth
from cuvil_operator.control.work_queue import WorkQueue
from cuvil_operator.facts import ModelKey
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes
from cuvil_operator.gateways.protocols import ObjectStamp
from cuvil_operator.gateways.resources import CUVIL_MODELS, JOBS, PODS
from cuvil_operator.metrics import Metrics
from fake_clock import FakeClock

GRACE = 90.0


def stamp(name: str, version: str) -> ObjectStamp:
    return ObjectStamp("ns", name, f"uid-{name}", version, {})


def test_a_quiet_watch_is_healthy() -> None:
    """A watch that has told all that there is owes nothing, however long it is silent."""
    clock = FakeClock()
    health = WatchHealth(clock, GRACE)
    health.told(JOBS, "uid-a", "1", deleted=False)
    clock.advance(10_000)
    assert health.compare(JOBS, [stamp("a", "1")]) == ()
    assert health.dead() == ()


def test_an_untold_change_is_found_and_becomes_a_dead_watch() -> None:
    """A version that the watch has not told is given for reconciling at once, and is fatal after the grace."""
    clock = FakeClock()
    health = WatchHealth(clock, GRACE)
    health.told(JOBS, "uid-a", "1", deleted=False)
    assert health.compare(JOBS, [stamp("a", "2")]) == (stamp("a", "2"),)
    assert health.dead() == ()
    clock.advance(GRACE + 1)
    assert health.dead() == (JOBS,)


def test_an_event_pays_the_debt() -> None:
    """A late event makes the watch healthy again."""
    clock = FakeClock()
    health = WatchHealth(clock, GRACE)
    health.compare(JOBS, [stamp("a", "2")])
    clock.advance(GRACE + 1)
    health.told(JOBS, "uid-a", "2", deleted=False)
    assert health.dead() == () and health.lag(JOBS) == 0


def test_a_busy_object_is_no_debt() -> None:
    """An object that changes between each event and each list keeps its watch healthy."""
    clock = FakeClock()
    health = WatchHealth(clock, GRACE)
    for version in range(100):
        health.told(PODS, "uid-a", str(version), deleted=False)
        health.compare(PODS, [stamp("a", str(version + 1))])
        clock.advance(30)
    assert health.dead() == ()


def test_an_untold_deletion_is_a_debt() -> None:
    """An object that the watch knows and the list lacks must be told as deleted."""
    clock = FakeClock()
    health = WatchHealth(clock, GRACE)
    health.told(JOBS, "uid-a", "1", deleted=False)
    health.compare(JOBS, [])
    clock.advance(GRACE + 1)
    assert health.dead() == (JOBS,)
    health.told(JOBS, "uid-a", "1", deleted=True)
    assert health.dead() == ()


def test_an_object_that_came_and_went_unseen_is_forgiven() -> None:
    """A debt for an object that nobody was told of and that is gone cannot be paid, so it is dropped."""
    clock = FakeClock()
    health = WatchHealth(clock, GRACE)
    health.compare(JOBS, [stamp("a", "1")])
    health.compare(JOBS, [])
    clock.advance(GRACE + 1)
    assert health.dead() == ()


def test_a_child_leads_to_its_models() -> None:
    """Owners of kind CuvilModel and the model label both count."""
    job = ObjectStamp("ns", "cuvil-compile-1", "u", "1", {}, (("CuvilModel", "a"), ("CuvilModel", "b")))
    pod = ObjectStamp("ns", "a-1-x", "u", "1", {"cuvil.dev/model": "a"}, (("ReplicaSet", "a-1"),))
    assert keys_of(JOBS, job) == {ModelKey("ns", "a"), ModelKey("ns", "b")}
    assert keys_of(PODS, pod) == {ModelKey("ns", "a")}
    assert keys_of(CUVIL_MODELS, stamp("m", "1")) == {ModelKey("ns", "m")}


def test_the_resync_reconciles_what_a_dead_watch_hides() -> None:
    """Without a single event a new model is found within one comparison, and every model within the resync."""

    async def run() -> None:
        clock, metrics = FakeClock(), Metrics()
        fake, queue, health = FakeKubernetes(clock), WorkQueue(clock), WatchHealth(clock, GRACE)
        resync = Resync(fake, queue, health, clock, metrics, Scope([CUVIL_MODELS], [], {}), every=300)
        task = asyncio.create_task(resync.run())
        body = {"apiVersion": "cuvil.dev/v1alpha1", "kind": "CuvilModel", "spec": {}}
        stored = fake.put(body | {"metadata": {"namespace": "ns", "name": "m"}})
        await clock.run_for(31)
        assert await queue.get() == ModelKey("ns", "m")
        queue.done(ModelKey("ns", "m"))
        health.told(CUVIL_MODELS, stored["metadata"]["uid"], stored["metadata"]["resourceVersion"], deleted=False)
        await clock.run_for(200)
        assert queue.depth == 0
        await clock.run_for(100)
        assert queue.depth == 1
        task.cancel()

    asyncio.run(run())
