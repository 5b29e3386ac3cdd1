"""What all pods have in common: the restricted security profile, writable folders, credentials, where they may run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuvil_operator import conventions as names
from cuvil_operator.api import Resources, Toleration
from cuvil_operator.api.codec import write
from cuvil_operator.render.identity import Document

USER = 65532
"""uid and gid of every image's user `nonroot`."""
CACHE = "/var/cache/cuvil"
CREDENTIALS = "/var/run/cuvil/credentials"
REGISTRY_CREDENTIALS = "/var/run/cuvil/registry"
CONFIG_MAPS = "/var/run/cuvil/config-maps"

POD_SECURITY: Document = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Document = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}

# Feature discovery writes these; a node without them may still have the right GPU, so it is not excluded.
CUDA_MAJOR = "nvidia.com/gpu.compute.major"
CUDA_MINOR = "nvidia.com/gpu.compute.minor"


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume and where the container sees it."""

    name: str
    path: str
    source: Mapping[str, Any]
    """The volume without its name."""
    read_only: bool = False

    def volume(self) -> Document:
        """Give the pod's entry."""
        return {"name": self.name, **self.source}

    def mount(self) -> Document:
        """Give the container's entry."""
        return {"name": self.name, "mountPath": self.path} | ({"readOnly": True} if self.read_only else {})


def scratch(name: str, path: str) -> Mount:
    """Give a folder that lives as long as the pod."""
    return Mount(name, path, {"emptyDir": {}})


def secret(name: str, path: str, secret_name: str) -> Mount:
    """Give a Secret's keys as files.

    Optional: a pod that waits for ever on a missing Secret says less than a command that names it.
    """
    source = {"secret": {"secretName": secret_name, "optional": True, "defaultMode": 0o440}}
    return Mount(name, path, source, read_only=True)


def user_config_map(name: str) -> tuple[Mount, dict[str, str]]:
    """Give mount and environment of a ConfigMap that a user has made; its keys are files of CONFIG_MAPS/NAME.

    Optional and whole, so that the command can tell a missing ConfigMap from a missing key.
    """
    source = {"configMap": {"name": name, "optional": True}}
    return Mount("model", f"{CONFIG_MAPS}/{name}", source, read_only=True), {"CUVIL_CONFIG_MAPS_DIR": CONFIG_MAPS}


def registry_credentials(secret_name: str) -> tuple[list[Mount], dict[str, str]]:
    """Give mount and environment of the artifact registry's credentials; nothing where there is no Secret."""
    if not secret_name:
        return [], {}
    mount = secret("registry", REGISTRY_CREDENTIALS, secret_name)
    return [mount], {"CUVIL_REGISTRY_CREDENTIALS_DIR": REGISTRY_CREDENTIALS}


def environment(variables: Mapping[str, str]) -> list[Document]:
    """Give env entries in order of name; HOME and TMPDIR lie in the scratch folder, since the root is read-only."""
    whole = {"HOME": "/tmp", "TMPDIR": "/tmp", **variables}
    return [{"name": name, "value": whole[name]} for name in sorted(whole)]


def resources(wanted: Resources, defaults: Mapping[str, str], gpu: str | None) -> Document:
    """Give the container's resources: the spec's, small requests where it says nothing, one GPU where needed."""
    limits = {key: str(value) for key, value in wanted.limits.items()}
    requests = {key: str(value) for key, value in wanted.requests.items()}
    # a limit without a request is the request already; a default beside it could exceed it
    requests |= {key: value for key, value in defaults.items() if key not in requests and key not in limits}
    if gpu and gpu not in limits:
        # Kubernetes wants request and limit of an extended resource equal
        limits[gpu] = requests[gpu] = requests.get(gpu, "1")
    return {"requests": requests} | ({"limits": limits} if limits else {})


def placement(
    target: str, node_selector: Mapping[str, str], tolerations: Iterable[Toleration], gpu: str | None
) -> Document:
    """Give nodeSelector, affinity and tolerations: the spec's and those that the target brings."""
    tolerated = [write(one) for one in tolerations]
    if gpu:
        tolerated.append({"key": gpu, "operator": "Exists", "effect": "NoSchedule"})
    terms = _node_terms(target)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    placed: Document = {"affinity": {"nodeAffinity": required}} if terms else {}
    if node_selector:
        placed["nodeSelector"] = dict(node_selector)
    return placed | ({"tolerations": tolerated} if tolerated else {})


def _node_terms(target: str) -> list[Document]:
    """Give alternatives, of which a node must meet one: its processor is known to fit, or nothing is known of it."""
    family, _, architecture = target.partition("-")
    if target == "x86_64-cpu":
        return [_term(("kubernetes.io/arch", "In", ["amd64"]))]
    if family == "cuda":
        digits = architecture.removeprefix("sm_")
        fits = _term((CUDA_MAJOR, "In", [digits[:-1]]), (CUDA_MINOR, "In", [digits[-1]]))
        return [fits, _term((CUDA_MAJOR, "DoesNotExist", []))]
    return []


def _term(*rules: tuple[str, str, Sequence[str]]) -> Document:
    expressions = [
        {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
        for key, operator, values in rules
    ]
    return {"matchExpressions": expressions}


def pod_spec(container: Document, mounts: Sequence[Mount], placed: Document, **more: Any) -> Document:
    """Give a pod of one container under the restricted profile, without an API token."""
    whole = container | {
        "imagePullPolicy": "IfNotPresent",
        "securityContext": CONTAINER_SECURITY,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [one.mount() for one in mounts],
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": POD_SECURITY,
        "containers": [whole],
        "volumes": [one.volume() for one in mounts],
        **placed,
        **more,
    }


def annotations_of_restart(moment: str | None) -> dict[str, str]:
    """Give the pod template's annotation that a later restart changes."""
    return {names.ANNOTATION_RESTARTED_AT: moment} if moment else {}
