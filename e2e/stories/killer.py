"""Kills the controller with -9 right after each distinct write, and counts.

Watches every kind that the operator writes. A write is distinct by what it did (kind, stage, phase, weights), not by
how often. The process is killed where the node is this machine and the test is root; elsewhere its pod is
deleted without grace, which is SIGKILL as well. Then the pod is replaced, so that the restart backoff of kubelet does
not stretch the story; a new process takes the Lease and goes on from what the cluster holds.
"""

import os
import queue
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from e2e.stories.access import Access, Object, wait
from e2e.stories.replay import weights_of

NAMESPACE = "cuvil-system"
SELECTOR = "app.kubernetes.io/name=cuvil"
MANAGER = "cuvil-operator"
KINDS = (
    ("cuvil.dev/v1alpha1", "CuvilModel"),
    ("batch/v1", "Job"),
    ("v1", "ConfigMap"),
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("policy/v1", "PodDisruptionBudget"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("monitoring.coreos.com/v1", "PodMonitor"),
    ("monitoring.coreos.com/v1", "PrometheusRule"),
)


def what(kind: str, event: str, body: Object) -> str:
    """Name a write by what it did; revisions are left out, so that two runs name it alike."""
    labels = body["metadata"].get("labels", {})
    told = [event, kind]
    if kind == "CuvilModel":
        status = body.get("status") or {}
        step = (status.get("step") or {}).get("index", "-")
        told += [str(status.get("phase")), f"step {step}", f"weight {status.get('weight', 0)}"]
    elif kind == "HTTPRoute":
        told.append("/".join(str(weight) for weight in weights_of(body).values()))
    elif kind == "Deployment":
        told.append(f"replicas {body['spec'].get('replicas')}")
    else:
        told.append(labels.get("cuvil.dev/stage", ""))
    return " ".join(one for one in told if one)


@dataclass
class Killer:
    """Kills while its block runs."""

    access: Access
    namespace: str
    seed: int
    say: Callable[[str], None]
    kills: list[str] = field(default_factory=list)
    least: int = 0
    """While there are fewer kills, one follows also after a write that was killed after before."""
    _writes: "queue.Queue[str]" = field(default_factory=queue.Queue)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Killer":
        self._random = random.Random(self.seed)
        self.say(f"  killing the controller after each distinct write, seed {self.seed}")
        self._threads = [threading.Thread(target=self._watch, args=pair, daemon=True) for pair in KINDS]
        self._threads.append(threading.Thread(target=self._kill_on_writes, daemon=True))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._threads[-1].join(60)

    def _watch(self, version: str, kind: str) -> None:
        last: dict[str, str] = {}
        while not self._stop.is_set():
            try:
                for event in self._events(version, kind):
                    body = event["raw_object"]
                    stamp = _last_write(body)
                    name = body["metadata"]["name"]
                    if stamp and (event["type"] == "DELETED" or last.get(name) != stamp):
                        last[name] = stamp
                        self._writes.put(what(kind, event["type"].lower(), body))
            except Exception:  # the watch was closed; the next one begins where the cluster stands
                time.sleep(0.2)

    def _events(self, version: str, kind: str) -> Iterator[Object]:
        resource = self.access.resource(kind, version)
        yield from self.access.dynamic.watch(resource, namespace=self.namespace, timeout=20)

    def _kill_on_writes(self) -> None:
        done: set[str] = set()
        while not self._stop.is_set():
            try:
                write = self._writes.get(timeout=0.2)
            except queue.Empty:
                continue
            if write not in done or len(self.kills) < self.least:
                done.add(write)
                time.sleep(self._random.choice((0.0, 0.0, 0.02, 0.1)))
                if kill_controller(self.access):
                    self.kills.append(write)
                    self.say(f"  kill {len(self.kills)}: after {write}")
                    while not self._writes.empty():
                        self._writes.get()


def _last_write(body: Object) -> str:
    """Give the newest time at which the operator's fields changed, with the fields themselves."""
    mine = [one for one in body["metadata"].get("managedFields", []) if one.get("manager") == MANAGER]
    return "|".join(sorted(f"{one.get('time')}{sorted(one.get('fieldsV1', {}))}" for one in mine)) and (
        body["metadata"]["resourceVersion"] if mine else ""
    )


def kill_controller(access: Access) -> bool:
    """End every running controller by SIGKILL and let the Deployment make a new pod; False when none ran."""
    pods = [
        pod
        for pod in access.list("v1", "Pod", NAMESPACE, SELECTOR)
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]
    killed = _kill_on_this_node()
    for pod in pods:
        access.resource("Pod", "v1").delete(
            name=pod["metadata"]["name"], namespace=NAMESPACE, body={"gracePeriodSeconds": 0}
        )
    return killed or bool(pods)


def _kill_on_this_node() -> bool:
    if os.geteuid() != 0:
        return False
    found = False
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"cuvil_operator" in words:
            os.kill(int(folder.name), signal.SIGKILL)
            found = True
    return found


def wait_for_controller(access: Access) -> None:
    """Wait until a controller is ready again."""

    def ready() -> bool:
        pods = access.list("v1", "Pod", NAMESPACE, SELECTOR)
        return any(
            one["type"] == "Ready" and one["status"] == "True"
            for pod in pods
            for one in pod["status"].get("conditions", [])
        )

    wait("a ready controller", ready, 120)
