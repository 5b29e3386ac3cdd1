"""One turn: what it reads, in which order it writes, and how it ends."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from cuvil_operator.errors import GiveUpError, RetryError
from cuvil_operator.facts import Images, ModelKey, Platform
from cuvil_operator.gateways import resources
from cuvil_operator.gateways.failures import KubernetesConflict, KubernetesDenied
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes, Write
from cuvil_operator.gateways.protocols import QueryAnswer
from cuvil_operator.metrics import Metrics
from cuvil_operator.reconcile import Reconciler
from fake_clock import FakeClock

KEY = ModelKey("ns", "m")
SPEC = {
    "model": {"uri": "https://models.example/m.onnx"},
    "target": "x86_64-cpu",
    "slo": {"latency": {"threshold": "800ms"}},
}


class Silent:
    """A Prometheus that is asked nothing in these tests, and says so."""

    def __init__(self) -> None:
        self.asked = 0

    async def query(self, expression: str, timeout: float | None = None) -> QueryAnswer:
        self.asked += 1
        return QueryAnswer(expression, ())


class World:
    def __init__(self, spec: dict[str, Any] = SPEC) -> None:
        self.clock, self.metrics, self.prometheus = FakeClock(), Metrics(), Silent()
        self.kubernetes = FakeKubernetes(self.clock)
        platform = Platform(Images("c@sha256:1", "r@sha256:2"), "registry:5000/cuvil")
        self.reconciler = Reconciler(self.kubernetes, self.prometheus, self.clock, platform, self.metrics)
        meta = {"namespace": "ns", "name": "m"}
        self.body = {"apiVersion": "cuvil.dev/v1alpha1", "kind": "CuvilModel", "metadata": meta}
        self.kubernetes.put(self.body | {"spec": spec})

    def turn(self) -> timedelta | None:
        return asyncio.run(self.reconciler.turn(KEY))

    @property
    def status(self) -> dict[str, Any]:
        found = asyncio.run(self.kubernetes.get(resources.CUVIL_MODELS, "ns", "m"))
        assert found is not None
        return dict(found.get("status") or {})

    def verbs(self) -> list[str]:
        return [f"{one.verb} {one.resource.kind}" for one in self.kubernetes.writes]


def test_the_status_is_written_once_and_last() -> None:
    """Whatever a turn does, its one status write comes after all acts."""
    world = World()
    world.turn()
    assert world.verbs()[-1] == "status CuvilModel" and world.verbs().count("status CuvilModel") == 1
    assert world.status["phase"] == "Resolving"


def test_a_turn_without_news_writes_nothing() -> None:
    """The third look at an unchanged world costs no write."""
    world = World()
    world.turn()
    world.turn()
    world.kubernetes.writes.clear()
    world.turn()
    assert world.verbs() == []


def test_without_a_canary_prometheus_is_not_asked() -> None:
    """Nothing rests on its answers, so none is wanted."""
    world = World()
    world.turn()
    assert world.prometheus.asked == 0


def test_a_model_that_is_gone_needs_nothing() -> None:
    """No write, no further turn, and its gauges are taken away."""
    world = World()
    world.turn()
    labels = {"namespace": "ns", "model": "m", "phase": "Resolving"}
    assert world.metrics.registry.get_sample_value("cuvil_model_phase", labels) == 1
    world.kubernetes.remove(resources.CUVIL_MODELS, "ns", "m")
    world.kubernetes.writes.clear()
    assert world.turn() is None and world.verbs() == []
    assert world.metrics.registry.get_sample_value("cuvil_model_phase", labels) is None


def test_a_model_that_changed_meanwhile_is_looked_at_again() -> None:
    """The status is for the version that was read: a newer one makes the turn a conflict, and the next succeeds."""
    world = World()

    def change(write: Write) -> None:
        if write.verb == "status":
            world.kubernetes.before_write = lambda write: None
            world.kubernetes.put(world.body | {"spec": SPEC | {"suspend": True}})

    world.kubernetes.before_write = change
    with pytest.raises(KubernetesConflict):
        world.turn()
    assert world.status == {}
    world.turn()
    assert world.status["observedGeneration"] == 2


def test_a_failed_act_is_told_and_tried_again() -> None:
    """The status says what was refused, the turn ends in a failure to back off by, and later it works."""
    world = World()

    def deny(write: Write) -> None:
        if write.resource.kind == "Job":
            raise KubernetesDenied("the ServiceAccount may not create jobs")

    world.kubernetes.before_write = deny
    with pytest.raises(RetryError, match="may not create jobs"):
        world.turn()
    assert "may not create jobs" in world.status["message"]
    world.kubernetes.before_write = lambda write: None
    world.turn()
    assert "create Job" in world.verbs() and "may not" not in world.status["message"]


def test_a_status_that_cannot_be_read_stops_the_model() -> None:
    """Going on with an empty memory could try a quarantined revision again, so the turn gives up and writes nothing."""
    world = World()
    world.kubernetes.set_status(resources.CUVIL_MODELS, "ns", "m", {"quarantine": "none"})
    with pytest.raises(GiveUpError, match="the status cannot be read"):
        world.turn()
    assert world.verbs() == []


def test_a_spec_that_cannot_be_read_is_told() -> None:
    """A spec that slipped past the schema blocks its model with a sentence, and nothing else happens."""
    world = World(SPEC | {"slo": {"latency": {"threshold": "soon"}}})
    world.turn()
    assert world.status["phase"] == "Blocked" and "slo.latency.threshold" in world.status["message"]
    assert [one for one in world.verbs() if "Job" in one] == []
