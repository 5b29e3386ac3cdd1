"""What must hold before the cluster can start: Linux, root, kernel features, Debian packages, free ports.

Each lack is one sentence that ends in its cure; all are told at once, so that nobody cures them one run at a time.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError, CommandFailed
from e2e.cluster.processes import member_of
from e2e.cluster.progress import step
from e2e.cluster.settings import CGROUP, PORTS, Settings

SOCKET_LIMIT = 100
"""A Unix socket's path has 108 bytes; shims add a few of their own."""
TOOLS: Mapping[str, str] = {
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/usr/lib/cni/host-local": "containernetworking-plugins",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mount": "mount",
    "openssl": "openssl",
    "docker-registry": "docker-registry",
    "skopeo": "skopeo",
}
"""Program → the Debian package that carries it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What was seen of the machine; a frozen snapshot, so that `complaints` stays pure."""

    system: str
    architecture: str
    root: bool
    overlay: bool
    cgroups: bool
    missing: tuple[str, ...]
    """Debian packages whose programs are absent."""
    apt: bool
    """Whether apt-get is there."""
    socket: str
    """The path of containerd's socket."""
    taken: tuple[tuple[str, int, str], ...]
    """(use, port, who holds it) of each port that is neither free nor ours."""


def observe(settings: Settings, has: Callable[[str], str | None] = shutil.which) -> Machine:
    """Looks at this machine."""
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        root=os.geteuid() == 0,
        overlay=_reads("/proc/filesystems", "overlay"),
        cgroups=Path("/sys/fs/cgroup").is_dir() and any(Path("/sys/fs/cgroup").iterdir()),
        missing=missing_packages(has),
        apt=has("apt-get") is not None,
        socket=str(settings.socket),
        # Without root the holders cannot be seen, not even whether they are ours.
        taken=()
        if os.geteuid()
        else tuple((use, port, holder) for use, port in PORTS.items() if (holder := _holder(port, settings))),
    )


def missing_packages(has: Callable[[str], str | None] = shutil.which) -> tuple[str, ...]:
    """Debian packages to install, each once, sorted."""
    return tuple(sorted({package for program, package in TOOLS.items() if has(program) is None}))


def complaints(machine: Machine) -> list[str]:
    """A sentence for each thing that stands in the way; empty when the cluster can start."""
    if machine.system != "Linux":
        return [
            f"the embedded cluster needs Linux and this is {machine.system}: use an existing cluster with CONTEXT=name"
        ]
    found = []
    if machine.architecture != "x86_64":
        found.append(f"the embedded cluster is built for x86_64 and this is {machine.architecture}: use CONTEXT=name")
    if not machine.root:
        found.append(
            "the embedded cluster needs root: run this with sudo, or use an existing cluster with CONTEXT=name"
        )
    if not machine.overlay:
        found.append("the kernel has no overlay file system: run `modprobe overlay` as root")
    if not machine.cgroups:
        found.append(
            "no cgroup is mounted under /sys/fs/cgroup: mount them, or run on the machine and not in a container"
        )
    if len(os.fsencode(machine.socket)) > SOCKET_LIMIT:
        found.append(
            f"the state folder's path is too long for a socket ({machine.socket}): set CUVIL_CLUSTER_STATE shorter"
        )
    if machine.missing:
        found.append(_install_sentence(machine))
    found += [
        f"port {port}, which {use} needs, is taken by {who}: stop that program and run up again"
        for use, port, who in machine.taken
    ]
    return found


def check(settings: Settings) -> None:
    """Installs missing Debian packages if allowed; raises one `ClusterError` with every remaining complaint."""
    machine = observe(settings)
    if machine.missing and machine.root and machine.apt and settings.install:
        install(machine.missing)
        machine = observe(settings)
    if found := complaints(machine):
        raise ClusterError("\n  ".join(found))


def install(packages: tuple[str, ...]) -> None:
    """Installs Debian packages by apt-get, without questions and without starting their services."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    argv = ["apt-get", "install", "--yes", "--no-install-recommends", "--quiet", *packages]
    with step(f"installed the Debian packages {' '.join(packages)}"):
        try:
            run(argv, env=quiet, timeout=900)
        except CommandFailed:
            run(["apt-get", "update", "--quiet"], timeout=300)
            run(argv, env=quiet, timeout=900)


def _install_sentence(machine: Machine) -> str:
    packages = " ".join(machine.missing)
    if not machine.apt:
        return f"programs of these Debian packages are missing: {packages}; install them with your package manager"
    return f"these Debian packages are missing: run `apt-get install --yes --no-install-recommends {packages}` as root"


def _reads(file: str, word: str) -> bool:
    try:
        return word in Path(file).read_text()
    except OSError:
        return False


def _holder(port: int, settings: Settings) -> str | None:
    """Who listens on the TCP port, in words; None when it is free or held by this cluster."""
    if _can_listen(port):
        return None
    inodes = _listening_inodes(port)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and inodes & _sockets(process):
            return None if _is_ours(int(process.name), settings) else _describe(process)
    return "a program that cannot be seen from here"


def _can_listen(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
        except OSError:
            continue
        found |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    return found


def _sockets(process: Path) -> set[str]:
    found = set()
    try:
        for descriptor in (process / "fd").iterdir():
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass
    return found


def _is_ours(pid: int, settings: Settings) -> bool:
    if member_of(pid) == str(settings.state):
        return True
    # A pod on the host's network (the registry) is known by its cgroup; pods of a foreign cluster have another.
    return _reads(f"/proc/{pid}/cgroup", f"/{CGROUP}/")


def _describe(process: Path) -> str:
    try:
        name = (process / "comm").read_text().strip()
    except OSError:
        name = "a program"
    owner = member_of(int(process.name))
    return f"{name} (pid {process.name})" + (f" of the cluster in {owner}" if owner else "")
