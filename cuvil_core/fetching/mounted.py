"""ConfigMaps that a pod mounts: what to say of a file that is not in one.

They are optional volumes: a pod that waits for ever on a missing ConfigMap says less than a command that names it.
"""

import os
from pathlib import Path

FOLDER = "CUVIL_CONFIG_MAPS_DIR"
"""Holds one folder a ConfigMap, named like it, with its keys as files."""
NAMED = 5
"""Keys of a ConfigMap that a sentence names."""


def missing(path: Path) -> str:
    """Give one sentence on a file that should come from a ConfigMap; empty for any other path."""
    folder = os.environ.get(FOLDER)
    if not folder or not path.is_relative_to(folder):
        return ""
    name, *key = path.relative_to(folder).parts
    wanted = "/".join(key)
    there = _keys(Path(folder) / name)
    if not there:
        return (
            f"the ConfigMap {name} is not there, or empty, in the namespace of the model; create it with the key "
            f"{wanted}, or correct the URI"
        )
    more = " …" if len(there) > NAMED else ""
    return f"the ConfigMap {name} has no key {wanted}, only {', '.join(there[:NAMED])}{more}; add it or correct the URI"


def _keys(folder: Path) -> list[str]:
    """Give the files' names; those that begin with two dots are the kubelet's own."""
    try:
        return sorted(one.name for one in folder.iterdir() if not one.name.startswith(".."))
    except OSError:
        return []
