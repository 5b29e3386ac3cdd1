"""The stage of the stories: one prepared cluster, and what a user does on it."""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tritonclient.http as triton

from e2e.stories import models, workloads
from e2e.stories.access import Access, Object, StoryError, wait
from e2e.stories.load import Load
from e2e.stories.prometheus import Prometheus
from e2e.stories.timeline import Timeline

API = "cuvil.dev/v1alpha1"
KIND = "CuvilModel"
READY_SECONDS = 420.0
"""For a compile, a validation and a deploy on two busy cores."""


ERROR_RATE = 0.02
LATENCY_SECONDS = 0.5
"""What the stories' SLO allows: a share of requests, and p95."""
GOOD = ("base", "retrained")
"""Versions that keep every promise; a rollout goes from one to the other."""
STAGE = "stories"
"""The namespace that the stories of one model share, so that what one proved the next need not prove again."""
GATEWAY_SECONDS = 30.0
"""Until a Gateway goes by a route that it has accepted."""
LOAD_SECONDS = 1500.0
"""After which a load ends by itself, whatever becomes of the test."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where things are, seen from the test and from pods."""

    gateway: str
    """`HOST:PORT` of the Gateway's listener, from the test and from pods alike."""
    registry: str
    """`HOST:PORT` of the registry, from the test and from pods alike; plain HTTP."""


@dataclass(frozen=True, slots=True)
class Version:
    """A model file in the registry."""

    path: Path
    uri: str
    sha256: str


@dataclass
class World:
    """One cluster with Cuvil installed."""

    access: Access
    addresses: Addresses
    runtime_image: str
    source: Path
    """The recognizer that every version is made from."""
    say: Callable[[str], None] = print
    directions: tuple[str, ...] = ()
    """Lines that tell how to look around afterwards."""
    forget_image: Callable[[str], None] | None = None
    """Removes an image from the node; None where the nodes are out of reach."""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="cuvil-stories-")))

    @property
    def prometheus(self) -> Prometheus:
        """The cluster's Prometheus."""
        return Prometheus(self.access)

    def fresh_namespace(self, name: str) -> str:
        """Make an empty namespace under the restricted Pod Security Standard; an old one of the name is removed."""
        self.remove_namespace(name)
        labels = {"pod-security.kubernetes.io/enforce": "restricted", "cuvil-stories": "true"}
        self.access.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.access.apply(workloads.load_files("cuvil-load", name))
        return name

    def remove_namespace(self, name: str) -> None:
        """Delete a namespace and wait until it is gone."""
        self.access.delete("v1", "Namespace", name)
        wait(f"the end of namespace {name}", lambda: self.access.get("v1", "Namespace", name) is None, 120)

    def version(self, kind: str) -> Version:
        """Make a version of the recognizer and push it to the registry."""
        path = models.write_version(kind, self.source, self.folder)
        return self.push(path, f"models/{path.stem}")

    def push(self, path: Path, repository: str) -> Version:
        """Push a model file to a repository of the registry."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        uri = f"oci://{self.addresses.registry}/{repository}:{digest[:12]}"
        command = [sys.executable, "-m", "cuvil_core.cli.main", "push", str(path), uri, "--insecure-registry"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise StoryError(f"pushing {path.name} to {uri} failed: {done.stderr.strip()[-500:]}")
        return Version(path, uri, digest)

    def manifest(self, name: str, namespace: str, version: Version, **changes: Any) -> Object:
        """The stories' CuvilModel; `changes` are paths with `__` for the dots, such as serving__replicas=2."""
        host = f"{name}.{namespace}.example.com"
        spec: Object = {
            "model": {
                "uri": version.uri,
                "sha256": version.sha256,
                "inputs": [
                    {
                        "name": "x",
                        "shape": ["N", 3, 48, "W"],
                        "bounds": {"N": {"min": 1, "max": 8}, "W": {"min": 32, "max": 640}},
                    }
                ],
            },
            "target": "x86_64-cpu",
            "precision": "fp32",
            "serving": {
                "replicas": 1,
                "rejectNonFinite": True,
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            },
            "slo": {
                "errorRate": f"{100 * ERROR_RATE:g}%",
                "latency": {"percentile": 95, "threshold": f"{1000 * LATENCY_SECONDS:g}ms"},
                "window": "30d",
            },
            "rollout": {
                "steps": [{"weight": 20, "hold": "10s"}, {"weight": 50, "hold": "10s"}],
                "analysis": {"interval": "5s", "onNoData": "Hold", "falseRollback": "1%"},
                "progressDeadline": "5m",
                "traffic": {
                    "gateway": {"name": "main", "namespace": "gateway", "sectionName": "web"},
                    "hostnames": [host],
                },
            },
        }
        for path, value in changes.items():
            _set(spec, path.split("__"), value)
        return {"apiVersion": API, "kind": KIND, "metadata": {"name": name, "namespace": namespace}, "spec": spec}

    def apply(self, manifest: Object) -> None:
        """Do what `kubectl apply` does."""
        self.access.apply(manifest)

    def model(self, name: str, namespace: str) -> Object:
        """Give the CuvilModel as it is now; raises StoryError when there is none."""
        found = self.access.get(API, KIND, name, namespace)
        if found is None:
            raise StoryError(f"there is no CuvilModel {namespace}/{name}")
        return found

    def status(self, name: str, namespace: str) -> Object:
        """Give the status of a CuvilModel; empty before its first turn."""
        return dict(self.model(name, namespace).get("status") or {})

    def wait_status(
        self, name: str, namespace: str, what: str, test: Callable[[Object], Any], seconds: float
    ) -> Object:
        """Wait until the status of the present generation satisfies the test."""

        def look() -> Object | None:
            model = self.model(name, namespace)
            status = dict(model.get("status") or {})
            current = status.get("observedGeneration") == model["metadata"]["generation"]
            return status if current and test(status) else None

        try:
            return dict(wait(f"{namespace}/{name} to be {what}", look, seconds))
        except StoryError as fault:
            raise StoryError(f"{fault}; status: {_brief(self.status(name, namespace))}") from None

    def wait_stable(self, name: str, namespace: str, seconds: float = READY_SECONDS, not_revision: str = "") -> Object:
        """Wait until the spec's revision serves all traffic."""

        def done(status: Object) -> bool:
            revision = (status.get("stable") or {}).get("revision")
            return status.get("phase") == "Stable" and revision not in ("", None, not_revision)

        return self.wait_status(name, namespace, "Stable", done, seconds)

    def wait_answered(self, name: str, namespace: str) -> None:
        """Wait until the Gateway answers for a model: it says that it took a route a moment before it goes by it."""
        client, host = triton.InferenceServerClient(self.addresses.gateway), self.host(name, namespace)
        wait(
            f"the Gateway to answer for {host}",
            lambda: client.is_server_ready(headers={"Host": host}),
            GATEWAY_SECONDS,
            every=0.1,
        )

    def command(self, name: str, namespace: str, text: str) -> None:
        """Write the command annotation, as `kubectl annotate` does."""
        self.access.annotate(API, KIND, name, namespace, "cuvil.dev/command", text)

    def host(self, name: str, namespace: str) -> str:
        """Give the hostname that the Gateway routes to a model."""
        return str(self.model(name, namespace)["spec"]["rollout"]["traffic"]["hostnames"][0])

    @contextmanager
    def watched(self, name: str, namespace: str) -> Iterator[Timeline]:
        """Tell each change of a model's state while the block runs."""
        with Timeline(self.access, namespace, name, self.say) as timeline:
            yield timeline

    def load(self, name: str, namespace: str, rate: float, concurrency: int = 16, batch: int = 1) -> Load:
        """Start a Job in the cluster that sends requests through the Gateway until it is stopped."""
        self._end_loads()
        self.wait_answered(name, namespace)
        words = [
            f"http://{self.addresses.gateway}",
            name,
            f"{rate:g}",
            f"{LOAD_SECONDS:g}",
            str(concurrency),
            str(batch),
        ]
        return Load.start(self.access, namespace, self.runtime_image, [*words, self.host(name, namespace)])

    def _end_loads(self) -> None:
        """One load at a time: one that a failed story left behind would change what the next one measures."""
        for job in self.access.list("batch/v1", "Job", labels="cuvil-stories=load"):
            self._delete_job(job)

    def _delete_job(self, job: Object) -> None:
        meta = job["metadata"]
        self.access.resource("Job", "batch/v1").delete(
            name=meta["name"], namespace=meta["namespace"], body={"propagationPolicy": "Background"}
        )

    def forget_jobs(self, namespace: str) -> None:
        """Delete a namespace's finished Jobs, as their time to live does: what a former run found must tell nothing."""
        for job in self.access.list("batch/v1", "Job", namespace, labels="cuvil.dev/stage"):
            if any(one["type"] in ("Complete", "Failed") for one in (job.get("status") or {}).get("conditions") or ()):
                self._delete_job(job)

    def steady(self, name: str, namespace: str) -> tuple[str, str]:
        """Give (kind, revision) of a model that serves a good version at rest; deploys one where there is none."""
        if self.access.get("v1", "Namespace", namespace) is None:
            self.fresh_namespace(namespace)
        if self.access.get(API, KIND, name, namespace) is None:
            self.apply(self.manifest(name, namespace, self.version("base")))
            return "base", str(self.wait_stable(name, namespace)["stable"]["revision"])
        serving = (self.status(name, namespace).get("stable") or {}).get("modelSha256")
        kind = next((one for one in GOOD if self.version(one).sha256 == serving), "base")
        self.apply(self.manifest(name, namespace, self.version(kind)))
        return kind, str(self.wait_stable(name, namespace)["stable"]["revision"])


def other(kind: str) -> str:
    """Give the other of the two good versions."""
    return next(one for one in GOOD if one != kind)


def _set(spec: Object, path: list[str], value: Any) -> None:
    *parents, last = path
    for key in parents:
        spec = spec.setdefault(key, {})
    if value is None:
        spec.pop(last, None)
    else:
        spec[last] = value


def _brief(status: Object) -> str:
    told = {one["type"]: f"{one['status']} {one['reason']}: {one['message']}" for one in status.get("conditions", [])}
    return f"phase {status.get('phase')}, {status.get('message')}; {told}"
