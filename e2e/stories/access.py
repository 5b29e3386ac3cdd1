"""Reaches one cluster as its user would: typed errors, server-side apply, waits with a reason, Prometheus by proxy.

Takes a kubeconfig context, so that the stories run against the embedded cluster and any other alike.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kubernetes import client, config, dynamic
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from e2e.cluster import settings

MANAGER = "cuvil-stories"

Object = dict[str, Any]


class StoryError(AssertionError):
    """A story did not go as promised; the message says what was awaited and what was seen last."""


@dataclass(frozen=True)
class Access:
    """One cluster behind one context of a kubeconfig."""

    kubeconfig: str | None = None
    context: str | None = None

    @cached_property
    def api(self) -> client.ApiClient:
        """The connection."""
        loaded = client.Configuration()
        config.load_kube_config(self.kubeconfig, self.context, client_configuration=loaded)
        return client.ApiClient(loaded)

    @cached_property
    def dynamic(self) -> dynamic.DynamicClient:
        """The discovery client over `api`."""
        return dynamic.DynamicClient(self.api)

    def resource(self, kind: str, version: str) -> Any:
        """Find a resource by kind and apiVersion."""
        return self.dynamic.resources.get(api_version=version, kind=kind)

    def apply(self, body: Object) -> Object:
        """Server-side apply one object; raises ApiException with the API server's sentence."""
        found = self.resource(body["kind"], body["apiVersion"])
        made = self.dynamic.server_side_apply(
            found,
            body=body,
            name=body["metadata"]["name"],
            namespace=body["metadata"].get("namespace"),
            field_manager=MANAGER,
            force_conflicts=True,
        )
        return dict(made.to_dict())

    def get(self, version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Give one object, or None where there is none."""
        try:
            return dict(self.resource(kind, version).get(name=name, namespace=namespace).to_dict())
        except NotFoundError:
            return None

    def list(self, version: str, kind: str, namespace: str | None = None, labels: str = "") -> list[Object]:
        """Give all objects of a kind, in a namespace or everywhere."""
        found = self.resource(kind, version).get(namespace=namespace, label_selector=labels)
        return [item.to_dict() for item in found.items]

    def delete(self, version: str, kind: str, name: str, namespace: str | None = None) -> None:
        """Ask for the end of one object; nothing happens where there is none."""
        try:
            self.resource(kind, version).delete(name=name, namespace=namespace)
        except NotFoundError:
            return

    def annotate(self, version: str, kind: str, name: str, namespace: str, key: str, value: str | None) -> None:
        """Set or remove one annotation, as `kubectl annotate` does."""
        self.resource(kind, version).patch(
            body={"metadata": {"annotations": {key: value}}},
            name=name,
            namespace=namespace,
            content_type="application/merge-patch+json",
        )

    def logs(self, namespace: str, pod: str) -> str:
        """Give what the pod's one container printed."""
        return str(client.CoreV1Api(self.api).read_namespaced_pod_log(pod, namespace, _preload_content=True))

    def through_service(self, namespace: str, service: str, path: str, query: dict[str, str] | None = None) -> Any:
        """GET a path of a Service (`NAME:PORT`) through the API server; gives parsed JSON."""
        answer = self.dynamic.request(
            "GET",
            f"/api/v1/namespaces/{namespace}/services/{service}/proxy/{path}",
            query_params=list((query or {}).items()),
            serialize=False,
        )
        return json.loads(answer.data)


def reached() -> Access:
    """Give the cluster that `make e2e` set up, else that of $KUBECONFIG, else the embedded one; fails with the cure."""
    embedded = str(settings.from_environment().kubeconfig)
    kubeconfig = os.environ.get("CUVIL_E2E_KUBECONFIG") or os.environ.get("KUBECONFIG") or embedded
    context = os.environ.get("CUVIL_E2E_CONTEXT") or None
    if context is None and not Path(kubeconfig).exists():
        raise StoryError("no cluster: run `python -m e2e.cluster up`, or set KUBECONFIG")
    return Access(kubeconfig if Path(kubeconfig).exists() else None, context)


def wait(what: str, look: Callable[[], Any], seconds: float, every: float = 0.5) -> Any:
    """Look until the answer is truthy; raises StoryError that names what was awaited and the last answer."""
    deadline = time.monotonic() + seconds
    seen: Any = None
    while time.monotonic() < deadline:
        try:
            seen = look()
        except (ApiException, ConflictError, ConnectionError) as fault:
            seen = fault
        else:
            if seen:
                return seen
        time.sleep(every)
    raise StoryError(f"waited {seconds:.0f} s for {what}; last seen: {seen!r}"[:2000])


def conditions(model: Object) -> Iterator[tuple[str, Object]]:
    """Give the conditions of a CuvilModel by type."""
    for one in model.get("status", {}).get("conditions", []):
        yield one["type"], one
