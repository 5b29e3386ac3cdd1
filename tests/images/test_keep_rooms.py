"""What of the product an image keeps."""

from pathlib import Path

import pytest

from images import content
from images.keep_rooms import prune, reachable, rooms

FORBIDDEN = ("importer", "passes", "lowering", "codegen", "toolchain", "scheduling", "cli", "cache")


def _product(root: Path) -> Path:
    files = {
        "cuvil.py": "import cuvil_core.compile",
        "cuvil_core/__init__.py": "",
        "cuvil_core/py.typed": "",
        "cuvil_core/errors.py": "",
        "cuvil_core/compile.py": "from cuvil_core.passes import fold",
        "cuvil_core/serving/__init__.py": "",
        "cuvil_core/serving/__main__.py": "from cuvil_core.serving.app import run",
        "cuvil_core/serving/app.py": "def run():\n    from ..runtime import load\n    return load",
        "cuvil_core/runtime/__init__.py": "from cuvil_core.errors import *\nfrom . import pool",
        "cuvil_core/runtime/pool.py": "import os, numpy",
        "cuvil_core/runtime/table.json": "{}",
        "cuvil_core/passes/__init__.py": "",
        "cuvil_core/passes/fold.py": "",
        "cuvil_operator/__init__.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_only_imported_rooms_stay(tmp_path: Path) -> None:
    """Rooms reached from the entry stay whole, data included; the others, other packages and the front door go."""
    kept = prune(_product(tmp_path), ["cuvil_core.serving"])
    assert kept == ["cuvil_core/errors", "cuvil_core/runtime", "cuvil_core/serving"]
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left == [
        "cuvil_core/__init__.py",
        "cuvil_core/errors.py",
        "cuvil_core/py.typed",
        "cuvil_core/runtime/__init__.py",
        "cuvil_core/runtime/pool.py",
        "cuvil_core/runtime/table.json",
        "cuvil_core/serving/__init__.py",
        "cuvil_core/serving/__main__.py",
        "cuvil_core/serving/app.py",
    ]


def test_lazy_and_relative_imports_count(tmp_path: Path) -> None:
    """An import within a function and one with dots lead on like any other."""
    assert "cuvil_core.runtime.pool" in reachable([_product(tmp_path)], ["cuvil_core.serving"])


def test_missing_entry_is_named(tmp_path: Path) -> None:
    """A wrong entry point ends the image build with its name instead of an empty image."""
    with pytest.raises(SystemExit, match=r"no module cuvil_core\.server"):
        prune(_product(tmp_path), ["cuvil_core.server"])


def test_runtime_image_holds_no_compiler() -> None:
    """What serving imports in this tree reaches no room that reads models or compiles."""
    kept = rooms(reachable(tuple(content.SOURCES.values()), content.ENTRIES["runtime"]))
    assert {f"cuvil_core/{room}" for room in ("serving", "runtime", "artifact", "contract")} <= kept
    assert kept.isdisjoint(f"cuvil_core/{room}" for room in FORBIDDEN)
    assert not any(room.startswith("cuvil_operator/") for room in kept)


def test_operator_image_takes_the_contract_alone() -> None:
    """Of the compiler's half, the controller's image holds the contract and nothing else."""
    kept = rooms(reachable(tuple(content.SOURCES.values()), content.ENTRIES["operator"]))
    assert {room for room in kept if room.startswith("cuvil_core/")} == {"cuvil_core/contract"}
