"""Where the cluster lives: folders, addresses, ports and names; read from the environment once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

BRIDGE = "cuvil0"
NODE_NAME = "cuvil-node"
NODE_IP = "10.88.0.1"
"""The bridge's address: the node's address, and a host address that every pod can reach."""
POD_CIDR = "10.88.0.0/16"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE_IP = "10.96.0.1"
DNS_IP = "10.96.0.10"
PROMETHEUS_IP = "10.96.0.90"
ALERTMANAGER_IP = "10.96.0.93"
CGROUP = "cuvil-cluster"
NFT_TABLE = "cuvil-cluster"
CONTEXT = "cuvil"
"""The context's name in each kubeconfig that this package writes."""
MEMBER = "CUVIL_CLUSTER_MEMBER"
"""Environment variable that marks each process of a cluster with its state folder, so that `down` finds it."""

API_PORT = 6443
GATEWAY_PORT = 8800
GRPC_GATEWAY_PORT = 8802
TRAEFIK_PORT = 8801
REGISTRY_PORT = 5005
OPERATOR_PORT = 8081
REGISTRY = f"{NODE_IP}:{REGISTRY_PORT}"
"""The registry's name on the host, on the node and in pods alike; plain HTTP."""
REGISTRY_SERVICE = f"registry.registry.svc.cluster.local:{REGISTRY_PORT}"

PORTS: Mapping[str, int] = {
    "etcd": 2379,
    "etcd's peers": 2380,
    "kube-apiserver": API_PORT,
    "kubelet": 10250,
    "kubelet's health": 10248,
    "kube-controller-manager": 10257,
    "kube-scheduler": 10259,
    "kube-proxy's metrics": 10249,
    "kube-proxy's health": 10256,
    "the Gateway": GATEWAY_PORT,
    "the Gateway for gRPC": GRPC_GATEWAY_PORT,
    "Traefik's health": TRAEFIK_PORT,
    "prometheus-operator": OPERATOR_PORT,
    "the registry": REGISTRY_PORT,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The folders of one cluster; `state` is all that it writes and is removed by `down`."""

    state: Path
    programs: Path
    """Root of the built programs, one folder a Go module and version; shared by clusters, never removed."""
    webhook: str
    """Where Alertmanager sends every alert."""
    install: bool
    """Whether missing Debian packages may be installed by apt."""

    @property
    def kubeconfig(self) -> Path:
        return self.state / "admin.kubeconfig"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def socket(self) -> Path:
        return self.state / "containerd" / "containerd.sock"


def from_environment(environ: Mapping[str, str] | None = None, state: str | None = None) -> Settings:
    """Settings by `CUVIL_CLUSTER_{STATE,BIN,WEBHOOK,APT}`; `state` (a command-line flag) wins over the variable."""
    env = os.environ if environ is None else environ
    cache = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/root")) / ".cache")
    found = Settings(
        state=Path(env.get("CUVIL_CLUSTER_STATE") or "/var/lib/cuvil-cluster"),
        programs=Path(env.get("CUVIL_CLUSTER_BIN") or cache / "cuvil" / "cluster" / "bin"),
        webhook=env.get("CUVIL_CLUSTER_WEBHOOK") or "http://alert-sink.monitoring.svc.cluster.local:8080/",
        install=env.get("CUVIL_CLUSTER_APT", "1") != "0",
    )
    found = replace(found, state=Path(state)) if state else found
    return replace(found, state=found.state.absolute(), programs=found.programs.absolute())
