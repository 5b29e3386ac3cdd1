"""What lives in a cluster beside the controller, played on FakeKubernetes: Jobs, Deployments, pods, traffic.

One `advance` is one moment: Jobs end as the script says, Deployments move one pod further, ready pods answer requests
in the proportions of the route that is set. Nothing is random: shares are carried as exact fractions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from cuvil_core.contract import ExitCode, Outcome
from cuvil_operator import conventions as names
from cuvil_operator.facts import RevisionRecord
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes
from cuvil_operator.gateways.resources import CONFIG_MAPS, DEPLOYMENTS, HTTP_ROUTES, JOBS, PODS, SERVICES
from fake_clock import FakeClock

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the pods of one model answer."""

    errors: Fraction = Fraction(0)
    """Share of requests answered with an error."""
    slow: Fraction = Fraction(0)
    """Share of requests slower than the threshold."""
    starts: bool = True
    """False: its pods crash on load."""


@dataclass(slots=True)
class Counters:
    """What a pod's /metrics would show."""

    revision: str
    ok: int = 0
    error: int = 0
    slow: int = 0
    owed: dict[str, Fraction] = field(default_factory=dict)

    def serve(self, requests: Fraction, behaviour: Behaviour) -> None:
        """Answer a fraction of requests; what is less than a whole one is carried on."""
        whole = self._whole("requests", requests)
        errors = self._whole("errors", whole * behaviour.errors)
        self.ok += whole - errors
        self.error += errors
        self.slow += self._whole("slow", whole * behaviour.slow)

    def _whole(self, kind: str, amount: Fraction) -> int:
        owed = self.owed.get(kind, Fraction(0)) + amount
        self.owed[kind] = owed - int(owed)
        return int(owed)


JobScript = Callable[[str, Document], Outcome | None]
"""(stage, Job) → how it ends; None: it never ends."""


@dataclass(slots=True)
class ClusterLife:
    """The rest of the cluster."""

    kubernetes: FakeKubernetes
    clock: FakeClock
    script: JobScript
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    """Model sha256 → behaviour; others are healthy."""
    requests_per_second: int = 100
    job_seconds: float = 3
    ready_seconds: float = 2
    stop_seconds: float = 1
    counters: dict[str, Counters] = field(default_factory=dict)
    """Pod → counters."""
    served: dict[str, int] = field(default_factory=dict)
    """Revision → requests, over all pods and times."""
    dropped: int = 0
    """Requests that found no ready pod."""
    jobs_made: list[str] = field(default_factory=list)
    _born: dict[str, float] = field(default_factory=dict)
    _dying: dict[str, float] = field(default_factory=dict)
    _serial: int = 0

    def __post_init__(self) -> None:
        self.kubernetes.on_change.append(self._take_route)

    def advance(self, seconds: float) -> None:
        """Let that much time pass."""
        self.clock.advance(seconds)
        for job in self._listed(JOBS):
            self._work(job)
        for deployment in self._listed(DEPLOYMENTS):
            self._scale(deployment)
        self._forget_gone()
        self._route(Fraction(seconds).limit_denominator(1000) * self.requests_per_second)

    def ready_pods(self, revision: str) -> list[str]:
        """Give the ready pods of a revision."""
        return [
            pod["metadata"]["name"]
            for pod in self._listed(PODS)
            if pod["metadata"]["labels"].get(names.LABEL_REVISION) == revision and _is_ready(pod)
        ]

    def has_service(self, revision: str) -> bool:
        """True where a backend of a route may name the revision."""
        labels = [service["metadata"]["labels"] for service in self._listed(SERVICES)]
        return any(one.get(names.LABEL_REVISION) == revision for one in labels)

    def weights(self) -> dict[str, int]:
        """Give where requests go now, in shares that need not sum to 100: weights of the route, or ready pods."""
        routes = self._listed(HTTP_ROUTES)
        if routes:
            backends = routes[0]["spec"]["rules"][0]["backendRefs"]
            return {one["name"][-names.REVISION_DIGITS :]: one["weight"] for one in backends}
        entry = [one for one in self._listed(SERVICES) if names.LABEL_REVISION not in one["metadata"]["labels"]]
        if not entry:
            return {}
        pinned = entry[0]["spec"]["selector"].get(names.LABEL_REVISION)
        if pinned:
            return {pinned: 100}
        counted: dict[str, int] = {}
        for pod in self._listed(PODS):
            if _is_ready(pod):
                revision = pod["metadata"]["labels"][names.LABEL_REVISION]
                counted[revision] = counted.get(revision, 0) + 1
        return counted

    def _take_route(self, kind: str, route: Document) -> None:
        """The Gateway's controller takes each generation of a route at once."""
        meta = route["metadata"]
        if route["kind"] != HTTP_ROUTES.kind or kind == "DELETED":
            return
        taken = {"type": "Accepted", "status": "True", "observedGeneration": meta["generation"]}
        status = {"parents": [{"conditions": [taken]}]}
        self.kubernetes.set_status(HTTP_ROUTES, meta["namespace"], meta["name"], status)

    def _listed(self, resource: Any) -> list[Document]:
        return peek(self.kubernetes, resource.kind)

    def _work(self, job: Document) -> None:
        meta, name = job["metadata"], job["metadata"]["name"]
        uid = meta["uid"]
        if uid not in self._born:
            self._born[uid] = self.clock.monotonic()
            self.jobs_made.append(name)
        if job.get("status") or self.clock.monotonic() - self._born[uid] < self.job_seconds:
            return
        outcome = self.script(meta["labels"][names.LABEL_STAGE], job)
        if outcome is not None:
            self._end(job, outcome)

    def _end(self, job: Document, outcome: Outcome) -> None:
        meta = job["metadata"]
        pod: Document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{meta['name']}-pod-{meta['uid'][-4:]}",
                "namespace": meta["namespace"],
                "labels": {**meta["labels"], "batch.kubernetes.io/job-name": meta["name"]},
                "ownerReferences": [_owner(job)],
            },
            "spec": {},
        }
        self.kubernetes.put(pod, "kubelet")
        state = {"terminated": {"exitCode": int(outcome.code), "message": outcome.to_json()}}
        done = outcome.code is ExitCode.OK
        self.kubernetes.set_status(
            PODS,
            meta["namespace"],
            pod["metadata"]["name"],
            {"phase": "Succeeded" if done else "Failed", "containerStatuses": [{"name": "main", "state": state}]},
        )
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Complete" if done else "Failed", "status": "True", "lastTransitionTime": now}
        self.kubernetes.set_status(JOBS, meta["namespace"], meta["name"], {"conditions": [condition]})

    def _scale(self, deployment: Document) -> None:
        meta, wanted = deployment["metadata"], deployment["spec"]["replicas"]
        template = str(deployment["spec"]["template"]["metadata"].get("annotations"))
        own = [one for one in self._listed(PODS) if _owned_by(one, meta["uid"])]
        alive = [one for one in own if one["metadata"]["name"] not in self._dying]
        fresh = [one for one in alive if one["metadata"]["annotations"]["template"] == template]
        stale = [one for one in alive if one not in fresh]
        for _ in range(min(wanted - len(fresh), 1 if stale else wanted)):
            self._start(deployment, template)
        ready = sum(_is_ready(one) for one in fresh)
        surplus = fresh[wanted:] + (stale[:1] if stale and ready + len(stale) > wanted else [])
        for pod in surplus:
            self._stop(pod)
        for pod in own:
            self._live_on(pod)
        self._report(deployment, template)

    def _start(self, deployment: Document, template: str) -> None:
        meta = deployment["metadata"]
        self._serial += 1
        name = f"{meta['name']}-{self._serial:03d}"
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": {"template": template},
                "ownerReferences": [_owner(deployment)],
            },
            "spec": {},
        }
        self.kubernetes.put(pod, "kubelet")
        self._born[name] = self.clock.monotonic()

    def _stop(self, pod: Document) -> None:
        self._dying[pod["metadata"]["name"]] = self.clock.monotonic()
        self._set_ready(pod, False)

    def _live_on(self, pod: Document) -> None:
        name, now = pod["metadata"]["name"], self.clock.monotonic()
        if name in self._dying:
            if now - self._dying[name] >= self.stop_seconds:
                self.kubernetes.remove(PODS, pod["metadata"]["namespace"], name)
            return
        revision = pod["metadata"]["labels"][names.LABEL_REVISION]
        if now - self._born[name] < self.ready_seconds or _is_ready(pod):
            return
        if self._behaviour(revision).starts:
            self.counters.setdefault(name, Counters(revision))
            self._set_ready(pod, True)
        elif not pod.get("status"):
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
            last = {"terminated": {"exitCode": 16, "message": "the artifact is truncated"}}
            status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": waiting, "lastState": last}]}
            self.kubernetes.set_status(PODS, pod["metadata"]["namespace"], name, status)

    def _set_ready(self, pod: Document, ready: bool) -> None:
        meta = pod["metadata"]
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        self.kubernetes.set_status(
            PODS, meta["namespace"], meta["name"], {"phase": "Running", "conditions": [condition]}
        )

    def _report(self, deployment: Document, template: str) -> None:
        meta = deployment["metadata"]
        own = [one for one in self._listed(PODS) if _owned_by(one, meta["uid"])]
        ready = sum(_is_ready(one) for one in own)
        updated = sum(one["metadata"]["annotations"]["template"] == template for one in own)
        status = {"readyReplicas": ready, "updatedReplicas": updated, "replicas": len(own)}
        if deployment.get("status") != status:
            self.kubernetes.set_status(DEPLOYMENTS, meta["namespace"], meta["name"], status)

    def _forget_gone(self) -> None:
        there = {one["metadata"]["name"] for one in self._listed(PODS)}
        self.counters = {pod: counted for pod, counted in self.counters.items() if pod in there}
        self._dying = {pod: since for pod, since in self._dying.items() if pod in there}

    def _route(self, requests: Fraction) -> None:
        weights = self.weights()
        total = sum(weights.values())
        for revision, weight in weights.items():
            share, pods = requests * weight / total, self.ready_pods(revision)
            if not pods:
                self.dropped += int(share)
            for pod in pods:
                before = self.counters[pod].ok + self.counters[pod].error
                self.counters[pod].serve(share / len(pods), self._behaviour(revision))
                gained = self.counters[pod].ok + self.counters[pod].error - before
                self.served[revision] = self.served.get(revision, 0) + gained

    def _behaviour(self, revision: str) -> Behaviour:
        for one in self._listed(CONFIG_MAPS):
            if one["metadata"]["labels"].get(names.LABEL_REVISION) == revision:
                record = RevisionRecord.from_json(one["data"][names.RECORD_KEY])
                return self.behaviours.get(record.model_sha256, Behaviour())
        return Behaviour()


def peek(kubernetes: FakeKubernetes, kind: str) -> list[Document]:
    """Give the objects of a kind as they lie, without copies: to be read, never changed."""
    return [one for key, one in sorted(kubernetes._objects.items(), key=_place) if key[0].kind == kind]


def _place(entry: tuple[Any, Document]) -> tuple[str, str]:
    return entry[0][1], entry[0][2]


def _owner(document: Document) -> Document:
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": document["metadata"]["name"],
        "uid": document["metadata"]["uid"],
    }


def _owned_by(document: Document, uid: str) -> bool:
    return any(one["uid"] == uid for one in document["metadata"].get("ownerReferences") or ())


def _is_ready(pod: Document) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
