"""The way to a proved revision, one observation at a time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from cuvil_core.contract import ExitCode, Outcome
from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus, Retry
from cuvil_operator.conventions import ConditionType, Phase, Reason, Stage, job_name
from cuvil_operator.decide import decide, hashing
from cuvil_operator.facts import (
    Action,
    Decision,
    DeleteJob,
    DisownJob,
    EnsureRevision,
    GpuNodes,
    Images,
    JobPhase,
    JobSeen,
    Observed,
    Platform,
    RunCompile,
    RunResolve,
    RunValidate,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
IMAGES = Images("compiler@sha256:1", "runtime@sha256:1")
MODEL, MADE = "1" * 64, "2" * 64
REFERENCE = f"registry:5000/cuvil@sha256:{'3' * 64}"


def spec(**changes: Any) -> CuvilModelSpec:
    """Give a pinned spec."""
    whole: dict[str, Any] = {
        "model": {"uri": "https://models.example/m.onnx", "sha256": MODEL},
        "target": "x86_64-cpu",
        "slo": {"latency": {"threshold": "800ms"}},
    }
    return CuvilModelSpec.from_dict(whole | changes)


def seen(wanted: CuvilModelSpec | None = None, **changes: Any) -> Observed:
    """Give a new model without anything else."""
    known = Observed(
        NOON, "m", "ns", "me", 1, wanted or spec(), CuvilModelStatus(), Platform(IMAGES, "registry:5000/cuvil")
    )
    return replace(known, **changes)


def compile_key(wanted: CuvilModelSpec | None = None) -> str:
    """Give the key of the compile Job."""
    return hashing.compile_key(wanted or spec(), MODEL, IMAGES.compiler)


def compile_job(phase: JobPhase = JobPhase.RUNNING, key: str = "", **changes: Any) -> JobSeen:
    """Give the compile Job, owned by this model."""
    key = key or compile_key()
    job = JobSeen(job_name(Stage.COMPILE, "m", key), "j1", Stage.COMPILE, key, phase, owners=("me",))
    return replace(job, **changes)


def compiled(**result: Any) -> JobSeen:
    """Give a compile Job that made the artifact."""
    told = {"reference": REFERENCE, "sha256": MADE, "size": 9, "facts": {"ops": 3}} | result
    return compile_job(JobPhase.SUCCEEDED, exit_code=0, outcome=Outcome(ExitCode.OK, "Compiled", "compiled", told))


def failed(code: ExitCode, message: str = "why", **changes: Any) -> JobSeen:
    """Give a compile Job that failed."""
    return compile_job(
        JobPhase.FAILED, exit_code=int(code), outcome=Outcome(code, "Why", message), finished_at=NOON, **changes
    )


Kind = TypeVar("Kind", bound=Action)


def acts(decision: Decision, kind: type[Kind]) -> list[Kind]:
    """Give the acts of one kind."""
    return [one for one in decision.actions if isinstance(one, kind)]


def test_a_pin_needs_no_resolve() -> None:
    """With a sha256 in the spec the compile begins at once."""
    told = decide(seen())
    assert (told.phase, len(acts(told, RunCompile)), acts(told, RunResolve)) == (Phase.COMPILING, 1, [])


def test_without_a_pin_the_digest_is_resolved_first() -> None:
    """The resolve Job runs, and its result is remembered for the generation."""
    open_spec = spec(model={"uri": "https://models.example/m.onnx"})
    told = decide(seen(open_spec))
    assert (told.phase, len(acts(told, RunResolve))) == (Phase.RESOLVING, 1)
    key = hashing.resolve_key(open_spec, 1)
    done = JobSeen("r", "j", Stage.RESOLVE, key, JobPhase.SUCCEEDED, ("me",), exit_code=0)
    good = replace(done, outcome=Outcome(ExitCode.OK, "Resolved", "", {"sha256": MODEL}))
    memory = decide(seen(open_spec, jobs=(good,))).memory
    assert (memory.model_digest, memory.resolved_generation) == (MODEL, 1)
    bad = replace(done, outcome=Outcome(ExitCode.OK, "Resolved", "", {"sha256": "../../etc"}))
    assert decide(seen(open_spec, jobs=(bad,))).phase == Phase.BLOCKED


def test_a_job_of_somebody_else_is_joined() -> None:
    """An equal key that another CuvilModel compiles is not compiled twice: this model becomes an owner."""
    told = decide(seen(jobs=(compile_job(owners=("other",)),)))
    assert [one.key for one in acts(told, RunCompile)] == [compile_key()]
    assert acts(decide(seen(jobs=(compile_job(owners=("other", "me")),))), RunCompile) == []


def test_a_job_that_is_no_longer_wanted_is_cancelled_or_left_to_others() -> None:
    """After a spec change the old Job goes, unless another CuvilModel wants it."""
    old = compile_job(key="f" * 64)
    told = decide(seen(jobs=(old,)))
    assert acts(told, DeleteJob) == [DeleteJob(old.name, "j1")]
    told = decide(seen(jobs=(replace(old, owners=("me", "other")),)))
    assert acts(told, DisownJob) == [DisownJob(old.name, "j1")] and not acts(told, DeleteJob)
    assert not acts(decide(seen(jobs=(replace(old, owners=("other",)),))), DisownJob)


def test_validation_follows_the_compile() -> None:
    """The artifact that the compile Job names is proved where it will serve."""
    told = decide(seen(jobs=(compiled(),)))
    [act] = acts(told, RunValidate)
    assert isinstance(act, RunValidate)
    assert (told.phase, act.artifact, act.artifact_sha256, act.baseline) == (Phase.VALIDATING, REFERENCE, MADE, None)


def validated() -> Observed:
    """Give a model whose Jobs are both done."""
    begun = seen(jobs=(compiled(),))
    [act] = acts(decide(begun), RunValidate)
    assert isinstance(act, RunValidate)
    proof = JobSeen("v", "j2", Stage.VALIDATE, act.key, JobPhase.SUCCEEDED, ("me",), exit_code=0)
    proof = replace(proof, outcome=Outcome(ExitCode.OK, "Validated", "", {"p50_ms": 3.0}))
    return replace(begun, jobs=(compiled(), proof))


def test_a_proved_revision_is_recorded_whole() -> None:
    """The record holds all that the revision needs to start anywhere, and what was measured."""
    told = decide(validated())
    [act] = acts(told, EnsureRevision)
    assert isinstance(act, EnsureRevision)
    assert (act.record.artifact, act.record.artifact_sha256, act.record.images) == (REFERENCE, MADE, IMAGES)
    assert act.record.facts == {"manifest": {"ops": 3}, "validation": {"p50_ms": 3.0}}
    assert type(act.record).from_json(act.record.to_json()) == act.record


def test_an_artifact_of_a_sibling_is_not_compiled_again() -> None:
    """A revision that another CuvilModel of the namespace has proved gives its artifact."""
    [act] = acts(decide(validated()), EnsureRevision)
    assert isinstance(act, EnsureRevision)
    told = decide(seen(siblings=(replace(act.record, model="other"),)))
    assert (told.phase, len(acts(told, RunValidate)), acts(told, RunCompile)) == (Phase.VALIDATING, 1, [])


@pytest.mark.parametrize("result", [{"sha256": "short"}, {"reference": "registry/x:latest"}, {"size": "9"}])
def test_a_result_that_cannot_be_read_is_no_artifact(result: dict[str, Any]) -> None:
    """A success whose message names no artifact by digest is a fault of Cuvil, told as such."""
    told = decide(seen(jobs=(compiled(**result),)))
    assert (told.phase, told.reason) == (Phase.BLOCKED, Reason.INTERNAL)


FINAL = [one for one in ExitCode if one not in (ExitCode.OK, ExitCode.INFRASTRUCTURE, ExitCode.WRONG_NUMBERS)]


@pytest.mark.parametrize("code", FINAL)
def test_a_final_failure_blocks_and_is_told_once(code: ExitCode) -> None:
    """The condition names the reason, the message is the Job's own, nothing is run again, and the Event comes once."""
    first = decide(seen(jobs=(failed(code, "op Foo is not supported"),)))
    assert (first.phase, first.message) == (Phase.BLOCKED, "op Foo is not supported")
    said, proof = first.conditions
    assert (said.type, said.status, said.reason) == (ConditionType.COMPILED, "False", first.reason)
    assert (proof.type, proof.status) == (ConditionType.VALIDATED, "Unknown")
    again = decide(seen(status=first.memory, jobs=(failed(code, "op Foo is not supported"),)))
    assert again.phase == Phase.BLOCKED and again.actions == () and again.requeue_after is None


def test_want_of_infrastructure_is_tried_again_after_its_time() -> None:
    """The failure is counted once, waited for, and the Job deleted only when its time has come."""
    lost = failed(ExitCode.INFRASTRUCTURE)
    counted = decide(seen(jobs=(lost,)))
    assert counted.memory.retry == Retry(lost.name, 1, NOON + timedelta(seconds=10), "j1", "why")
    waiting = decide(seen(jobs=(lost,), status=counted.memory, now=NOON + timedelta(seconds=4)))
    assert (waiting.memory.retry, waiting.requeue_after) == (counted.memory.retry, timedelta(seconds=6))
    due = decide(seen(jobs=(lost,), status=counted.memory, now=NOON + timedelta(seconds=10)))
    assert acts(due, DeleteJob) == [DeleteJob(lost.name, "j1")]
    second = decide(seen(jobs=(replace(lost, uid="j9"),), status=counted.memory, now=NOON + timedelta(seconds=15)))
    assert second.memory.retry is not None and second.memory.retry.attempts == 2


def test_while_a_job_is_tried_again_its_last_error_is_told() -> None:
    """From the failure until the new Job ends, every message says why the last one failed."""
    said = "the registry does not answer"
    lost = failed(ExitCode.INFRASTRUCTURE, said)
    first = decide(seen(jobs=(lost,)))
    later, status = NOON + timedelta(seconds=20), first.memory
    made_anew = compile_job(JobPhase.PENDING, uid="j2")
    turns = {
        "counted": first,
        "waited for": decide(seen(jobs=(lost,), status=status)),
        "deleted": decide(seen(jobs=(lost,), status=status, now=later)),
        "being deleted": decide(seen(jobs=(replace(lost, deleting=True),), status=status, now=later)),
        "made anew": decide(seen(status=status, now=later)),
        "pending": decide(seen(jobs=(made_anew,), status=status, now=later)),
        "waiting": decide(seen(jobs=(replace(made_anew, waiting="no node fits"),), status=status, now=later)),
        "running": decide(seen(jobs=(compile_job(uid="j2"),), status=status, now=later)),
        "finishing": decide(seen(jobs=(compile_job(JobPhase.FINISHING, uid="j2"),), status=status, now=later)),
    }
    assert {name: turn.message for name, turn in turns.items() if said not in turn.message} == {}
    proving = decide(seen(jobs=(compiled(),), status=status, now=later))
    assert proving.phase == Phase.VALIDATING and said not in proving.message


def test_a_job_whose_container_has_ended_is_finishing() -> None:
    """Between the container's end and the Job's the message does not fall back to pending."""
    told = decide(seen(jobs=(compile_job(JobPhase.FINISHING, exit_code=0),)))
    assert (told.phase, told.message) == (Phase.COMPILING, f"the compile Job {compile_job().name} is finishing")


def test_after_five_failures_people_are_told() -> None:
    """The tries go on, but the phase says Stalled."""
    lost = failed(ExitCode.INFRASTRUCTURE)
    status = CuvilModelStatus(retry=Retry(lost.name, 5, NOON + timedelta(minutes=2), uid="j1"))
    assert decide(seen(jobs=(lost,), status=status)).phase == Phase.STALLED


def test_a_changed_spec_makes_a_failed_job_anew() -> None:
    """A longer timeout is in no key; the change of the generation tries again what failed before it."""
    late = failed(ExitCode.TIMEOUT)
    status = CuvilModelStatus(observed_generation=1)
    told = decide(seen(jobs=(late,), status=status, generation=2, now=NOON + timedelta(seconds=5)))
    assert acts(told, DeleteJob) == [DeleteJob(late.name, "j1")]


def test_a_job_being_deleted_is_waited_for() -> None:
    """While the old Job's name is taken nothing else is asked for."""
    told = decide(seen(jobs=(failed(ExitCode.TIMEOUT, deleting=True),)))
    assert (told.phase, told.actions) == (Phase.COMPILING, ())


def test_a_gpu_target_asks_for_its_resource_and_waits_for_a_node() -> None:
    """Without a node that advertises the GPU the Job waits and the condition says for what."""
    gpu = spec(target="cuda-sm_90")
    [act] = acts(decide(seen(gpu)), RunCompile)
    assert isinstance(act, RunCompile) and act.gpu_resource == "nvidia.com/gpu"
    pending = compile_job(JobPhase.PENDING, compile_key(gpu), waiting="0/1 nodes are available")
    told = decide(seen(gpu, jobs=(pending,)))
    assert told.reason is Reason.WAITING_FOR_NODE and "nvidia.com/gpu" in told.message
    running = replace(pending, phase=JobPhase.RUNNING)
    assert decide(seen(gpu, jobs=(running,))).reason is Reason.COMPILING, "it has its node"
    there = GpuNodes({"nvidia.com/gpu": 1})
    assert decide(seen(gpu, jobs=(pending,), nodes=there)).reason is Reason.COMPILING
    [rocm] = acts(decide(seen(spec(target="rocm-gfx942"))), RunCompile)
    assert isinstance(rocm, RunCompile) and rocm.gpu_resource == "amd.com/gpu"


def test_a_gpu_target_without_a_back_end_is_a_clear_condition() -> None:
    """Until the GPU back end exists the Job ends with UNSUPPORTED_TARGET."""
    gpu = spec(target="cuda-sm_90")
    job = replace(failed(ExitCode.UNSUPPORTED_TARGET, "no back end for cuda-sm_90"), key=compile_key(gpu))
    told = decide(seen(gpu, jobs=(job,)))
    assert (told.phase, told.reason) == (Phase.BLOCKED, Reason.UNSUPPORTED_TARGET)


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, False),
        ({"model": {"uri": "https://evil.example/m.onnx", "sha256": MODEL}}, True),
        ({"model": {"uri": "oci://evil.example:5000/m:1", "sha256": MODEL}}, True),
        ({"model": {"uri": "configmap://tiny/m.onnx", "sha256": MODEL}}, False),
        ({"accuracy": {"goldenUri": "https://evil.example/g.npz"}}, True),
    ],
)
def test_only_allowed_hosts_are_asked(changes: dict[str, Any], refused: bool) -> None:
    """Neither a model nor its golden inputs come from a host that the operator's settings do not name."""
    platform = Platform(IMAGES, "registry:5000/cuvil", allowed_hosts=("models.example",))
    told = decide(seen(spec(**changes), platform=platform))
    assert (told.reason is Reason.INVALID_SPEC) is refused
    assert bool(acts(told, RunCompile)) is not refused


def test_deletion_comes_first() -> None:
    """A model that is being deleted is left alone, whatever else is going on."""
    told = decide(seen(deleting=True, command="abort@latest#1", jobs=(failed(ExitCode.TIMEOUT),)))
    assert (told.phase, told.actions) == (Phase.DELETING, ())


def test_a_spec_that_cannot_be_read_changes_nothing() -> None:
    """An older operator that meets a newer spec says so and leaves what serves."""
    told = decide(replace(seen(), spec=None, spec_error="spec.target: no such value"))
    assert (told.phase, told.reason, told.actions) == (Phase.BLOCKED, Reason.INVALID_SPEC, ())


def test_a_decision_is_the_same_for_the_same_observation() -> None:
    """decide is a function."""
    assert decide(validated()) == decide(validated())
