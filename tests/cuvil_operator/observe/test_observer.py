"""What one look reads."""

import asyncio
from dataclasses import replace
from typing import Any

from cuvil_operator import render
from cuvil_operator.facts import Images, ModelKey, Platform, RevisionRecord, ServingRecord
from cuvil_operator.gateways import resources
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes
from cuvil_operator.gateways.protocols import QueryAnswer
from cuvil_operator.observe import Look, Observer
from fake_clock import FakeClock

KEY = ModelKey("ns", "m")
SPEC = {
    "model": {"uri": "https://models.example/m.onnx"},
    "target": "x86_64-cpu",
    "slo": {"latency": {"threshold": "800ms"}},
}
RECORD = RevisionRecord(
    model="m",
    revision="a" * 12,
    fingerprint="f" * 64,
    target="x86_64-cpu",
    model_sha256="1" * 64,
    compile_key="2" * 64,
    validation_key="3" * 64,
    artifact="registry:5000/cuvil@sha256:" + "4" * 64,
    artifact_sha256="5" * 64,
    artifact_size=1000,
    threshold_seconds=0.8,
    images=Images("c@sha256:1", "r@sha256:2"),
    serving=ServingRecord(),
)


class Silent:
    async def query(self, expression: str, timeout: float | None = None) -> QueryAnswer:
        return QueryAnswer(expression, ())


class World:
    def __init__(self) -> None:
        clock = FakeClock()
        self.kubernetes = FakeKubernetes(clock)
        platform = Platform(Images("c@sha256:1", "r@sha256:2"), "registry:5000/cuvil")
        self.observer = Observer(self.kubernetes, Silent(), clock, platform)

    def model(self, name: str = "m", spec: dict[str, Any] = SPEC) -> render.Owner:
        meta = {"namespace": "ns", "name": name}
        body = {"apiVersion": "cuvil.dev/v1alpha1", "kind": "CuvilModel", "metadata": meta, "spec": spec}
        return render.Owner(name, "ns", self.kubernetes.put(body)["metadata"]["uid"])

    def revision(self, owner: render.Owner, revision: str) -> None:
        self.kubernetes.put(render.config_map(owner, replace(RECORD, model=owner.name, revision=revision)))

    def status(self, **status: Any) -> None:
        self.kubernetes.set_status(resources.CUVIL_MODELS, "ns", "m", status)

    def look(self) -> Look:
        look = asyncio.run(self.observer.look(KEY))
        assert look is not None
        return look


def test_a_model_that_is_not_there_is_none() -> None:
    """Nothing is read for a model that is gone."""
    assert asyncio.run(World().observer.look(KEY)) is None


def test_siblings_are_read_while_the_own_revision_is_not_proved() -> None:
    """Another model's record of an equal compile key can spare a compile; its records are never taken for own ones."""
    world = World()
    world.model()
    world.revision(world.model("other"), "b" * 12)
    seen = world.look().observed
    assert seen.records == () and [one.revision for one in seen.siblings] == ["b" * 12]


def test_siblings_are_not_read_at_rest() -> None:
    """With its own revision proved, a turn does not read the namespace's whole history."""
    world = World()
    world.revision(world.model(), "a" * 12)
    world.revision(world.model("other"), "b" * 12)
    world.status(observedGeneration=1, revision="a" * 12)
    seen = world.look().observed
    assert [one.revision for one in seen.records] == ["a" * 12] and seen.siblings == ()
    world.model(spec=SPEC | {"precision": "fp32_strict"})
    assert len(world.look().observed.siblings) == 1


def test_a_namesakes_leftover_is_no_record() -> None:
    """A ConfigMap of a deleted model of the same name has another owner, so it proves nothing for this one."""
    world = World()
    world.model()
    stranger = render.Owner("m", "ns", "00000000-0000-4000-8000-ffffffffffff")
    world.revision(stranger, "a" * 12)
    assert world.look().observed.records == ()


def test_a_record_that_cannot_be_read_is_absent() -> None:
    """A corrupt ConfigMap is no record; act makes it anew when it is wanted."""
    world = World()
    owner = world.model()
    document = render.config_map(owner, RECORD)
    world.kubernetes.put(document | {"data": {"revision.json": "{"}})
    look = world.look()
    assert look.observed.records == ()
    assert look.present.get(resources.CONFIG_MAPS, "m-" + "a" * 12) is not None
