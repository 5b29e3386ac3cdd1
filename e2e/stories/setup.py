"""Makes the stage: cluster, images, chart, receiver of alerts. What is done already is skipped or quick."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from e2e.cluster import lifecycle, settings
from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.images import forget
from e2e.cluster.programs import Programs
from e2e.cluster.progress import say, step
from e2e.stories import workloads
from e2e.stories.access import Access, wait
from e2e.stories.killer import NAMESPACE
from e2e.stories.world import STAGE, Addresses, World
from images.build import build

TREE = Path(__file__).resolve().parents[2]
CHART = TREE / "charts" / "cuvil"
RELEASE = "cuvil"
PROMETHEUS = "http://prometheus-operated.monitoring.svc.cluster.local:9090"
NEEDED = (
    ("gateway.networking.k8s.io/v1", "HTTPRoute", "the Gateway API and a controller such as Traefik"),
    ("monitoring.coreos.com/v1", "PrometheusRule", "prometheus-operator with a Prometheus and an Alertmanager"),
)
"""apiVersion, kind, and what brings it."""
GATEWAY_VARIABLE = "CUVIL_E2E_GATEWAY"
REGISTRY_VARIABLE = "CUVIL_E2E_REGISTRY"


class SetupError(Exception):
    """The stage cannot be made; one sentence with the cure."""


def prepare(context: str | None, announce: Callable[[str], None] = print) -> World:
    """Give a World on the embedded cluster, or on a context of the user's kubeconfig; raises SetupError."""
    try:
        return _prepare(context, announce)
    except ClusterError as fault:
        raise SetupError(str(fault)) from fault
    except ConfigException as fault:
        raise SetupError(
            f"the context {context!r} cannot be used: {fault}; see `kubectl config get-contexts`"
        ) from fault


def _prepare(context: str | None, announce: Callable[[str], None]) -> World:
    from models import model_path

    chosen = settings.from_environment()
    if context is None:
        lifecycle.up(chosen)
    access = Access(None if context else str(chosen.kubeconfig), context)
    _check(access)
    addresses = _addresses()
    with step("the three images are in the registry"):
        images = build(addresses.registry)
    with step("the recognizer's model file is at hand"):
        source = model_path("ppocr-rec")
    with step("the chart is installed"):
        _install(access, chosen, images, addresses)
    with step("the receiver of alerts runs"):
        _receive_alerts(access, images["runtime"])
    return World(
        access,
        addresses,
        images["runtime"],
        source,
        announce,
        directions=_directions(chosen, context),
        forget_image=None if context else partial(forget, chosen),
    )


def _check(access: Access) -> None:
    """Raises SetupError unless the cluster answers and has the kinds that the stories need."""
    try:
        client.VersionApi(access.api).get_code(_request_timeout=15)
    except (ApiException, HTTPError) as fault:
        cause = getattr(fault, "reason", fault)
        raise SetupError(f"the cluster does not answer ({cause}); look at your kubeconfig and context") from fault
    for version, kind, bringer in NEEDED:
        try:
            access.resource(kind, version)
        except ResourceNotFoundError as fault:
            raise SetupError(f"the cluster has no {kind} of {version}: install {bringer}") from fault


def _addresses() -> Addresses:
    return Addresses(
        gateway=os.environ.get(GATEWAY_VARIABLE, f"{settings.NODE_IP}:{settings.GATEWAY_PORT}"),
        registry=os.environ.get(REGISTRY_VARIABLE, settings.REGISTRY),
    )


def _install(access: Access, chosen: settings.Settings, images: dict[str, str], addresses: Addresses) -> None:
    programs = Programs(chosen.programs)
    programs.ensure(["helm"])
    kube = ["--kubeconfig", access.kubeconfig] if access.kubeconfig else ["--kube-context", str(access.context)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as values:
        yaml.safe_dump(chart_values(images, addresses), values)
        values.flush()
        command = [str(programs.path("helm")), "upgrade", "--install", RELEASE, str(CHART), *kube]
        command += [
            "--namespace",
            NAMESPACE,
            "--create-namespace",
            "--values",
            values.name,
            "--wait",
            "--timeout",
            "3m",
        ]
        run(command, timeout=240)


def chart_values(images: dict[str, str], addresses: Addresses) -> dict[str, object]:
    """Give the values that differ from the chart's defaults on a small test cluster."""
    return {
        "images": {name: images[name] for name in ("operator", "compiler", "runtime")},
        "artifacts": {"repository": f"{addresses.registry}/artifacts", "insecure": True},
        "prometheus": {"url": PROMETHEUS},
        "models": {"allowedHosts": [addresses.registry.partition(":")[0]]},
        "leaderElection": {"leaseSeconds": 10},
        "monitoring": {"podMonitor": {"interval": "1s"}},
    }


def _receive_alerts(access: Access, image: str) -> None:
    for body in workloads.alert_sink("monitoring", image):
        access.apply(body)

    def ready() -> bool:
        found = access.get("apps/v1", "Deployment", "alert-sink", "monitoring") or {}
        return bool((found.get("status") or {}).get("readyReplicas"))

    wait("the receiver of alerts", ready, 120)


def _directions(chosen: settings.Settings, context: str | None) -> tuple[str, ...]:
    """Tell how to look around afterwards."""
    built = Programs(chosen.programs).path("kubectl")
    kubectl = f"kubectl --context {context}" if context else f"{built} --kubeconfig {chosen.kubeconfig}"
    say("the stage is set")
    return (
        f"models      {kubectl} get cuvil --all-namespaces",
        f"Prometheus  {kubectl} -n monitoring port-forward svc/prometheus-operated 9090",
        f"a model     {kubectl} -n {STAGE} port-forward svc/rec 8080:80, then GET http://localhost:8080/v2/models/rec",
        f"operator    {kubectl} -n {NAMESPACE} logs deployment/{RELEASE}",
        "the end     make clean"
        if context is None
        else f"the end     helm --kube-context {context} -n {NAMESPACE} uninstall {RELEASE}",
    )
