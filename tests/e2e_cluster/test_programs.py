"""The pinned programs: keys, versions, paths."""

from pathlib import Path

import pytest

from e2e.cluster import programs
from e2e.cluster.errors import ClusterError
from e2e.cluster.programs import MODULES, Module, Program, Programs, go_version, key


def test_key_is_stable() -> None:
    """The same module gives the same key, which is what makes a second `up` build nothing."""
    assert all(key(module) == key(module) for module in MODULES)
    assert len({key(module) for module in MODULES}) == len(MODULES)


def test_key_follows_files_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed pin or a changed flag gives another key, so that the old program is not taken for the new one."""
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "go.mod").write_text("module tool\n")
    monkeypatch.setattr(programs, "SOURCES", tmp_path)
    plain = Module("tool", (Program("tool", "."),))
    before = key(plain)
    assert key(Module("tool", (Program("tool", ".", link="-X a=b"),))) != before
    (tmp_path / "tool" / "go.mod").write_text("module tool\n\nrequire example.org/x v1.0.0\n")
    assert key(plain) != before


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.19 linux/amd64", (1, 19)),
        ("go version devel +abc linux/amd64", None),
    ],
)
def test_go_version(answer: str, version: tuple[int, int] | None) -> None:
    """The version is read from a release's answer and from no other."""
    assert go_version(answer) == version


def test_unknown_program_is_named(tmp_path: Path) -> None:
    """A misspelt program gives a sentence with the known ones, not a KeyError."""
    with pytest.raises(ClusterError, match=r"'kubectll'.*kubectl"):
        Programs(tmp_path).path("kubectll")


def test_each_go_module_is_pinned() -> None:
    """Every built module has a go.mod, and a go.sum where it depends on anything."""
    for module in MODULES:
        folder = programs.SOURCES / module.folder
        if module.wheel:
            assert "==" in module.wheel
        else:
            requires = "require" in (folder / "go.mod").read_text()
            assert (folder / "go.sum").exists() == requires, module.folder


def test_kubernetes_staging_modules_share_the_version() -> None:
    """Each replaced staging module carries the release that the programs announce."""
    text = (programs.SOURCES / "kubernetes" / "go.mod").read_text()
    minor = "v0." + programs.KUBERNETES_VERSION.partition(".")[2]
    replaced = [line.split() for line in text.splitlines() if "=>" in line]
    assert len(replaced) > 25
    assert {words[-1] for words in replaced} == {minor}
    assert f"k8s.io/kubernetes v{programs.KUBERNETES_VERSION}\n" in text
