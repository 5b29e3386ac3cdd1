"""Tags, pins and what is passed to an image build."""

import re
import tomllib
from pathlib import Path

import pytest

from cuvil_core.toolchain import AVX2, AVX512
from cuvil_core.toolchain.building import LINK_FLAGS
from images import base, content, pip_settings
from images.compiler import pieces

TREE = content.TREE


@pytest.mark.parametrize("name", content.NAMES)
def test_dockerfile_is_ordinary(name: str) -> None:
    """Base by argument, user without root, entry point; built by any tool from the root of the tree."""
    text = (TREE / "images" / name / "Dockerfile").read_text()
    assert "ARG BASE_IMAGE=python:3.11-slim-bookworm\n" in text
    assert "\nUSER 65532:65532\n" in text
    assert re.search(r'^ENTRYPOINT \["', text, re.M)
    assert set(re.findall(r"^FROM (\S+)", text, re.M)) == {"${BASE_IMAGE}", "packages"}


def _wheel_stage(name: str) -> str:
    """The text of an image's stage that makes the wheel."""
    text = (TREE / "images" / name / "Dockerfile").read_text()
    stage = re.search(r"(?s)FROM \S+ AS wheel\n.*?\n\n", text)
    assert stage is not None
    return stage[0]


def test_wheel_stage_is_shared() -> None:
    """The stage that makes the wheel is the same text in each file, so that it is built once."""
    assert len({_wheel_stage(name) for name in content.NAMES}) == 1


@pytest.mark.parametrize("name", content.NAMES)
def test_packages_are_the_products_and_pinned(name: str) -> None:
    """An image installs nothing that pyproject.toml does not name, and constraints.txt pins each."""
    wanted = (TREE / "images" / name / "requirements.txt").read_text().split()
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    named = [
        *project["dependencies"],
        *(entry for extra in project["optional-dependencies"].values() for entry in extra),
    ]
    known = {re.split(r"[<>=~! ]", entry)[0].lower().replace("_", "-") for entry in named}
    pinned = {
        line.partition("==")[0].lower().replace("_", "-") for line in (TREE / "constraints.txt").read_text().split()
    }
    assert set(wanted) <= known
    assert set(wanted) <= pinned


def test_runtime_image_installs_no_compiler() -> None:
    """Three packages serve a model."""
    wanted = (TREE / "images" / "runtime" / "requirements.txt").read_text().split()
    assert wanted == ["aiohttp", "numpy", "prometheus-client"]


def test_key_follows_the_base_and_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree and base give the same tag; another base or a changed file another."""
    first = content.key("runtime", "base:1")
    assert content.key("runtime", "base:1") == first
    assert content.key("runtime", "base:2") != first
    files = content.files("runtime")
    changed = TREE / "images" / "runtime" / "Dockerfile"
    assert changed in files
    monkeypatch.setattr(content, "files", lambda _: [file for file in files if file != changed])
    assert content.key("runtime", "base:1") != first


@pytest.mark.parametrize("name", ["runtime", "compiler"])
def test_operator_change_keeps_other_tags(name: str) -> None:
    """A new controller must not make new revisions or compile again: the other tags depend on no file of it."""
    assert not [file for file in content.files(name) if "cuvil_operator" in file.parts]
    assert any("cuvil_core" in file.parts for file in content.files(name))


def test_pieces_are_those_of_the_toolchain() -> None:
    """The image builds its pieces for the toolchain's target and link flags; others would never be looked up."""
    assert pieces.LINK_FLAGS == LINK_FLAGS
    assert {AVX2.triple, AVX512.triple} == {pieces.TRIPLE}


def test_base_has_a_stable_name() -> None:
    """The base is made once for a list of packages."""
    assert base.reference() == base.reference()
    assert base.reference().startswith("localhost/cuvil/base:")


def test_pip_settings_are_passed_without_the_machines_paths(tmp_path: Path) -> None:
    """Index, wheels and certificates reach the build; certificates under the secret's path."""
    listing = "\n".join(
        [
            "global.index-url='https://index.example/simple'",
            "global.cert='/etc/old.crt'",
            f":env:.cert='{tmp_path}/ca.crt'",
            f":env:.find-links='{tmp_path} https://wheels.example/'",
            ":env:.default-timeout='180'",
            "global.require-virtualenv='true'",
        ]
    )
    found = pip_settings.parse(listing)
    assert found.certificates == tmp_path / "ca.crt"
    assert found.folders == (tmp_path,)
    assert "cert = /run/secrets/ca.crt" in found.text
    assert "index-url = https://index.example/simple" in found.text
    assert "timeout = 180" in found.text
    assert "virtualenv" not in found.text


def test_no_pip_settings_give_an_empty_file() -> None:
    """A machine without settings passes none."""
    assert pip_settings.parse("") == pip_settings.PipSettings("[global]\n", None, ())
