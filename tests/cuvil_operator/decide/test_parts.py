"""The small pure parts: how Jobs end, names by content, backoff, pod shares."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cuvil_core.contract import ExitCode, Outcome
from cuvil_operator.api import CuvilModelSpec, Step
from cuvil_operator.conventions import Reason, Stage
from cuvil_operator.decide import backoff, hashing, jobs, split
from cuvil_operator.facts import Images, JobPhase, JobSeen

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
DONE = JobSeen("j", "u", Stage.COMPILE, "k", JobPhase.SUCCEEDED)
FAILED = replace(DONE, phase=JobPhase.FAILED)


def said(code: ExitCode) -> Outcome:
    """Give a termination message."""
    return Outcome(code, "Why", "the sentence", {"sha256": "5"})


ENDINGS = {
    "pending": (replace(DONE, phase=JobPhase.PENDING), None),
    "running": (replace(DONE, phase=JobPhase.RUNNING, exit_code=1), None),
    "succeeded with its message": (replace(DONE, exit_code=0, outcome=said(ExitCode.OK)), ExitCode.OK),
    "succeeded without a message": (replace(DONE, exit_code=0), ExitCode.INFRASTRUCTURE),
    "succeeded, but the message says it failed": (
        replace(DONE, exit_code=0, outcome=said(ExitCode.BAD_MODEL)),
        ExitCode.INFRASTRUCTURE,
    ),
    "failed with its message": (
        replace(FAILED, exit_code=11, outcome=said(ExitCode.UNSUPPORTED_OP)),
        ExitCode.UNSUPPORTED_OP,
    ),
    "failed with a code of the contract": (replace(FAILED, exit_code=10), ExitCode.BAD_MODEL),
    "failed, but the message says all is well": (
        replace(FAILED, exit_code=1, outcome=said(ExitCode.OK)),
        ExitCode.INTERNAL,
    ),
    "failed with an unknown code": (replace(FAILED, exit_code=3), ExitCode.INTERNAL),
    "killed by a signal": (replace(FAILED, exit_code=139), ExitCode.INTERNAL),
    "out of memory": (replace(FAILED, exit_code=1, oom_killed=True), ExitCode.TOO_LARGE),
    "killed": (replace(FAILED, exit_code=137), ExitCode.TOO_LARGE),
    "past its deadline": (replace(FAILED, deadline_exceeded=True, exit_code=143), ExitCode.TIMEOUT),
    "its pod was lost": (FAILED, ExitCode.INFRASTRUCTURE),
    "no GPU back end yet": (
        replace(FAILED, exit_code=17, outcome=said(ExitCode.UNSUPPORTED_TARGET)),
        ExitCode.UNSUPPORTED_TARGET,
    ),
}


@pytest.mark.parametrize("sentence", ENDINGS)
def test_how_a_job_ended(sentence: str) -> None:
    """Whatever became of the container, the end has one code of the contract and one sentence."""
    job, code = ENDINGS[sentence]
    end = jobs.ended(job)
    assert (end.code if end else None) is code
    assert end is None or end.message


def test_every_failure_has_its_reason() -> None:
    """No exit code but OK is without a reason of its own."""
    codes = [one for one in ExitCode if one is not ExitCode.OK]
    assert len({jobs.Ended(one, "").reason for one in codes}) == len(codes)
    assert jobs.Ended(ExitCode.UNSUPPORTED_TARGET, "").reason is Reason.UNSUPPORTED_TARGET


def test_failures_before_a_retry_are_old() -> None:
    """A failure counts as old by when it ended; without a retry none is."""
    job = replace(FAILED, created_at=NOON, finished_at=NOON + timedelta(minutes=1))
    assert not jobs.failed_before(job, None)
    assert not jobs.failed_before(job, NOON)
    assert jobs.failed_before(job, NOON + timedelta(minutes=2))


def test_backoff_doubles_to_five_minutes() -> None:
    """10, 20, 40, 80, 160 seconds, then five minutes for ever, also after a thousand failures."""
    waits = [backoff.delay(n).total_seconds() for n in (1, 2, 3, 4, 5, 6, 7, 1000)]
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


SPEC: dict[str, Any] = {
    "model": {"uri": "https://h/m.onnx"},
    "target": "x86_64-cpu",
    "slo": {"latency": {"threshold": "800ms"}},
}
IMAGES = Images("compiler@sha256:1", "runtime@sha256:1")


def names(images: Images = IMAGES, digest: str = "0" * 64, **changes: Any) -> tuple[str, str]:
    """Give (compile key, revision) of a changed spec."""
    spec = CuvilModelSpec.from_dict(SPEC | changes)
    mark = hashing.fingerprint(spec, digest)
    return hashing.compile_key(spec, digest, images.compiler), hashing.revision(mark, images)


BOUNDED = {"name": "x", "shape": ["N", 3], "bounds": {"N": {"min": 1, "max": 8}}}
SAME, NEW = True, False
CHANGES = {
    # sentence: (changed names, same compile key, same revision)
    "replicas": (names(serving={"replicas": 9}), SAME, SAME),
    "another URI of the same bytes": (names(model={"uri": "oci://r/x:1"}), SAME, SAME),
    "steps": (names(rollout={"historyLimit": 5}), SAME, SAME),
    "the error objective": (names(slo={"errorRate": "5%", "latency": {"threshold": "800ms"}}), SAME, SAME),
    "a longer compile timeout": (names(compile={"timeout": "2h"}), SAME, SAME),
    "the latency threshold": (names(slo={"latency": {"threshold": "900ms"}}), SAME, NEW),
    "serving resources": (names(serving={"resources": {"limits": {"cpu": "1"}}}), SAME, NEW),
    "accuracy": (names(accuracy={"rtol": "1e-2"}), SAME, NEW),
    "another runtime image": (names(Images(IMAGES.compiler, "runtime@sha256:2")), SAME, NEW),
    "other bytes": (names(digest="1" * 64), NEW, NEW),
    "precision": (names(precision="fp32_strict"), NEW, NEW),
    "target": (names(target="cuda-sm_90"), NEW, NEW),
    "opt level": (names(compile={"optLevel": 3}), NEW, NEW),
    "another compiler image": (names(Images("compiler@sha256:2", IMAGES.runtime)), NEW, NEW),
    "bounds of a symbolic dim": (names(model=SPEC["model"] | {"inputs": [BOUNDED]}), NEW, NEW),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_what_names_an_artifact_and_what_a_revision(sentence: str) -> None:
    """A revision changes with what can change an answer or its speed, a compile key with what can change the bytes."""
    (key, revision), same_key, same_revision = CHANGES[sentence]
    before_key, before_revision = names()
    assert (key == before_key, revision == before_revision) == (same_key, same_revision)


def test_a_revision_is_twelve_hex_digits() -> None:
    """The name fits labels and file names."""
    assert len(names()[1]) == 12 and int(names()[1], 16) >= 0


def test_resolve_key_follows_the_generation() -> None:
    """A tag is looked at once for each generation."""
    spec = CuvilModelSpec.from_dict(SPEC)
    assert hashing.resolve_key(spec, 1) == hashing.resolve_key(spec, 1) != hashing.resolve_key(spec, 2)


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 7, 10, 50])
@pytest.mark.parametrize("weight", [1, 5, 10, 25, 33, 50, 51, 75, 90, 99])
def test_pods_never_exceed_what_was_asked_nor_leave_stable_short(replicas: int, weight: int) -> None:
    """By pod count the canary gets at most its share but for one pod, and stable keeps pods for its own share."""
    pods = split.by_pod_count(replicas, weight)
    share = 100 * pods.canary / (pods.stable + pods.canary)
    assert share <= weight + 1e-9 or 1 in (pods.canary, pods.stable)
    assert pods.stable >= min(replicas, replicas * (100 - weight) / 100)
    assert 1 <= pods.canary <= replicas and 1 <= pods.stable <= replicas
    routed = split.by_gateway(replicas, weight)
    assert routed.stable == replicas and routed.canary >= replicas * weight / 100


def test_unreachable_steps() -> None:
    """One pod beside two is 33 %: more than twice 5 % and 10 %, not more than twice 25 %."""
    steps = tuple(Step(weight, timedelta(seconds=1)) for weight in (25, 50))
    assert split.unreachable(2, steps) is None
    low = Step(10, timedelta(seconds=1))
    assert split.unreachable(2, (low, *steps)) is low
