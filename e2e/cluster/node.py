"""The control plane and the node: each program's command line and configuration, started in the order of need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from e2e.cluster.commands import attempt, run
from e2e.cluster.network import masquerade_all
from e2e.cluster.processes import Process, ensure, watch
from e2e.cluster.programs import Programs
from e2e.cluster.progress import step
from e2e.cluster.settings import (
    API_PORT,
    CGROUP,
    DNS_IP,
    NODE_IP,
    NODE_NAME,
    POD_CIDR,
    REGISTRY,
    REGISTRY_SERVICE,
    SERVICE_CIDR,
    Settings,
)

ETCD = "http://127.0.0.1:2379"


class Kubectl:
    """kubectl as the cluster's administrator."""

    def __init__(self, settings: Settings, programs: Programs) -> None:
        self._argv = (str(programs.path("kubectl")), f"--kubeconfig={settings.kubeconfig}")

    def __call__(self, *words: str | Path, text: str | None = None, timeout: float = 120) -> str:
        return run([*self._argv, *words], text=text, timeout=timeout)

    def succeeds(self, *words: str | Path) -> bool:
        """Whether the call ended well; for readiness."""
        return attempt([*self._argv, "--request-timeout=5s", *words])


def start_runtime(settings: Settings, pause: str) -> None:
    """containerd, with every path of it under the state folder."""
    _write(settings.state / "containerd" / "config.toml", containerd_configuration(settings.state, pause))
    for host in (REGISTRY, REGISTRY_SERVICE):
        _write(settings.state / "containerd" / "certs.d" / host / "hosts.toml", registry_hosts())
    process = runtime_process(settings)
    if ensure(settings, process):
        client = ["ctr", "--address", str(settings.socket), "version"]
        watch(settings, process, lambda: attempt(client), seconds=30)


def start_control_plane(settings: Settings, programs: Programs, kubectl: Kubectl) -> None:
    """etcd, kube-apiserver, controller-manager and scheduler; returns when the API is ready."""
    etcd, api, *rest = control_plane(settings, programs)
    with step("kube-apiserver ready"):
        ensure(settings, etcd)
        ensure(settings, api)
        watch(settings, api, lambda: kubectl.succeeds("get", "--raw", "/readyz"), seconds=120)
    for process in rest:
        ensure(settings, process)


def start_node(settings: Settings, programs: Programs, kubectl: Kubectl) -> None:
    """kubelet and kube-proxy; returns when the node is Ready."""
    _write(settings.state / "kubelet.json", json.dumps(kubelet_configuration(settings.state), indent=1))
    _write(settings.state / "proxy.json", json.dumps(proxy_configuration(settings.state), indent=1))
    kubelet, proxy = node_processes(settings, programs)
    with step(f"node {NODE_NAME} Ready"):
        ensure(settings, kubelet)
        ensure(settings, proxy)
        watch(settings, kubelet, lambda: kubectl.succeeds("get", "node", NODE_NAME), seconds=60)
        kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", "--timeout=90s")


def all_processes(settings: Settings, programs: Programs) -> tuple[Process, ...]:
    """Each host process of control plane and node, in order of start."""
    return (runtime_process(settings), *control_plane(settings, programs), *node_processes(settings, programs))


def runtime_process(settings: Settings) -> Process:
    configuration = settings.state / "containerd" / "config.toml"
    return Process("containerd", ("containerd", "--config", str(configuration)), reads=(configuration,))


def control_plane(settings: Settings, programs: Programs) -> tuple[Process, ...]:
    """etcd first, then the API server, then what speaks to it."""
    pki, state = settings.state / "pki", settings.state

    def process(name: str, *flags: str) -> Process:
        return Process(name, (str(programs.path(name)), *flags))

    return (
        process(
            "etcd",
            f"--data-dir={state}/etcd",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            # A test cluster's data need not survive a power cut, and the disk is the slowest part.
            "--unsafe-no-fsync",
        ),
        process("kube-apiserver", *_api_flags(pki)),
        process(
            "kube-controller-manager",
            f"--kubeconfig={state}/controller-manager.kubeconfig",
            f"--service-account-private-key-file={pki}/accounts.key",
            f"--root-ca-file={pki}/ca.crt",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--allocate-node-cidrs=false",
            "--bind-address=127.0.0.1",
        ),
        process(
            "kube-scheduler",
            f"--kubeconfig={state}/scheduler.kubeconfig",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
        ),
    )


def node_processes(settings: Settings, programs: Programs) -> tuple[Process, ...]:
    """kubelet and kube-proxy."""
    state = settings.state
    kubelet = Process(
        "kubelet",
        (
            str(programs.path("kubelet")),
            f"--kubeconfig={state}/kubelet.kubeconfig",
            f"--config={state}/kubelet.json",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={NODE_IP}",
            f"--root-dir={state}/kubelet",
        ),
        reads=(state / "kubelet.json",),
    )
    proxy = Process(
        "kube-proxy",
        (str(programs.path("kube-proxy")), f"--config={state}/proxy.json", f"--hostname-override={NODE_NAME}"),
        reads=(state / "proxy.json",),
    )
    return kubelet, proxy


def _api_flags(pki: Path) -> tuple[str, ...]:
    return (
        f"--etcd-servers={ETCD}",
        f"--secure-port={API_PORT}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_IP}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/accounts.pub",
        f"--service-account-signing-key-file={pki}/accounts.key",
        f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key",
        # Without this, logs and exec would look the node's name up in a DNS that does not know it.
        "--kubelet-preferred-address-types=InternalIP",
        f"--proxy-client-cert-file={pki}/front-proxy.crt",
        f"--proxy-client-key-file={pki}/front-proxy.key",
        f"--requestheader-client-ca-file={pki}/ca.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
    )


def kubelet_configuration(state: Path) -> Mapping[str, object]:
    """Every path under the state folder; 1 s refresh, so that a changed rule reaches Prometheus within two seconds."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{state}/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{state}/pki/kubelet.crt",
        "tlsPrivateKeyFile": f"{state}/pki/kubelet.key",
        "address": NODE_IP,
        "containerRuntimeEndpoint": f"unix://{state}/containerd/containerd.sock",
        "podLogsDir": f"{state}/pods",
        "volumePluginDir": f"{state}/kubelet-plugins",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        # Lowering an OOM score needs CAP_SYS_RESOURCE, which root does not have everywhere.
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "syncFrequency": "1s",
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "clusterDNS": [DNS_IP],
        "clusterDomain": "cluster.local",
        "resolvConf": "/etc/resolv.conf",
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }


def proxy_configuration(state: Path) -> Mapping[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": "127.0.0.1",
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "clientConnection": {"kubeconfig": f"{state}/proxy.kubeconfig"},
        "clusterCIDR": POD_CIDR,
        "nftables": {"masqueradeAll": masquerade_all()},
        "conntrack": {"maxPerCore": 0},
        "oomScoreAdj": 0,
    }


def containerd_configuration(state: Path, pause: str) -> str:
    """Version 2 of the format, which containerd 1.6 and 2 both read."""
    folder, cri = state / "containerd", 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{folder}/root"
state = "{folder}/run"
[grpc]
  address = "{state}/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[{cri}]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[{cri}.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{state}/cni"
[{cri}.registry]
  config_path = "{folder}/certs.d"
[{cri}.containerd]
  snapshotter = "overlayfs"
[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
  Root = "{state}/runc"
"""


def registry_hosts() -> str:
    """containerd's rule for each name of the registry: plain HTTP at the node's address."""
    return f'server = "http://{REGISTRY}"\n[host."http://{REGISTRY}"]\n  capabilities = ["pull", "resolve"]\n'


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
