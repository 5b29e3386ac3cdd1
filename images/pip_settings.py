"""pip's settings on the building machine, as the files that an image build may read and must not keep."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run

CERTIFICATES = "/run/secrets/ca.crt"
PASSED = (
    "index-url",
    "extra-index-url",
    "find-links",
    "trusted-host",
    "timeout",
    "default-timeout",
    "retries",
    "proxy",
)


@dataclass(frozen=True, slots=True)
class PipSettings:
    """What to hand to the build."""

    text: str
    """pip.conf"""
    certificates: Path | None
    """The bundle of authorities to trust, if pip is told one."""
    folders: tuple[Path, ...]
    """Local folders with wheels, which must be mounted."""


def read() -> PipSettings:
    """pip's own answer: its configuration files and PIP_* variables together."""
    return parse(run([sys.executable, "-m", "pip", "config", "list"]))


def parse(listing: str) -> PipSettings:
    """From `pip config list`: lines `global.name='value'` or `:env:.name='value'`, of which the later wins."""
    found: dict[str, str] = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        if value:
            found[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    kept = {name.removeprefix("default-"): value for name, value in found.items() if name in PASSED}
    certificates = Path(found["cert"]) if found.get("cert") else None
    if certificates:
        kept["cert"] = CERTIFICATES
    words = found.get("find-links", "").split()
    folders = tuple(Path(word) for word in words if word.startswith("/") and Path(word).is_dir())
    lines = [f"{name} = " + value.replace("\n", "\n    ") for name, value in sorted(kept.items())]
    return PipSettings("\n".join(["[global]", *lines, ""]), certificates, folders)
