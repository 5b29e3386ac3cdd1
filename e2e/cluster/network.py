"""The node's network: a bridge whose address is the node's, the CNI configuration, and one nft table for masquerading.

Ownership: the bridge's alias is the state folder, so `remove` touches only what this cluster made. Pods are masqueraded
by our own nft table and not by the CNI plugin, so that no iptables chain is ever made.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from e2e.cluster.commands import attempt, run
from e2e.cluster.errors import ClusterError
from e2e.cluster.settings import BRIDGE, NFT_TABLE, NODE_IP, POD_CIDR, Settings

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
LINKS = Path("/sys/class/net")
CNI_NAME = "cuvil-cluster"
CNI_RESULTS = Path("/var/lib/cni/results")


def ensure(settings: Settings) -> None:
    """Makes bridge, forwarding, masquerading and the CNI configuration; each step does nothing when done before."""
    _remember_sysctls(settings)
    if not (LINKS / BRIDGE).exists():
        run(["ip", "link", "add", "name", BRIDGE, "alias", settings.state, "type", "bridge"])
    elif owner() not in (str(settings.state), ""):
        raise ClusterError(
            f"the bridge {BRIDGE} belongs to the cluster in {owner()}; run `down --state {owner()}` first"
        )
    run(["ip", "link", "set", BRIDGE, "alias", settings.state, "up"])
    run(["ip", "address", "replace", f"{NODE_IP}/16", "dev", BRIDGE])
    FORWARDING.write_text("1")
    if not BRIDGE_FILTER.exists():
        attempt(["modprobe", "br_netfilter"])
    if BRIDGE_FILTER.exists():
        BRIDGE_FILTER.write_text("1")
    run(["nft", "-f", "-"], text=masquerade_rules())
    folder = settings.state / "cni"
    folder.mkdir(exist_ok=True)
    (folder / "10-cuvil.conflist").write_text(cni_configuration(settings.state))


def masquerade_all() -> bool:
    """Whether kube-proxy must masquerade every call: without br_netfilter an answer between two pods would skip it."""
    return not BRIDGE_FILTER.exists()


def masquerade_rules() -> str:
    """The nft table: what leaves a pod for another network carries the host's address."""
    return (
        f"table ip {NFT_TABLE}\ndelete table ip {NFT_TABLE}\n"
        f"table ip {NFT_TABLE} {{\n  chain postrouting {{\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f'    ip saddr {POD_CIDR} ip daddr != {POD_CIDR} oifname != "{BRIDGE}" masquerade\n  }}\n}}\n'
    )


def cni_configuration(state: Path) -> str:
    """The chain of CNI plugins: one bridge port a pod, its address from a file store under the state folder."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": POD_CIDR, "gateway": NODE_IP}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(state / "cni" / "addresses"),
    }
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    return json.dumps({"cniVersion": "0.4.0", "name": CNI_NAME, "plugins": [bridge]}, indent=1) + "\n"


def owner() -> str | None:
    """The state folder that the bridge belongs to: empty when it was never marked, None when there is no bridge."""
    try:
        return (LINKS / BRIDGE / "ifalias").read_text().strip()
    except OSError:
        return None


def remove(settings: Settings) -> None:
    """Deletes the bridge with its ports, the nft tables and the CNI results, and puts the sysctls back."""
    if owner() not in (str(settings.state), "", None):
        return
    for port in LINKS.iterdir():
        if (port / "master").exists() and (port / "master").resolve().name == BRIDGE:
            attempt(["ip", "link", "delete", port.name])
    if (LINKS / BRIDGE).exists():
        run(["ip", "link", "delete", BRIDGE])
    if (settings.state / "proxy.json").exists():
        _delete_table("ip", "kube-proxy")
        _delete_table("ip6", "kube-proxy")
    _delete_table("ip", NFT_TABLE)
    _remove_cni_results()
    _restore_sysctls(settings)


def _remove_cni_results() -> None:
    # The plugins keep an answer a container and network; the loopback's is named by the container alone.
    for file in CNI_RESULTS.glob(f"{CNI_NAME}-*"):
        container = file.name.removeprefix(f"{CNI_NAME}-").partition("-")[0]
        (CNI_RESULTS / f"cni-loopback-{container}-lo").unlink(missing_ok=True)
        file.unlink(missing_ok=True)


def _delete_table(family: str, name: str) -> None:
    # "table" before "delete table" makes the deletion succeed whether or not the table was there.
    if shutil.which("nft"):
        run(["nft", "-f", "-"], text=f"table {family} {name}\ndelete table {family} {name}\n")


def _remember_sysctls(settings: Settings) -> None:
    record = settings.state / "sysctls.json"
    if not record.exists():
        found = {str(file): file.read_text().strip() for file in (FORWARDING, BRIDGE_FILTER) if file.exists()}
        fresh = record.with_suffix(".new")
        fresh.write_text(json.dumps(found))
        fresh.replace(record)


def _restore_sysctls(settings: Settings) -> None:
    try:
        found = json.loads((settings.state / "sysctls.json").read_text())
    except (OSError, ValueError):
        return
    for file, value in found.items():
        if Path(file) in (FORWARDING, BRIDGE_FILTER) and value in ("0", "1"):
            Path(file).write_text(value)
