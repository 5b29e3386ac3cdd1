"""Deployments, pods, Services, routes and nodes → what Observed says of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuvil_operator.observe.nodes import read_nodes
from cuvil_operator.observe.routes import percents, read_http_route, read_service
from cuvil_operator.observe.workloads import read_workload, serving_pods

REVISION = "cuvil.dev/revision"


def pod(revision: str, ready: bool = True, **more: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]} | more.pop("status", {})
    meta = {"name": "p", "labels": {REVISION: revision}} | more.pop("metadata", {})
    return {"metadata": meta, "status": status}


def deployment(revision: str, replicas: int = 2, **status: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {REVISION: revision}}, "spec": {"replicas": replicas}, "status": status}


def test_ready_pods_are_those_of_the_newest_template() -> None:
    """During a restart the lesser of ready and updated counts, so an old pod never stands for a new one."""
    seen = read_workload(deployment("r", 3, readyReplicas=3, updatedReplicas=1), [pod("r")] * 3)
    assert (seen.replicas, seen.ready, seen.pods) == (3, 1, 3)


def test_a_fresh_deployment_has_nothing() -> None:
    """No status yet is no pod."""
    seen = read_workload(deployment("r"), [])
    assert (seen.ready, seen.pods, seen.crashing, seen.message) == (0, 0, False, "")


def test_a_crash_is_told_with_the_containers_last_words() -> None:
    """CrashLoopBackOff marks the workload, and its message carries exit code and sentence."""
    state = {
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        "lastState": {"terminated": {"exitCode": 16, "message": "the artifact is truncated\n"}},
    }
    seen = read_workload(deployment("r"), [pod("r", False, status={"containerStatuses": [state]})])
    assert seen.crashing and seen.message == "p ended with exit code 16: the artifact is truncated"


def test_terminating_pods_still_exist_but_are_not_ready() -> None:
    """A pod that is going still counts as a pod, and takes no share."""
    going = pod("r", metadata={"deletionTimestamp": "2030-01-01T12:00:00Z"})
    assert read_workload(deployment("r"), [going]).pods == 1
    assert read_service({"spec": {"selector": {}}}, [going]).weights == {}


def test_job_pods_do_not_serve() -> None:
    """A Job's pod is no serving pod even where it carries a revision."""
    made = pod("r", metadata={"labels": {REVISION: "r", "batch.kubernetes.io/job-name": "j"}})
    assert serving_pods([made, pod("r"), pod("")]) == [pod("r")]


def route(weights: dict[str, int], conditions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    backends = [{"name": f"m-{revision}", "weight": weight} for revision, weight in weights.items()]
    status = {"parents": [{"conditions": conditions}]} if conditions else {}
    return {"metadata": {"generation": 2}, "spec": {"rules": [{"backendRefs": backends}]}, "status": status}


def test_a_routes_weights_are_read_by_revision() -> None:
    """Backend names lose the model's name; a zero weight is no weight."""
    seen = read_http_route("m", route({"a1": 95, "b2": 5, "c3": 0}, [YES]))
    assert seen.exists and seen.accepted and dict(seen.weights) == {"a1": 95, "b2": 5}


YES = {"type": "Accepted", "status": "True", "observedGeneration": 2}
NO = YES | {"status": "False", "reason": "NoMatchingParent", "message": "no such gateway"}
UNRESOLVED = NO | {"type": "ResolvedRefs", "reason": "BackendNotFound", "message": "no such service"}
IN_FORCE: dict[str, tuple[list[dict[str, Any]], str]] = {
    "taken": ([YES], ""),
    "taken, by a Gateway that counts no generations": ([{"type": "Accepted", "status": "True"}], ""),
    "refused": ([NO], "NoMatchingParent: no such gateway"),
    "taken without its backends": ([YES, UNRESOLVED], "BackendNotFound: no such service"),
    "not taken yet": ([], "has not taken it yet"),
    "only the former generation was taken": ([YES | {"observedGeneration": 1}], "has not taken it yet"),
    "only the former generation was refused": ([YES, NO | {"observedGeneration": 1}], ""),
}


@pytest.mark.parametrize(("conditions", "why"), IN_FORCE.values(), ids=IN_FORCE.keys())
def test_weights_count_once_the_gateway_has_taken_them(conditions: list[dict[str, Any]], why: str) -> None:
    """A route is in force when a Gateway has accepted its present generation with all its backends."""
    seen = read_http_route("m", route({"a": 100}, conditions))
    assert seen.accepted is (not why) and why in seen.message


def test_no_route_is_no_traffic() -> None:
    """What does not exist routes nothing."""
    assert not read_http_route("m", None).exists and not read_service(None, []).exists


def test_a_pinned_service_sends_all_to_one() -> None:
    """A selector with a revision is 100 percent, whatever else is ready."""
    seen = read_service({"spec": {"selector": {REVISION: "a"}}}, [pod("a"), pod("b")])
    assert dict(seen.weights) == {"a": 100} and not seen.open


def test_an_open_service_shares_by_ready_pods() -> None:
    """Three ready pods to one are 75 to 25; one that is not ready counts nothing."""
    seen = read_service({"spec": {"selector": {}}}, [pod("a"), pod("a"), pod("a"), pod("b"), pod("b", False)])
    assert dict(seen.weights) == {"a": 75, "b": 25} and seen.open


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 1000), max_size=6))
def test_percents_sum_to_a_hundred(counted: dict[str, int]) -> None:
    """Whole percents of anything that counts sum to 100, each within one of its exact share."""
    shares = percents(counted)
    total = sum(counted.values())
    assert sum(shares.values()) == (100 if total else 0)
    assert all(abs(share - counted[name] * 100 / total) < 1 for name, share in shares.items())


def node(amount: str | None, ready: str = "True", **spec: Any) -> dict[str, Any]:
    allocatable = {} if amount is None else {"nvidia.com/gpu": amount}
    return {"spec": spec, "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]}}


NODES = {
    "one that offers": (node("1"), 1),
    "none left": (node("0"), 0),
    "another kind": (node(None), 0),
    "not ready": (node("1", "Unknown"), 0),
    "cordoned": (node("1", unschedulable=True), 0),
}


@pytest.mark.parametrize(("one", "count"), NODES.values(), ids=NODES.keys())
def test_nodes_that_can_take_a_gpu_pod(one: dict[str, Any], count: int) -> None:
    """Ready, schedulable and advertising: only then a node counts."""
    assert read_nodes([one], "nvidia.com/gpu").by_resource == {"nvidia.com/gpu": count}
