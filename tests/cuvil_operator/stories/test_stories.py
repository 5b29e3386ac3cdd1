"""Rollouts from the first apply to the end, turn by turn, against golden text."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from cluster_life import Behaviour
from cuvil_core.contract import ExitCode, Outcome
from cuvil_operator.conventions import Phase, Reason
from cuvil_operator.facts import Images
from cuvil_operator.gateways.protocols import SourceFault
from story import Story, failure, sha, spec, success

Golden = Callable[[str, str], None]


def first_deploy(**changes: object) -> Story:
    """Deploy one model and let it rest."""
    return Story().apply(spec("good-1", **changes)).until_phase(Phase.STABLE).run(15)


def canary(story: Story | None = None, model: str = "good-2", **changes: object) -> Story:
    """Bring a second model to its first step."""
    begun = (story or first_deploy(**changes)).apply(spec(model, **changes))
    return begun.until(lambda status: status.step is not None and status.step.started_at is not None)


def bad_canary(behaviour: Behaviour, **changes: object) -> Story:
    """Bring a second model that misbehaves to its first step."""
    return canary(first_deploy(**changes).behave("bad", behaviour), "bad", **changes)


def test_first_deploy(golden: Golden) -> None:
    """The first revision is whole and ready before it has its first request, then it has all of them."""
    golden("first_deploy.txt", first_deploy().text)


def test_canary_promoted(golden: Golden) -> None:
    """A healthy canary goes through its steps and becomes stable; no request finds no pod."""
    story = canary().until_phase(Phase.STABLE).run(30)
    golden("canary_promoted.txt", story.text)
    assert story.life.dropped == 0


def test_canary_promoted_by_pod_count(golden: Golden) -> None:
    """Without a gateway the shares are made of pods, and stable gives up pods only once the canary's are ready."""
    steps = [{"weight": 20, "hold": "20s"}, {"weight": 75, "hold": "20s"}]
    changes: dict[str, Any] = {"rollout__traffic": None, "rollout__steps": steps}
    story = canary(**changes).until_phase(Phase.STABLE).run(30)
    golden("canary_by_pod_count.txt", story.text)
    assert story.life.dropped == 0


def test_rollback_by_errors(golden: Golden) -> None:
    """A canary that fails requests loses its traffic within two intervals of the samples that show it."""
    story = bad_canary(Behaviour(errors=Fraction(1, 5))).until_phase(Phase.ROLLED_BACK).run(60)
    golden("rollback_by_errors.txt", story.text)
    dossier = story.status.rollback
    assert dossier is not None and dossier.gate is not None
    assert dossier.crossed_at and dossier.weight_zero_at
    assert (dossier.weight_zero_at - dossier.crossed_at).total_seconds() <= 20
    assert (dossier.gate.name, dossier.reason) == ("errorRate", Reason.ERROR_RATE_BREACHED)
    assert float(dossier.gate.bound or 0) > 0.01
    assert story.rollbacks == [f"{dossier.revision} {dossier.started_at}"]
    assert story.life.dropped == 0


def test_rollback_by_latency(golden: Golden) -> None:
    """A canary of which more than the allowed share is slow is rolled back, though every answer is right."""
    story = bad_canary(Behaviour(slow=Fraction(1, 4))).until_phase(Phase.ROLLED_BACK).run(60)
    golden("rollback_by_latency.txt", story.text)
    dossier = story.status.rollback
    assert dossier is not None and dossier.gate is not None
    assert (dossier.gate.name, dossier.gate.threshold) == ("latency", "0.8s")


def test_rollback_by_pod_count(golden: Golden) -> None:
    """By pod count stable is made whole before the canary's pods leave the Service."""
    steps = [{"weight": 75, "hold": "60s"}]
    changes: dict[str, Any] = {"rollout__traffic": None, "rollout__steps": steps}
    story = bad_canary(Behaviour(errors=Fraction(1, 10)), **changes).until_phase(Phase.ROLLED_BACK).run(30)
    golden("rollback_by_pod_count.txt", story.text)
    assert story.life.dropped == 0


def test_a_canary_that_crashes_is_rolled_back_at_the_deadline(golden: Golden) -> None:
    """Pods that never become ready meet the progress deadline though no weight was ever set."""
    story = first_deploy().behave("bad", Behaviour(starts=False)).apply(spec("bad"))
    story.until_phase(Phase.ROLLED_BACK).run(30)
    golden("canary_crashes.txt", story.text)
    assert story.status.quarantine[0].artifact_sha256


def test_prometheus_down_holds_and_goes_on(golden: Golden) -> None:
    """Without samples nothing is promoted and nothing rolled back; when they are back the rollout goes on."""
    story = canary()
    story.prometheus.fault = SourceFault.UNREACHABLE
    story.say("Prometheus is stopped").run(200)
    assert story.status.phase == Phase.STALLED and story.status.rollback is None
    story.prometheus.fault = None
    story.say("Prometheus is back").until_phase(Phase.STABLE).run(15)
    golden("prometheus_down.txt", story.text)


def test_an_unknown_metric_is_never_a_pass(golden: Golden) -> None:
    """A Prometheus that knows no such series holds the rollout for ever."""
    story = first_deploy()
    story.prometheus.silent = True
    canary(story).run(400)
    golden("unknown_metric.txt", story.text)
    assert story.status.phase == Phase.STALLED
    assert story.weights == {"A": 90, "B": 10}


def test_on_no_data_fail_rolls_back_at_its_deadline() -> None:
    """onNoData: Fail turns a hold that outlasts the deadline into a rollback."""
    story = canary(rollout__analysis__onNoData="Fail")
    story.prometheus.fault = SourceFault.TIMEOUT
    story.until_phase(Phase.ROLLED_BACK)
    assert story.status.rollback is not None and story.status.rollback.reason == Reason.NO_DATA_TOO_LONG


def test_on_no_data_pass_takes_the_step() -> None:
    """onNoData: Pass lets a rollout go on blind, because somebody said so."""
    story = canary(rollout__analysis__onNoData="Pass")
    story.prometheus.fault = SourceFault.TIMEOUT
    story.until_phase(Phase.STABLE)
    assert story.stable == "B"


def test_no_requests_wait_for_requests() -> None:
    """A canary without requests is neither promoted nor rolled back; with requests the rollout goes on."""
    story = canary()
    story.life.requests_per_second = 0
    story.run(250)
    assert (story.status.phase, story.status.rollback) == (Phase.STALLED, None)
    story.life.requests_per_second = 100
    story.until_phase(Phase.STABLE)


def test_new_spec_in_mid_canary(golden: Golden) -> None:
    """A newer spec takes the canary away at once, then goes from stable to the newest; nothing is quarantined."""
    story = canary().run(15).apply(spec("good-3")).until_phase(Phase.COMPILING).until_phase(Phase.STABLE).run(15)
    golden("new_spec_in_mid_canary.txt", story.text)
    assert story.status.quarantine == ()
    assert story.stable == "C"


def test_revert_to_stable(golden: Golden) -> None:
    """A spec reverted to stable's revision is back at once, without a Job and without a quarantine."""
    story = canary().run(15)
    made = len(story.life.jobs_made)
    story.apply(spec("good-1"), "the spec is reverted").until_phase(Phase.STABLE).run(15)
    golden("revert.txt", story.text)
    assert (len(story.life.jobs_made), story.status.quarantine) == (made, ())


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "PodMonitor", "PrometheusRule"])
def test_a_document_that_cannot_be_written_does_not_hold_a_rollback(kind: str) -> None:
    """An administrator takes a right away and the controller restarts in mid-canary: traffic still leaves it."""
    story = bad_canary(Behaviour(errors=Fraction(1, 5)))
    story.denied = {kind}
    story.upgrade(story.platform.images).run(40)
    assert story.status.rollback is not None, story.text
    assert story.weights == {story.stable: 100}, story.text
    story.denied = set()
    story.until_phase(Phase.ROLLED_BACK)


def test_a_third_spec_during_a_rollback() -> None:
    """A rollback that has begun ends before the newest spec is looked at."""
    story = bad_canary(Behaviour(errors=Fraction(1, 5))).until_phase(Phase.ROLLING_BACK)
    story.apply(spec("good-3")).until_phase(Phase.STABLE)
    assert [one.reason for one in story.status.quarantine] == [Reason.ERROR_RATE_BREACHED]
    assert story.stable == "C"


def test_quarantine_outlives_re_apply_and_restart(golden: Golden) -> None:
    """What Argo CD does (the same spec again) does not start a rolled-back revision; a changed spec does."""
    story = bad_canary(Behaviour(errors=Fraction(1, 5))).until_phase(Phase.ROLLED_BACK)
    story.apply(spec("bad"), "the same spec is applied again").run(60)
    story.upgrade(Images("registry/compiler@sha256:c2", "registry/runtime@sha256:r2")).run(60)
    assert story.status.phase == Phase.ROLLED_BACK
    story.apply(spec("bad", serving__replicas=5), "more replicas of the same").run(30)
    assert story.status.phase == Phase.ROLLED_BACK
    story.apply(spec("good-3")).until_phase(Phase.STABLE).run(15)
    golden("quarantine.txt", story.text)


def test_clear_quarantine_tries_again(golden: Golden) -> None:
    """Cleared by command, a revision is tried again from its proof, without a new compile."""
    story = bad_canary(Behaviour(errors=Fraction(1, 5))).until_phase(Phase.ROLLED_BACK)
    made = len(story.life.jobs_made)
    story.behave("bad", Behaviour()).say("its fault is mended outside").command("clear-quarantine@B#1")
    story.until_phase(Phase.STABLE).run(15)
    golden("clear_quarantine.txt", story.text)
    assert len(story.life.jobs_made) == made


def test_compile_failures(golden: Golden) -> None:
    """Each kind of failure has its condition; stable is untouched; a changed spec goes on."""
    story = first_deploy()
    kinds = {
        "unsupported": failure(ExitCode.UNSUPPORTED_OP, "op Foo of node n1 is not supported"),
        "truncated": failure(ExitCode.BAD_MODEL, "the file ends within a tensor"),
        "moved": failure(ExitCode.DIGEST_MISMATCH, "the bytes are not those of the digest"),
        "internal": failure(ExitCode.INTERNAL, "a pass failed"),
    }
    for model, outcome in kinds.items():
        story.ends("compile", model, outcome).apply(spec(model)).until_phase(Phase.BLOCKED).run(30)
    story.apply(spec("good-2")).until_phase(Phase.STABLE)
    golden("compile_failures.txt", story.text)


def test_wrong_numbers_are_remembered_by_artifact(golden: Golden) -> None:
    """An artifact with wrong numbers gets no traffic under another serving spec either; a wider bound may try it."""
    story = first_deploy().ends(
        "validate", "strict", failure(ExitCode.WRONG_NUMBERS, "output y is off by 3e-5"), success("validate", "")
    )
    story.apply(spec("strict", accuracy={"rtol": "1e-9"})).until_phase(Phase.BLOCKED).run(10)
    story.apply(spec("strict", accuracy={"rtol": "1e-9"}, serving__rejectNonFinite=True)).run(30)
    assert story.status.phase == Phase.BLOCKED
    assert sum("validate" in one for one in story.life.jobs_made) == 2, "the artifact is not proved twice"
    story.apply(spec("strict"), "the same with the usual bound").until_phase(Phase.STABLE)
    golden("wrong_numbers.txt", story.text)


def test_infrastructure_is_tried_again(golden: Golden) -> None:
    """Only want of infrastructure is tried again, later each time."""
    lost = failure(ExitCode.INFRASTRUCTURE, "the registry does not answer")
    story = Story().ends("compile", "good-1", lost, lost, success_of("good-1")).apply(spec("good-1"))
    story.until_phase(Phase.STABLE)
    golden("infrastructure.txt", story.text)


def success_of(model: str) -> Outcome:
    """Give a good ending for a script."""
    return success("compile", sha(model))


def test_suspend(golden: Golden) -> None:
    """A suspended rollout keeps its weight; let go, it goes on."""
    story = canary().apply(spec("good-2", suspend=True), "suspended").run(90)
    assert story.status.phase == Phase.SUSPENDED
    story.apply(spec("good-2"), "let go").until_phase(Phase.STABLE).run(15)
    golden("suspend.txt", story.text)


def test_suspend_does_not_hold_a_rollback() -> None:
    """A breach rolls back also while suspended."""
    story = bad_canary(Behaviour(errors=Fraction(1, 5))).apply(spec("bad", suspend=True))
    story.until(lambda status: status.rollback is not None and status.rollback.finished_at is not None)


def test_weight_unreachable() -> None:
    """Without a gateway a step far below one pod's share is refused before it begins, unless it is allowed."""
    changes: dict[str, Any] = {
        "rollout__traffic": None,
        "rollout__steps": [{"weight": 5, "hold": "10s"}],
        "serving__replicas": 2,
    }
    story = first_deploy(**changes).apply(spec("good-2", **changes)).until_phase(Phase.BLOCKED)
    assert "allowCoarseWeights" in (story.status.message or "")
    story.apply(spec("good-2", rollout__allowCoarseWeights=True, **changes)).until_phase(Phase.STABLE)


def test_resolved_once_a_generation(golden: Golden) -> None:
    """Without a pin the digest is resolved by a Job of the model's namespace, once for each generation."""
    story = Story().apply(spec("good-1", model__sha256=None)).until_phase(Phase.STABLE).run(60)
    assert sum("resolve" in one for one in story.life.jobs_made) == 1
    story.apply(spec("good-1", model__sha256=None, serving__replicas=2), "fewer replicas").run(30)
    assert sum("resolve" in one for one in story.life.jobs_made) == 2
    golden("resolve.txt", story.text)


def test_history_is_kept_and_the_rest_collected() -> None:
    """historyLimit former revisions keep their ConfigMap; older ones go; a former one comes back without a Job."""
    story = first_deploy(rollout__historyLimit=1)
    for model in ("good-2", "good-3"):
        story.apply(spec(model, rollout__historyLimit=1)).until_phase(Phase.COMPILING).until_phase(Phase.STABLE).run(15)
    kept = [one for one in story.end_state()["objects"] if one.startswith("ConfigMap")]
    assert kept == ["ConfigMap m-B", "ConfigMap m-C"]
    made = len(story.life.jobs_made)
    story.apply(spec("good-2", rollout__historyLimit=1)).until_phase(Phase.PROGRESSING).until_phase(Phase.STABLE)
    assert len(story.life.jobs_made) == made


def test_an_upgrade_of_the_operator_changes_nothing_that_runs() -> None:
    """Newer images do not recompile a running revision; the next changed spec takes them."""
    story = first_deploy()
    before = story.status.stable
    story.upgrade(Images("registry/compiler@sha256:c2", "registry/runtime@sha256:r2")).run(60)
    assert before is not None and story.status.stable is not None
    assert (story.status.stable.revision, story.status.phase) == (before.revision, Phase.STABLE)


def test_equal_models_compile_once() -> None:
    """Two CuvilModels with one model under two URIs share one compile Job, and each can go without the other."""
    story = Story()
    story.apply(spec("good-1"))
    story.name = "n"
    story.apply(spec("good-1", model__uri="https://mirror.example/same.onnx")).until_phase(Phase.STABLE)
    story.name = "m"
    story.until_phase(Phase.STABLE).run(15)
    assert sum("compile" in one for one in story.life.jobs_made) == 1
    assert not [one for one in story.end_state()["objects"] if one.startswith("Job")]


def test_equal_models_compile_once_under_kills() -> None:
    """Also with a controller that dies every few writes, two CuvilModels make one compile Job and both come up."""
    for first in range(1, 8):
        story = Story(kills=list(range(first, 400, 7)))
        story.apply(spec("good-1"))
        story.name = "n"
        story.apply(spec("good-1", model__uri="https://mirror.example/same.onnx")).until_phase(Phase.STABLE)
        story.name = "m"
        story.until_phase(Phase.STABLE).run(15)
        assert sum("compile" in one for one in story.life.jobs_made) == 1, story.text
        assert not [one for one in story.end_state()["objects"] if one.startswith("Job")], story.text


@pytest.mark.parametrize("weight", [37, 50, 62, 63, 88])
@pytest.mark.parametrize("model", ["good-2", "good-3", "good-4"])
def test_shares_that_do_not_round_are_reached(weight: int, model: str) -> None:
    """By pod count a step is reached when its pods are there: 3 beside 5 is 62.5 %, whichever way that is rounded."""
    steps = [{"weight": weight, "hold": "10s"}]
    changes: dict[str, Any] = {"rollout__traffic": None, "rollout__steps": steps, "serving__replicas": 5}
    canary(model=model, **changes).until_phase(Phase.STABLE)


def test_status_stays_small() -> None:
    """Failures with the longest messages that a Job can leave do not make the status grow without bound."""
    story = first_deploy()
    for number in range(30):
        model = f"wrong-{number}"
        story.ends("validate", model, failure(ExitCode.WRONG_NUMBERS, "x" * 3900)).apply(spec(model))
        story.until_phase(Phase.BLOCKED)
        story.until_phase(Phase.BLOCKED).run(1)
    assert len(json.dumps(story.status.to_dict())) < 64_000
    assert len(story.status.quarantine) == 20
