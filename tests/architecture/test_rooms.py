"""The rooms: who may import whom, how large a file may be, what stays light. A broken rule says what to do instead."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
HALVES = {"cuvil_core": ROOT / "cuvil_core", "cuvil_operator": ROOT / "operator" / "cuvil_operator"}
LINES = 400
FOLDERS = ("benchmarks", "crds", "cuvil_core", "demo", "e2e", "images", "operator", "scoreboard", "tests")

CONTRACT = "cuvil_core.contract"
BACK = "cuvil_core.contract cuvil_core.errors"
ROOMS = {
    "cuvil_core.contract": "",
    "cuvil_core.errors": "cuvil_core.contract",
    "cuvil_core.ir": BACK,
    "cuvil_core.ops": f"{BACK} cuvil_core.ir",
    "cuvil_core.reference": f"{BACK} cuvil_core.ir cuvil_core.ops",
    "cuvil_core.importer": f"{BACK} cuvil_core.ir cuvil_core.ops cuvil_core.reference",
    "cuvil_core.rewriting": f"{BACK} cuvil_core.ir cuvil_core.ops",
    "cuvil_core.passes": f"{BACK} cuvil_core.ir cuvil_core.ops cuvil_core.reference cuvil_core.rewriting",
    "cuvil_core.scheduling": f"{BACK} cuvil_core.ir cuvil_core.ops cuvil_core.kernel_ir",
    "cuvil_core.kernel_ir": f"{BACK} cuvil_core.ir",
    "cuvil_core.program": f"{BACK} cuvil_core.ir cuvil_core.kernel_ir",
    "cuvil_core.lowering": (
        f"{BACK} cuvil_core.ir cuvil_core.ops cuvil_core.kernel_ir cuvil_core.program cuvil_core.scheduling"
    ),
    "cuvil_core.codegen": f"{BACK} cuvil_core.ir cuvil_core.kernel_ir cuvil_core.program",
    "cuvil_core.support": "",
    "cuvil_core.toolchain": f"{BACK} cuvil_core.support",
    "cuvil_core.artifact": BACK,
    "cuvil_core.cache": f"{BACK} cuvil_core.artifact",
    "cuvil_core.runtime": f"{BACK} cuvil_core.artifact",
    "cuvil_core.fetching": f"{BACK} cuvil_core.artifact",
    "cuvil_core.validate": f"{BACK} cuvil_core.artifact cuvil_core.runtime cuvil_core.reference",
    "cuvil_core.serving": f"{BACK} cuvil_core.version cuvil_core.artifact cuvil_core.runtime cuvil_core.fetching",
    "cuvil_operator.conventions": "",
    "cuvil_operator.errors": "",
    "cuvil_operator.api": "",
    "cuvil_operator.facts": "cuvil_operator.api cuvil_operator.promql cuvil_core.contract",
    "cuvil_operator.settings": "cuvil_operator.facts",
    "cuvil_operator.promql": "cuvil_operator.api cuvil_core.contract",
    "cuvil_operator.decide": "cuvil_operator.api cuvil_operator.facts cuvil_operator.promql cuvil_core.contract",
    "cuvil_operator.render": "cuvil_operator.api cuvil_operator.facts cuvil_operator.promql cuvil_core.contract",
    "cuvil_operator.status": "cuvil_operator.api cuvil_operator.facts",
    "cuvil_operator.gateways": "",
    "cuvil_operator.metrics": "",
    "cuvil_operator.control": "cuvil_operator.facts cuvil_operator.gateways cuvil_operator.metrics",
    "cuvil_operator.election": "cuvil_operator.gateways",
    "cuvil_operator.observe": (
        "cuvil_operator.api cuvil_operator.facts cuvil_operator.promql cuvil_operator.gateways cuvil_core.contract"
    ),
    "cuvil_operator.act": (
        "cuvil_operator.api cuvil_operator.facts cuvil_operator.render cuvil_operator.gateways cuvil_core.contract"
    ),
}
"""Room → rooms whose code it may use. Every operator room may use conventions and errors besides. Rooms that wire the
others together (compile, cli, tuning; reconcile, handlers, __main__) are not listed: they may use all."""

THIRD_PARTIES = {
    "onnx": ("cuvil_core.importer",),
    "onnxruntime": ("cuvil_core.validate",),
    "torch": (),
    "triton": (),
    "ziglang": ("cuvil_core.toolchain", "cuvil_core.cli"),
    "subprocess": ("cuvil_core.toolchain",),
    "kopf": ("cuvil_operator.handlers", "cuvil_operator.__main__"),
    "kubernetes": ("cuvil_operator.gateways",),
    "prometheus_api_client": ("cuvil_operator.gateways",),
    "pickle": (),
    **dict.fromkeys(("benchmarks", "crds", "demo", "e2e", "images", "scoreboard", "tests"), ()),
}
"""Library → the only rooms that may import it."""


@cache
def graph() -> grimp.ImportGraph:
    """Build the import graph of both halves once."""
    return grimp.build_graph("cuvil_core", "cuvil_operator", include_external_packages=True)


def room_of(module: str) -> str:
    """Give `half.room` of a module's name."""
    return ".".join(module.split(".")[:2])


def sources() -> list[Path]:
    """List the product's Python files."""
    return [path for folder in HALVES.values() for path in sorted(folder.rglob("*.py"))]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_uses_only_the_rooms_it_may(room: str) -> None:
    """Imports go one way, as docs/architecture.md draws them."""
    allowed = {room, *ROOMS[room].split()}
    if room.startswith("cuvil_operator."):
        allowed |= {"cuvil_operator.conventions", "cuvil_operator.errors"}
    broken = [
        f"{module} imports {used}: move the code to the room that may, or pass the value in as an argument"
        for module in sorted(graph().modules)
        if room_of(module) == room
        for used in sorted(graph().find_modules_directly_imported_by(module))
        if used.startswith(("cuvil_core.", "cuvil_operator.")) and room_of(used) not in allowed
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("library", sorted(THIRD_PARTIES))
def test_a_library_stays_in_its_rooms(library: str) -> None:
    """Each third party is known to the rooms that wrap it, and to no other."""
    users = graph().find_modules_that_directly_import(library) if library in graph().modules else set()
    broken = [
        f"{user} imports {library}: call the room that wraps it ({', '.join(THIRD_PARTIES[library]) or 'none may'})"
        for user in sorted(users)
        if not user.startswith(THIRD_PARTIES[library])
    ]
    assert not broken, "\n".join(broken)


def test_the_halves_meet_in_the_contract_alone() -> None:
    """The operator enters cuvil_core by the contract, and cuvil_core knows nothing of the operator."""
    broken = [
        f"{module} imports {used}: exchange facts through cuvil_core.contract"
        for module in sorted(graph().modules)
        for used in sorted(graph().find_modules_directly_imported_by(module))
        if (
            module.startswith("cuvil_operator")
            and used.startswith("cuvil_core")
            and room_of(used) != "cuvil_core.contract"
        )
        or (module.startswith("cuvil_core") and used.startswith("cuvil_operator"))
    ]
    assert not broken, "\n".join(broken)


def test_every_room_is_ruled() -> None:
    """A new room stands in ROOMS or is one of those that wire the others together."""
    wiring = {
        "compile",
        "front",
        "version",
        "cli",
        "tuning",
        "reconcile",
        "handlers",
        "__main__",
        "control",
        "election",
        "lifecycle",
        "metrics",
        "rollout_metrics",
        "rollout_log",
    }
    found = {room_of(module) for module in graph().modules if module.count(".") == 1}
    strangers = {room for room in found - set(ROOMS) if room.split(".")[1] not in wiring and room.startswith("cuvil_")}
    assert not strangers, f"add {sorted(strangers)} to ROOMS with the rooms that they may import"


def test_no_file_is_too_long_to_hold() -> None:
    """A Python file has at most LINES lines."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    long = [f"{path.relative_to(ROOT)}: split it by noun" for path in files if path.read_text().count("\n") > LINES]
    assert files and not long, "\n".join(long)


def test_every_package_has_a_charter() -> None:
    """Every package says what it holds, takes, gives and must not; only cuvil_core itself stays empty, to be light."""
    packages = [path for path in sources() if path.name == "__init__.py" and path.parent.name != "cuvil_core"]
    bare = [str(path.relative_to(ROOT)) for path in packages if not ast.get_docstring(ast.parse(path.read_text()))]
    assert not bare, f"write the charter docstring of {bare}"
    assert (ROOT / "cuvil_core" / "__init__.py").read_text() == ""


def test_the_folder_operator_does_not_hide_the_standard_library() -> None:
    """`operator/` is a folder, not a package, and holds no tests: `import operator` stays the standard library's."""
    folder = ROOT / "operator"
    assert not (folder / "__init__.py").exists(), "operator/ must not be a package: it would hide the standard library"
    strays = [path for path in folder.rglob("*.py") if path.name.startswith(("test_", "conftest"))]
    assert not strays, f"move {strays} below tests/cuvil_operator"
    where = subprocess.run(
        [sys.executable, "-c", "import operator; print(operator.__file__)"], cwd=ROOT, capture_output=True, text=True
    )
    assert str(ROOT) not in where.stdout


def _import_cost(statement: str, forbidden: tuple[str, ...]) -> float:
    code = (
        f"import sys, time; began = time.perf_counter(); {statement}; took = time.perf_counter() - began; "
        f"heavy = [name for name in {forbidden!r} if name in sys.modules]; print(took, *heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    took, *heavy = done.stdout.split()
    assert not heavy, f"`{statement}` drags in {heavy}: import them where they are used"
    return float(took)


def test_import_cuvil_is_light() -> None:
    """`import cuvil` takes under 100 ms and brings neither torch nor NumPy nor onnx."""
    assert min(_import_cost("import cuvil", ("torch", "numpy", "onnx")) for _ in range(5)) < 0.1


def test_the_contract_needs_no_numpy() -> None:
    """The operator and small tools read the contract without NumPy."""
    _import_cost("import cuvil_core.contract", ("numpy", "onnx", "torch"))


def test_no_test_package_hides_a_module() -> None:
    """tests/ holds no __init__.py: pytest imports test files by path."""
    assert not list((ROOT / "tests").rglob("__init__.py"))
