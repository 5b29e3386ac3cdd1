"""What acts do to the cluster, one by one and in order."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cuvil_operator import facts
from cuvil_operator.act import Performer
from cuvil_operator.act.performer import Turn
from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus
from cuvil_operator.conventions import EventKind, Phase, Reason
from cuvil_operator.facts import Images, Observed, Outcome, OutcomeKind, Platform, RevisionRecord, ServingRecord
from cuvil_operator.gateways import resources
from cuvil_operator.gateways.failures import KubernetesConflict, KubernetesDenied, WriteRefused
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes, Write
from cuvil_operator.gateways.present import Present
from fake_clock import FakeClock

SPEC: dict[str, Any] = {
    "model": {"uri": "https://models.example/m.onnx"},
    "target": "x86_64-cpu",
    "slo": {"latency": {"threshold": "800ms"}},
}
GATEWAY = SPEC | {"rollout": {"traffic": {"gateway": {"name": "public"}}}}
READ = (resources.JOBS, resources.CONFIG_MAPS, resources.DEPLOYMENTS, resources.SERVICES, resources.HTTP_ROUTES)
UNCHANGED, WRITTEN, FAILED = OutcomeKind.UNCHANGED, OutcomeKind.WRITTEN, OutcomeKind.FAILED


def record(revision: str = "aaaaaaaaaaaa", **changes: Any) -> RevisionRecord:
    made = RevisionRecord(
        model="m",
        revision=revision,
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
    return replace(made, **changes)


class World:
    """A fake cluster with CuvilModels, and one controller's Performer."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.kubernetes = FakeKubernetes(self.clock)
        self.performer = Performer(self.kubernetes, self.clock)

    def turn(self, name: str = "m", spec: dict[str, Any] = SPEC) -> Turn:
        """Observe: the model (made where it is absent) and all that is there."""
        meta = {"namespace": "ns", "name": name}
        body = {"apiVersion": "cuvil.dev/v1alpha1", "kind": "CuvilModel", "metadata": meta, "spec": spec}
        document = self.kubernetes.put(body)
        ours = {"app.kubernetes.io/name": "cuvil"}
        read = {kind: asyncio.run(self.kubernetes.list(kind, "ns", ours)) for kind in READ}
        seen = Observed(
            now=self.clock.now(),
            name=name,
            namespace="ns",
            uid=document["metadata"]["uid"],
            generation=1,
            spec=CuvilModelSpec.from_dict(spec),
            status=CuvilModelStatus(),
            platform=Platform(Images("c@sha256:1", "r@sha256:2"), "registry:5000/cuvil"),
        )
        return Turn(seen, document, Present.of(read))

    def perform(self, *actions: facts.Action, turn: Turn | None = None) -> tuple[Outcome, ...]:
        """Perform acts in a turn of their own, or in one that was observed before."""
        decision = facts.Decision("test", Phase.STABLE, Reason.UP_TO_DATE, "", CuvilModelStatus(), actions)
        return asyncio.run(self.performer.perform(turn or self.turn(), decision))

    def kinds(self, *actions: facts.Action, turn: Turn | None = None) -> list[OutcomeKind]:
        return [one.kind for one in self.perform(*actions, turn=turn)]

    def writes(self) -> list[tuple[str, str, str]]:
        """Give and forget the writes since the last call."""
        made = [(one.verb, one.resource.kind, one.name) for one in self.kubernetes.writes]
        self.kubernetes.writes.clear()
        return made

    def get(self, resource: Any, name: str) -> Any:
        return asyncio.run(self.kubernetes.get(resource, "ns", name))


def refusing(kind: str, fault: Exception) -> Any:
    def refuse(write: Write) -> None:
        if write.resource.kind == kind:
            raise fault

    return refuse


COMPILE = facts.RunCompile("ab" * 32, "1" * 64, "c@sha256:1")
COMPILE_NAME = "cuvil-compile-" + "ab" * 6
WORKLOAD = facts.EnsureWorkload(record(), 2)
NAME = "m-aaaaaaaaaaaa"


def test_a_second_turn_writes_nothing() -> None:
    """Acts are levels: what is there as wanted costs no write."""
    world = World()
    acts = (
        facts.RunResolve("cd" * 32),
        COMPILE,
        facts.EnsureRevision(record()),
        facts.EnsureMonitoring(),
        WORKLOAD,
        facts.EnsureRouting((("aaaaaaaaaaaa", 100),)),
    )
    assert world.kinds(*acts) == [WRITTEN] * 6
    world.writes()
    assert world.kinds(*acts) == [UNCHANGED] * 6
    assert world.writes() == []


def test_a_restarted_controller_changes_nothing() -> None:
    """A new process applies what it does not remember, and the server keeps every version."""
    world = World()
    acts = (facts.EnsureMonitoring(), WORKLOAD, facts.EnsureRouting((("aaaaaaaaaaaa", 100),)))
    world.perform(*acts)
    before = world.kubernetes.all()
    world.performer = Performer(world.kubernetes, world.clock)
    assert world.kinds(*acts) == [UNCHANGED] * 3
    assert world.kubernetes.all() == before


def test_what_somebody_changed_is_changed_back() -> None:
    """A drifted field that Cuvil owns is applied again; a field it does not own stays."""
    world = World()
    world.perform(WORKLOAD)
    live = world.get(resources.DEPLOYMENTS, NAME)
    meta = {"namespace": "ns", "name": NAME, "annotations": {"theirs": "1"}}
    world.kubernetes.put(live | {"metadata": meta, "spec": {"replicas": 7}}, manager="hpa")
    assert world.kinds(WORKLOAD) == [WRITTEN]
    after = world.get(resources.DEPLOYMENTS, NAME)
    assert after["spec"]["replicas"] == 2 and after["metadata"]["annotations"]["theirs"] == "1"


def test_what_a_turn_reads_comes_back_at_once_and_the_rest_within_a_minute() -> None:
    """A deleted Service is applied by the next turn; a budget, which turns do not read, a minute later."""
    world = World()
    world.perform(WORKLOAD)
    world.kubernetes.remove(resources.SERVICES, "ns", NAME)
    world.kubernetes.remove(resources.POD_DISRUPTION_BUDGETS, "ns", NAME)
    world.perform(WORKLOAD)
    assert world.get(resources.SERVICES, NAME) is not None
    assert world.get(resources.POD_DISRUPTION_BUDGETS, NAME) is None
    world.clock.advance(61)
    world.perform(WORKLOAD)
    assert world.get(resources.POD_DISRUPTION_BUDGETS, NAME) is not None


def test_a_strangers_object_is_never_taken_over() -> None:
    """A Service of the model's name that a user made stays as it is, and the act says how to go on."""
    world = World()
    meta = {"namespace": "ns", "name": "m"}
    world.kubernetes.put({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"app": "x"}}})
    (outcome,) = world.perform(facts.EnsureRouting((("aaaaaaaaaaaa", 100),)))
    assert outcome.kind is FAILED and "does not belong to this CuvilModel" in outcome.message
    assert world.get(resources.SERVICES, "m")["spec"] == {"selector": {"app": "x"}}


def test_a_strangers_config_map_is_named() -> None:
    """A ConfigMap of a revision's name that is not Cuvil's is a clear failure, not an endless retry."""
    world = World()
    meta = {"namespace": "ns", "name": NAME}
    world.kubernetes.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
    (outcome,) = world.perform(facts.EnsureRevision(record()))
    assert outcome.kind is FAILED and "does not belong to this CuvilModel" in outcome.message


def test_nothing_is_done_after_a_failure() -> None:
    """Weights are not set when the pods before them could not be ensured."""
    world = World()
    turn = world.turn()
    world.kubernetes.before_write = refusing("Deployment", KubernetesDenied("may not"))
    outcomes = world.perform(WORKLOAD, facts.EnsureRouting((("aaaaaaaaaaaa", 100),)), turn=turn)
    assert [one.kind for one in outcomes] == [FAILED]
    assert world.get(resources.SERVICES, "m") is None


def test_monitoring_that_fails_holds_nothing_up() -> None:
    """Without the kinds of prometheus-operator the rollout goes on, and an Event tells of it."""
    world = World()
    world.kubernetes.missing_kinds = {"PodMonitor", "PrometheusRule"}
    assert world.kinds(facts.EnsureMonitoring(), WORKLOAD) == [UNCHANGED, WRITTEN]
    events = asyncio.run(world.kubernetes.list(resources.EVENTS, "ns"))
    assert [one["type"] for one in events] == ["Warning"]


def test_equal_keys_meet_in_one_job() -> None:
    """The second model joins the first one's compile Job as a further owner."""
    world = World()
    world.perform(COMPILE, turn=world.turn("a"))
    assert world.kinds(COMPILE, turn=world.turn("b")) == [WRITTEN]
    owners = world.get(resources.JOBS, COMPILE_NAME)["metadata"]["ownerReferences"]
    assert sorted(one["name"] for one in owners) == ["a", "b"]
    assert world.kinds(COMPILE, turn=world.turn("a")) == [UNCHANGED]


def test_two_models_at_once_make_one_job() -> None:
    """Both saw no Job: one creates it, the other's turn ends in a conflict, and its next turn joins."""
    world = World()
    one, two = world.turn("a"), world.turn("b")
    world.perform(COMPILE, turn=one)
    with pytest.raises(KubernetesConflict):
        world.perform(COMPILE, turn=two)
    world.perform(COMPILE, turn=world.turn("b"))
    assert len(world.get(resources.JOBS, COMPILE_NAME)["metadata"]["ownerReferences"]) == 2


def test_a_model_steps_out_of_a_shared_job() -> None:
    """Disowning leaves the Job to the other owner, whose deletion then takes it along."""
    world = World()
    world.perform(COMPILE, turn=world.turn("a"))
    world.perform(COMPILE, turn=world.turn("b"))
    uid = world.get(resources.JOBS, COMPILE_NAME)["metadata"]["uid"]
    world.perform(facts.DisownJob(COMPILE_NAME, uid), turn=world.turn("a"))
    owners = world.get(resources.JOBS, COMPILE_NAME)["metadata"]["ownerReferences"]
    assert [one["name"] for one in owners] == ["b"]
    world.kubernetes.remove(resources.CUVIL_MODELS, "ns", "b")
    assert world.get(resources.JOBS, COMPILE_NAME) is None


def test_a_job_that_gained_an_owner_is_not_deleted() -> None:
    """Between decision and act another model joined: the Job stays."""
    world = World()
    world.perform(COMPILE, turn=world.turn("a"))
    uid = world.get(resources.JOBS, COMPILE_NAME)["metadata"]["uid"]
    world.perform(COMPILE, turn=world.turn("b"))
    assert world.kinds(facts.DeleteJob(COMPILE_NAME, uid), turn=world.turn("a")) == [FAILED]
    assert world.get(resources.JOBS, COMPILE_NAME) is not None


def test_a_namesake_of_another_uid_is_not_deleted() -> None:
    """Only the very Job that was observed is deleted."""
    world = World()
    world.perform(COMPILE)
    assert world.kinds(facts.DeleteJob(COMPILE_NAME, "00000000-0000-4000-8000-ffffffffffff")) == [UNCHANGED]
    assert world.get(resources.JOBS, COMPILE_NAME) is not None


def test_a_revision_with_another_record_is_made_anew() -> None:
    """A corrupt ConfigMap is deleted with a failure, and the next turn writes the right one."""
    world = World()
    world.perform(facts.EnsureRevision(record()))
    other = facts.EnsureRevision(record(artifact_sha256="6" * 64))
    (outcome,) = world.perform(other)
    assert outcome.kind is FAILED and "made anew" in outcome.message
    assert world.kinds(other) == [WRITTEN]
    held = world.get(resources.CONFIG_MAPS, NAME)["data"]["revision.json"]
    assert RevisionRecord.from_json(held).artifact_sha256 == "6" * 64


@pytest.mark.parametrize("killed_after", [0, 1, 2, 3])
def test_a_workload_is_deleted_whole_wherever_it_is_killed(killed_after: int) -> None:
    """Killed after any delete, a later turn still sees the Deployment and finishes: nothing is left over."""

    class Killed(BaseException):
        pass

    world = World()
    world.perform(facts.EnsureRevision(record()), WORKLOAD)
    world.writes()
    done: list[Write] = []

    def kill(write: Write) -> None:
        done.append(write)
        if len(done) == killed_after:
            raise Killed

    turn = world.turn()
    world.kubernetes.after_write = kill
    try:
        world.perform(facts.DeleteWorkload("aaaaaaaaaaaa"), turn=turn)
    except Killed:
        assert (world.get(resources.DEPLOYMENTS, NAME) is not None) is (killed_after < 3)
    world.kubernetes.after_write = lambda write: None
    world.perform(facts.DeleteWorkload("aaaaaaaaaaaa"))
    for kind in (resources.DEPLOYMENTS, resources.SERVICES, resources.POD_DISRUPTION_BUDGETS):
        assert world.get(kind, NAME) is None
    assert world.get(resources.CONFIG_MAPS, NAME) is not None


def test_leaving_the_gateway_takes_the_route_away_after_the_service_is_set() -> None:
    """Without spec.rollout.traffic the old HTTPRoute goes, last."""
    world = World()
    routing = facts.EnsureRouting((("aaaaaaaaaaaa", 90), ("bbbbbbbbbbbb", 10)))
    world.perform(routing, turn=world.turn(spec=GATEWAY))
    assert world.get(resources.HTTP_ROUTES, "m") is not None
    world.writes()
    world.perform(routing, turn=world.turn(spec=SPEC))
    assert world.writes() == [("apply", "Service", "m"), ("delete", "HTTPRoute", "m")]
    assert world.get(resources.HTTP_ROUTES, "m") is None


def test_a_lost_lease_is_no_outcome() -> None:
    """A refused write leaves perform as what it is: the end of this process."""
    world = World()
    turn = world.turn()
    world.kubernetes.before_write = refusing("Deployment", WriteRefused("no longer the leader"))
    with pytest.raises(WriteRefused):
        world.perform(WORKLOAD, turn=turn)


def test_an_event_is_told() -> None:
    """EmitEvent becomes an Event about the model with the reason's word."""
    world = World()
    assert world.kinds(facts.EmitEvent(EventKind.NORMAL, Reason.PROMOTED, "B is stable")) == [WRITTEN]
    (event,) = asyncio.run(world.kubernetes.list(resources.EVENTS, "ns"))
    assert (event["reason"], event["message"], event["involvedObject"]["name"]) == ("Promoted", "B is stable", "m")
