"""Server-side apply in the simple form that the fake needs: who owns which field.

    stored {a: 1, b: 2} (manager applied a, b)   +   apply {a: 3}   →   {a: 3}      b was the manager's alone: it goes
    stored {a: 1, b: 2} (manager applied a)      +   apply {a: 3}   →   {a: 3, b: 2}

Maps merge field by field; a list is one field, but for metadata.ownerReferences, which merges by uid. Force is on: an
applied field is taken over from every other manager.
"""

import json
from typing import Any

from cuvil_operator.gateways.protocols import Document

Path = tuple[str, ...]

_SERVER_FIELDS = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})


def apply(stored: Document, applied: Document, manager: str) -> Document:
    """Give the object after the apply, its managedFields brought up to date; `stored` is {} where there is none."""
    owned = _read(stored)
    wanted = _leaves(applied)
    result = _unpack(_leaves(stored))
    others = {path for name, paths in owned.items() if name != manager for path in paths}
    for path in owned.get(manager, set()) - set(wanted) - others:
        _remove(result, path)
    for path, value in wanted.items():
        _set(result, path, value)
    owned = {name: paths - set(wanted) for name, paths in owned.items() if name != manager} | {manager: set(wanted)}
    for field in _SERVER_FIELDS & set(stored.get("metadata", {})):
        result["metadata"][field] = stored["metadata"][field]
    if "status" in stored:
        result["status"] = stored["status"]
    result["metadata"]["managedFields"] = [
        {"manager": name, "operation": "Apply", "fields": sorted(map(json.dumps, paths))}
        for name, paths in sorted(owned.items())
        if paths
    ]
    return result


def _read(stored: Document) -> dict[str, set[Path]]:
    entries = stored.get("metadata", {}).get("managedFields") or ()
    return {entry["manager"]: {tuple(json.loads(text)) for text in entry["fields"]} for entry in entries}


def _leaves(document: Document) -> dict[Path, Any]:
    """Give every field that is owned on its own, without what the server writes and without status."""
    found: dict[Path, Any] = {}

    def walk(path: Path, value: Any) -> None:
        if path == ("metadata", "ownerReferences"):
            found.update({(*path, owner["uid"]): owner for owner in value})
        elif isinstance(value, dict) and value:
            for key, part in value.items():
                if path != ("metadata",) or key not in _SERVER_FIELDS:
                    walk((*path, key), part)
        else:
            found[path] = value

    for key, value in document.items():
        if key != "status":
            walk((key,), value)
    return found


def _unpack(leaves: dict[Path, Any]) -> Document:
    result: Document = {"metadata": {}}
    for path, value in leaves.items():
        _set(result, path, value)
    return result


def _set(result: Document, path: Path, value: Any) -> None:
    if path[:2] == ("metadata", "ownerReferences"):
        owners = [one for one in result["metadata"].get("ownerReferences", []) if one["uid"] != path[2]]
        result["metadata"]["ownerReferences"] = [*owners, value]
        return
    *parents, last = path
    for key in parents:
        if not isinstance(result.get(key), dict):
            result[key] = {}
        result = result[key]
    # An empty map says only that the field is there: it must not empty one that others filled.
    if value != {} or not isinstance(result.get(last), dict):
        result[last] = value


def _remove(result: Document, path: Path) -> None:
    if path[:2] == ("metadata", "ownerReferences"):
        left = [one for one in result["metadata"].get("ownerReferences", []) if one["uid"] != path[2]]
        result["metadata"]["ownerReferences"] = left
        return
    *parents, last = path
    for key in parents:
        if not isinstance(result.get(key), dict):
            return
        result = result[key]
    result.pop(last, None)
