"""What runs on the cluster before any story: name server, registry, Gateway, Prometheus and Alertmanager.

Manifests lie in `manifests/`, filled in by `values`. Traefik and prometheus-operator run as host processes: they need
no image and no RBAC, and Traefik's entry points are reachable from the host and from every pod at the node's address.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from string import Template

from e2e.cluster.commands import wait_until
from e2e.cluster.node import Kubectl
from e2e.cluster.processes import Process, ensure, watch
from e2e.cluster.programs import ALERTMANAGER_VERSION, PROMETHEUS_VERSION, Programs
from e2e.cluster.progress import step
from e2e.cluster.settings import (
    ALERTMANAGER_IP,
    DNS_IP,
    GATEWAY_PORT,
    GRPC_GATEWAY_PORT,
    NODE_IP,
    OPERATOR_PORT,
    PROMETHEUS_IP,
    REGISTRY,
    REGISTRY_PORT,
    TRAEFIK_PORT,
    Settings,
)

MANIFESTS = Path(__file__).parent / "manifests"
TRAEFIK = Path(__file__).parent / "traefik.yaml"
REGISTRY_OWNER = 65534
GATEWAY_URL = f"http://{NODE_IP}:{GATEWAY_PORT}"
PROMETHEUS_URL = f"http://{PROMETHEUS_IP}:9090"
ALERTMANAGER_URL = f"http://{ALERTMANAGER_IP}:9093"


def values(settings: Settings, images: Mapping[str, str]) -> dict[str, str]:
    """What the manifests' placeholders stand for; `images` maps an addon to its reference."""
    return {
        "coredns": images["coredns"],
        "registry_image": images["registry"],
        "prometheus": images["prometheus"],
        "alertmanager": images["alertmanager"],
        "prometheus_version": PROMETHEUS_VERSION,
        "alertmanager_version": ALERTMANAGER_VERSION,
        "state": str(settings.state),
        "webhook": settings.webhook,
        "dns_ip": DNS_IP,
        "node_ip": NODE_IP,
        "prometheus_ip": PROMETHEUS_IP,
        "alertmanager_ip": ALERTMANAGER_IP,
        "registry": REGISTRY,
        "registry_port": str(REGISTRY_PORT),
        "gateway_port": str(GATEWAY_PORT),
        "grpc_gateway_port": str(GRPC_GATEWAY_PORT),
    }


def render(name: str, filled: Mapping[str, str]) -> str:
    """The manifest `manifests/NAME.yaml` with every placeholder filled; KeyError when one has no value."""
    return Template((MANIFESTS / f"{name}.yaml").read_text()).substitute(filled)


def start(settings: Settings, programs: Programs, kubectl: Kubectl, images: Mapping[str, str]) -> None:
    """Applies what changed since the last time and returns when every addon answers."""
    filled = values(settings, images)
    crds = [programs.crds("gateway"), programs.crds("kubernetes")]
    names = ("namespaces", "coredns", "registry", "gateway", "monitoring")
    digest = _digest(crds, [render(name, filled) for name in names])
    record = settings.state / "addons.digest"
    # A story that was killed may have left Prometheus or the registry scaled to nothing.
    unwell = not all(answers(HEALTH[name]) for name in IN_CLUSTER)
    if unwell or not record.exists() or record.read_text() != digest:
        _apply(settings, kubectl, crds, names, filled)
        record.write_text(digest)
    with step("Traefik and prometheus-operator run"):
        _start_processes(settings, programs, images)
    with step("CoreDNS, registry, Prometheus and Alertmanager ready"):
        _wait(kubectl)
        for name in IN_CLUSTER:
            wait_until(f"an answer of {name} at {HEALTH[name]}", partial(answers, HEALTH[name]), seconds=60)


def processes(settings: Settings, programs: Programs, images: Mapping[str, str]) -> tuple[Process, ...]:
    """The addons that run on the host."""
    kubeconfig = {"KUBECONFIG": str(settings.kubeconfig)}
    traefik = (
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        f"--entrypoints.web.address={NODE_IP}:{GATEWAY_PORT}",
        "--entrypoints.web.http.middlewares=whole-body@file",
        f"--providers.file.filename={TRAEFIK}",
        f"--entrypoints.grpc.address={NODE_IP}:{GRPC_GATEWAY_PORT}",
        f"--entrypoints.traefik.address=127.0.0.1:{TRAEFIK_PORT}",
        "--providers.kubernetesgateway=true",
        f"--providers.kubernetesgateway.statusaddress.ip={NODE_IP}",
        # The default of 2 s would be most of the time from a weight's change to its effect.
        "--providers.providersthrottleduration=100ms",
        "--ping=true",
        "--metrics.prometheus=true",
        "--log.level=INFO",
    )
    operator = (
        f"--web.listen-address=127.0.0.1:{OPERATOR_PORT}",
        f"--prometheus-config-reloader={images['config-reloader']}",
        *(f"--config-reloader-{what}=0" for what in ("cpu-request", "cpu-limit", "memory-request", "memory-limit")),
    )
    return (
        Process("traefik", (str(programs.path("traefik")), *traefik), kubeconfig, (TRAEFIK,)),
        Process("prometheus-operator", (str(programs.path("prometheus-operator")), *operator), kubeconfig),
    )


def answers(url: str) -> bool:
    """Whether the address answers GET with a status under 400 within a second."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=1) as answer:
            return bool(answer.status < 400)
    except (OSError, urllib.error.URLError):
        return False


HEALTH: Mapping[str, str] = {
    "traefik": f"http://127.0.0.1:{TRAEFIK_PORT}/ping",
    "prometheus-operator": f"http://127.0.0.1:{OPERATOR_PORT}/healthz",
    "registry": f"http://{REGISTRY}/v2/",
    "prometheus": f"{PROMETHEUS_URL}/-/ready",
    "alertmanager": f"{ALERTMANAGER_URL}/-/ready",
}
"""Addon → the address that tells from the host whether it is well."""
IN_CLUSTER = ("registry", "prometheus", "alertmanager")
"""Addons that run as pods and can be asked from the host."""


def _apply(
    settings: Settings, kubectl: Kubectl, crds: list[Path], names: tuple[str, ...], filled: Mapping[str, str]
) -> None:
    data = settings.state / "registry"
    data.mkdir(exist_ok=True)
    os.chown(data, REGISTRY_OWNER, REGISTRY_OWNER)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=_joined(names[:3], filled))
    with step("applied the CRDs of Gateway API and prometheus-operator"):
        # Too large for client-side apply, which would keep a second copy in an annotation.
        kubectl("apply", "--server-side", "--force-conflicts", *(word for crd in crds for word in ("-f", crd)))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=_joined(names[3:], filled))


def _joined(names: tuple[str, ...], filled: Mapping[str, str]) -> str:
    return "\n---\n".join(render(name, filled) for name in names)


def _start_processes(settings: Settings, programs: Programs, images: Mapping[str, str]) -> None:
    started = [(process, ensure(settings, process)) for process in processes(settings, programs, images)]
    for process, fresh in started:
        if fresh:
            watch(settings, process, partial(answers, HEALTH[process.name]), seconds=60)


def _wait(kubectl: Kubectl) -> None:
    kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s", timeout=130)
    kubectl("-n", "registry", "rollout", "status", "deployment/registry", "--timeout=120s", timeout=130)
    for kind in ("prometheus", "alertmanager"):
        kubectl("-n", "monitoring", "wait", "--for=create", f"statefulset/{kind}-main", "--timeout=60s")
        kubectl("-n", "monitoring", "rollout", "status", f"statefulset/{kind}-main", "--timeout=180s", timeout=190)


def _digest(folders: list[Path], texts: list[str]) -> str:
    seen = hashlib.sha256("\0".join(texts).encode())
    for folder in folders:
        # The folder's name carries its module's key, so its files need not be read.
        seen.update(str(folder).encode())
    return seen.hexdigest()
