"""What is written for the programs: nothing lies outside the state folder, nothing is left unfilled."""

import json
import re
from pathlib import Path

import pytest

from e2e.cluster import addons, network, node, settings
from e2e.cluster.programs import Programs

STATE = Path("/var/lib/cuvil-test")
CHOSEN = settings.from_environment({"HOME": "/root"}, str(STATE))
IMAGES = {
    name: f"localhost/{name}:1" for name in ("coredns", "registry", "prometheus", "alertmanager", "config-reloader")
}
HOST_PATHS = ("/usr/lib/cni", "/etc/resolv.conf", "/sys/", "/cuvil-cluster", "/root/.cache")


@pytest.mark.parametrize("name", ["namespaces", "coredns", "registry", "gateway", "monitoring"])
def test_manifests_are_filled(name: str) -> None:
    """Each placeholder has a value, and no dollar sign is left."""
    assert "$" not in addons.render(name, addons.values(CHOSEN, IMAGES))


def test_webhook_reaches_the_manifest() -> None:
    """The address that the user sets is the one that Alertmanager is given."""
    chosen = settings.from_environment({"HOME": "/root", "CUVIL_CLUSTER_WEBHOOK": "http://10.88.0.1:9/x"})
    assert 'url: "http://10.88.0.1:9/x"' in addons.render("monitoring", addons.values(chosen, IMAGES))


def test_configuration_stays_under_the_state_folder() -> None:
    """Every absolute path in a configuration lies under the state folder, so that `down` removes all of it."""
    texts = [
        node.containerd_configuration(STATE, "localhost/pause:1"),
        json.dumps(node.kubelet_configuration(STATE)),
        json.dumps(node.proxy_configuration(STATE)),
        network.cni_configuration(STATE),
    ]
    paths = [path for text in texts for path in re.findall(r'"(?:unix://)?(/[^"]+)"', text)]
    assert len(paths) > 10
    assert [path for path in paths if not path.startswith((f"{STATE}/", *HOST_PATHS))] == []


def test_alerts_are_quick() -> None:
    """One second from scrape to scrape, rule to rule and group to webhook; kubelet refreshes as fast."""
    text = addons.render("monitoring", addons.values(CHOSEN, IMAGES))
    assert all(word in text for word in ("scrapeInterval: 1s", "evaluationInterval: 1s", "groupWait: 1s"))
    assert node.kubelet_configuration(STATE)["syncFrequency"] == "1s"


def test_masquerading_makes_no_iptables_chain() -> None:
    """Neither the CNI plugin nor kubelet is asked for iptables rules; one nft table does the work."""
    assert json.loads(network.cni_configuration(STATE))["plugins"][0]["ipMasq"] is False
    assert node.kubelet_configuration(STATE)["makeIPTablesUtilChains"] is False
    assert f"table ip {settings.NFT_TABLE}" in network.masquerade_rules()


def test_processes_have_distinct_names() -> None:
    """Logs and records are kept by name, so no two programs share one."""
    programs = Programs(CHOSEN.programs)
    control = [process.name for process in node.control_plane(CHOSEN, programs)]
    host = [process.name for process in addons.processes(CHOSEN, programs, IMAGES)]
    assert len(set(control + host)) == len(control + host) == 6


def test_settings_come_from_the_environment() -> None:
    """Variables choose the folders; a flag wins over the variable."""
    env = {"HOME": "/h", "CUVIL_CLUSTER_STATE": "/s", "CUVIL_CLUSTER_BIN": "/b", "CUVIL_CLUSTER_APT": "0"}
    chosen = settings.from_environment(env)
    assert (chosen.state, chosen.programs, chosen.install) == (Path("/s"), Path("/b"), False)
    assert settings.from_environment(env, "/flag").state == Path("/flag")
    assert settings.from_environment({"HOME": "/h"}).programs == Path("/h/.cache/cuvil/cluster/bin")
