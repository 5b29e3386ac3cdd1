"""Removes a cluster whole: processes, pods, mounts, network, cgroups, files; also what a killed run left.

Nothing here trusts a record of what was started: processes are found by their mark, pods by their cgroup, mounts by
their path, the bridge by its alias.
"""

from __future__ import annotations

from pathlib import Path

from e2e.cluster import cgroups, network
from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import members, stop
from e2e.cluster.progress import step
from e2e.cluster.settings import CGROUP, Settings

MOUNTS = Path("/proc/self/mountinfo")
CONTAINER_LOGS = Path("/var/log/containers")
MARKER = ".cuvil-cluster"
KUBELET_FIXED = Path("/var/lib/kubelet")
"""Kubelet makes its device socket here whatever its root folder is."""


def remove(settings: Settings) -> None:
    """Ends and deletes everything of the cluster in `settings.state`; does nothing when there is nothing."""
    ours = network.owner() in (str(settings.state), "", None)
    with step("stopped every process"):
        _stop_processes(settings)
        if ours:
            cgroups.remove()
    with step("removed mounts and network"):
        _unmount(settings.state)
        network.remove(settings)
    if is_state(settings.state):
        with step("removed files"):
            _remove_files(settings.state)


def claim(state: Path) -> None:
    """Makes the state folder and marks it as ours; refuses a folder that holds something else."""
    if state.exists() and not is_state(state) and any(state.iterdir()):
        raise ClusterError(
            f"{state} holds files that are not a cluster's; choose another folder with CUVIL_CLUSTER_STATE"
        )
    state.mkdir(parents=True, exist_ok=True, mode=0o711)
    (state / MARKER).touch()


def is_state(state: Path) -> bool:
    """Whether the folder was made by `claim`, so that `remove` may delete it."""
    return (state / MARKER).is_file()


def leftovers(settings: Settings) -> list[str]:
    """What of the cluster still exists, one phrase each; empty after `remove`."""
    found = [f"process {pid}" for pid in members(settings)]
    found += [f"mount {path}" for path in mounts_below(settings.state, MOUNTS.read_text())]
    if network.owner() in (str(settings.state), ""):
        found.append("the bridge")
    found += [f"cgroup {root / CGROUP}" for root in cgroups.hierarchies() if (root / CGROUP).exists()]
    if settings.state.exists():
        found.append(f"folder {settings.state}")
    return found


def mounts_below(state: Path, mountinfo: str) -> list[str]:
    """Mount points under the folder, the deepest first; a mount stacked twice on a point is named twice."""
    points = [_unescaped(line.split()[4]) for line in mountinfo.splitlines()]
    return sorted((point for point in points if point.startswith(f"{state}/")), reverse=True)


def _stop_processes(settings: Settings) -> None:
    # Twice at least: a process may have started a child while the first list was read.
    for _ in range(20):
        found = members(settings)
        if not found:
            return
        stop(found, grace=0)
    raise ClusterError(
        f"processes of the cluster in {settings.state} start again and again; stop the `up` that runs, then run down"
    )


def _unmount(state: Path) -> None:
    for _ in range(20):
        points = mounts_below(state, MOUNTS.read_text())
        if not points:
            return
        for point in points:
            if Path(point).exists():
                run(["umount", "--lazy", point])
    raise ClusterError(
        f"mounts under {state} cannot be removed: {', '.join(mounts_below(state, MOUNTS.read_text())[:3])}"
    )


def _remove_files(state: Path) -> None:
    for address in (state / "containerd" / "run").glob("io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text().strip().removeprefix("unix://")).unlink(missing_ok=True)
    for link in CONTAINER_LOGS.glob("*.log") if CONTAINER_LOGS.is_dir() else ():
        if link.is_symlink() and str(link.readlink()).startswith(f"{state}/"):
            link.unlink(missing_ok=True)
    if (state / "kubelet.json").exists():
        for name in ("kubelet.sock", "kubelet_internal_checkpoint"):
            (KUBELET_FIXED / "device-plugins" / name).unlink(missing_ok=True)
        for folder in (KUBELET_FIXED / "device-plugins", KUBELET_FIXED, CONTAINER_LOGS):
            _remove_if_empty(folder)
    # The marker goes last, so that an interrupted removal can be taken up again.
    # rm and not shutil: image layers are hundreds of thousands of files.
    entries = [entry for entry in state.iterdir() if entry.name != MARKER]
    run(["rm", "-rf", "--one-file-system", "--", *entries], timeout=600)
    run(["rm", "-rf", "--one-file-system", "--", state], timeout=600)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def _unescaped(field: str) -> str:
    """mountinfo writes space, tab, newline and backslash as octal escapes."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escape, character)
    return field
