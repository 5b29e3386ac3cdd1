"""What is said when the machine cannot carry the cluster."""

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.cluster import preflight, settings
from e2e.cluster.preflight import Machine, complaints, missing_packages

FIT = Machine(
    system="Linux",
    architecture="x86_64",
    root=True,
    overlay=True,
    cgroups=True,
    missing=(),
    apt=True,
    socket="/var/lib/cuvil-cluster/containerd/containerd.sock",
    taken=(),
)


def test_fit_machine_has_no_complaint() -> None:
    """A machine with everything is let through."""
    assert complaints(FIT) == []


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (replace(FIT, system="Darwin"), "needs Linux and this is Darwin.*CONTEXT=name"),
        (replace(FIT, architecture="aarch64"), "x86_64 and this is aarch64"),
        (replace(FIT, root=False), "needs root.*sudo.*CONTEXT=name"),
        (replace(FIT, overlay=False), "modprobe overlay"),
        (replace(FIT, cgroups=False), "no cgroup is mounted"),
        (replace(FIT, socket="/x" * 60), "CUVIL_CLUSTER_STATE"),
        (replace(FIT, missing=("containerd", "runc")), "apt-get install .* containerd runc"),
        (replace(FIT, missing=("runc",), apt=False), "runc; install them with your package manager"),
        (replace(FIT, taken=(("kube-apiserver", 6443, "nginx (pid 7)"),)), "port 6443.*nginx .pid 7.: stop"),
    ],
)
def test_each_lack_is_one_sentence_with_its_cure(machine: Machine, sentence: str) -> None:
    """What is missing is named together with how to get it."""
    found = complaints(machine)
    assert len(found) == 1
    assert re.search(sentence, found[0]), found[0]


def test_every_lack_is_told_at_once() -> None:
    """Two lacks are two sentences, so that they are cured in one go."""
    assert len(complaints(replace(FIT, root=False, missing=("runc",)))) == 2


def test_missing_programs_become_packages() -> None:
    """Absent programs are given as Debian packages, each once."""
    found = missing_packages(lambda name: None if name in ("ctr", "containerd", "nft") else f"/usr/bin/{name}")
    assert found == ("containerd", "nftables")


def test_a_taken_port_names_its_holder(tmp_path: Path) -> None:
    """A foreign listener is found and named with its pid."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        chosen = settings.from_environment({"HOME": str(tmp_path)}, str(tmp_path))
        assert "pid" in (preflight._holder(port, chosen) or "")
    assert preflight._holder(port, chosen) is None
