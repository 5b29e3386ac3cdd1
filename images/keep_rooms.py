"""Deletes the rooms of the product that an image's entry points never import.

Run in the image build, with the standard library only: `python3 keep_rooms.py FOLDER MODULE...`. A room is an entry
directly under a top-level package (`cuvil_core/passes`, `cuvil_core/compile.py`).
"""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGES = ("cuvil", "cuvil_core", "cuvil_operator")
ALWAYS = ("__init__.py", "py.typed")


def reachable(folders: Sequence[Path], entries: Sequence[str]) -> set[str]:
    """Every module of the product that importing the entries may import, lazily or not, with the packages above it."""
    seen: set[str] = set()
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        file = source(folders, name)
        if name in seen or file is None:
            continue
        seen.add(name)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        waiting += [f"{name}.__main__"] if file.name == "__init__.py" and name in entries else []
        waiting += imports(ast.parse(file.read_text(encoding="utf-8")), name, file.name == "__init__.py")
    return seen


def imports(tree: ast.AST, name: str, is_package: bool) -> Iterator[str]:
    """Candidate module names of every import statement; `from a import b` gives both `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node.module or "", node.level, name, is_package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def absolute(module: str, level: int, name: str, is_package: bool) -> str:
    """`from ..x import y` within `name` → the absolute name of `..x`."""
    if not level:
        return module
    parents = name.split(".") if is_package else name.split(".")[:-1]
    kept = parents[: len(parents) - (level - 1)]
    return ".".join([*kept, module] if module else kept)


def source(folders: Sequence[Path], name: str) -> Path | None:
    """The file of a product module in the first folder that has it, or None when the name is no product module."""
    if name.split(".")[0] not in PACKAGES:
        return None
    bases = [folder.joinpath(*name.split(".")) for folder in folders]
    files = [file for base in bases for file in (base / "__init__.py", base.with_name(base.name + ".py"))]
    return next((file for file in files if file.is_file()), None)


def rooms(modules: set[str]) -> set[str]:
    """`package/room` of each module; a package's own `__init__` is no room."""
    return {"/".join(module.split(".")[:2]) for module in modules if "." in module}


def prune(folder: Path, entries: Sequence[str]) -> list[str]:
    """Deletes what is not needed and gives the rooms that stay, sorted."""
    modules = reachable([folder], entries)
    missing = [entry for entry in entries if entry not in modules]
    if missing:
        raise SystemExit(f"the product has no module {missing[0]}; correct the entry point in the Dockerfile")
    kept = rooms(modules)
    tops = {module.split(".")[0] for module in modules}
    for package in PACKAGES:
        top = folder / package
        if package not in tops:
            _delete(top if top.is_dir() else top.with_suffix(".py"))
            continue
        for entry in top.iterdir() if top.is_dir() else ():
            if entry.name not in ALWAYS and f"{package}/{entry.stem}" not in kept:
                _delete(entry)
    return sorted(kept)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    print("\n".join(prune(Path(sys.argv[1]), sys.argv[2:])))
