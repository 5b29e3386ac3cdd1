"""`up`, `down` and `status` in the order of data: check, build, certificates, network, runtime, API, node, addons."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import addons, cgroups, cleanup, images, network, node, pki, preflight
from e2e.cluster.commands import marked
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import members, running
from e2e.cluster.programs import Programs
from e2e.cluster.progress import say
from e2e.cluster.settings import API_PORT, MEMBER, Settings, from_environment


@dataclass(frozen=True, slots=True)
class Part:
    """One component's health, for `status`."""

    name: str
    well: bool
    note: str


def programs_of(settings: Settings) -> Programs:
    """The programs in the cache that the settings name."""
    return Programs(settings.programs)


def up(settings: Settings) -> None:
    """Starts what does not run yet; returns when the node and every addon are ready. Idempotent."""
    preflight.check(settings)
    with marked({MEMBER: str(settings.state)}):
        programs = programs_of(settings)
        programs.ensure(_NEEDED)
        programs.ensure_files()
        with _claimed(settings.state):
            _start(settings, programs)


def _start(settings: Settings, programs: Programs) -> None:
    pki.ensure(settings)
    network.ensure(settings)
    kubectl = node.Kubectl(settings, programs)
    named = images.references(images.addon_images(programs))
    node.start_runtime(settings, named["pause"])
    images.load_addons(settings, programs)
    cgroups.ensure()
    node.start_control_plane(settings, programs, kubectl)
    node.start_node(settings, programs, kubectl)
    cgroups.enlist(members(settings))
    addons.start(settings, programs, kubectl, named)
    cgroups.enlist(members(settings))


def down(settings: Settings) -> None:
    """Removes the cluster; `ClusterError` naming what stayed."""
    if os.geteuid() != 0:
        raise ClusterError("removing the embedded cluster needs root: run this with sudo")
    # Without a state folder there may still be builds that a killed run left behind.
    held: AbstractContextManager[int | None] = (
        _locked(settings.state) if cleanup.is_state(settings.state) else nullcontext()
    )
    with held:
        cleanup.remove(settings)
        left = cleanup.leftovers(settings)
    if left:
        raise ClusterError(f"of the cluster in {settings.state} these remain: {', '.join(left)}; run down again")


def status(settings: Settings) -> list[Part]:
    """Each host process, and each addon by the answer at its address."""
    programs = programs_of(settings)
    found = []
    for process in node.all_processes(settings, programs):
        pid = running(settings, process.name)
        found.append(Part(process.name, pid is not None, f"pid {pid}" if pid else "not running"))
    ready = found[0].well and node.Kubectl(settings, programs).succeeds("get", "--raw", "/readyz")
    found.append(Part("API", ready, f"https://127.0.0.1:{API_PORT}"))
    found += [Part(name, addons.answers(url), url) for name, url in addons.HEALTH.items()]
    return found


def user_kubeconfig(settings: Settings, user: str, to: Path | None) -> Path:
    """Writes a cluster-admin kubeconfig for a user of this machine, owned by that user with mode 0600.

    The user's own program cache gets the clients that are built already, so that nobody builds them twice.
    """
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise ClusterError(
            f"there is no user {user!r} on this machine; make one with `useradd --create-home {user}`"
        ) from None
    folder = settings.state / "pki"
    if not folder.exists():
        raise ClusterError(f"there is no cluster in {settings.state}; start one with `python -m e2e.cluster up`")
    identity = pki.Identity(f"user-{user}", f"/O=system:masters/CN={user}")
    if not (folder / f"{identity.name}.crt").exists():
        pki.issue(folder, identity)
    target = to or Path(account.pw_dir) / ".kube" / "cuvil-cluster.yaml"
    if not target.parent.exists():
        target.parent.mkdir(parents=True, mode=0o700)
        os.chown(target.parent, account.pw_uid, account.pw_gid)
    pki.write_private(target, pki.kubeconfig(folder, identity.name), (account.pw_uid, account.pw_gid))
    _hand_over_clients(settings, account)
    return target


def _hand_over_clients(settings: Settings, account: pwd.struct_passwd) -> None:
    ours, theirs = Programs(settings.programs), Programs(from_environment({"HOME": account.pw_dir}).programs)
    for name in CLIENTS:
        source, copy = ours.path(name), theirs.path(name)
        if source.exists() and not copy.exists():
            for folder in reversed([parent for parent in copy.parents if not parent.exists()]):
                folder.mkdir(mode=0o755)
                os.chown(folder, account.pw_uid, account.pw_gid)
            shutil.copy(source, copy)
            os.chown(copy, account.pw_uid, account.pw_gid)


CLIENTS = ("kubectl", "helm", "promtool")
_NEEDED = (
    "pause",
    "traefik",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
    "prometheus-operator",
    "prometheus-config-reloader",
    "alertmanager",
    "coredns",
    "prometheus",
)
"""What the cluster itself runs; helm and promtool are built when somebody asks for them."""


@contextmanager
def _claimed(state: Path) -> Iterator[None]:
    """The state folder made and locked; one that a `down` deleted while this waited is made again."""
    while True:
        cleanup.claim(state)
        with _locked(state) as folder:
            if state.exists() and os.path.samestat(os.fstat(folder), state.stat()):
                yield
                return


@contextmanager
def _locked(state: Path) -> Iterator[int]:
    """One `up` or `down` at a time; the kernel lets go of the lock when its holder dies, however it dies."""
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another `up` or `down` works on this cluster; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(folder)
