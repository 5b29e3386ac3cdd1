"""Image archives written without an image tool."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from e2e.cluster import images
from e2e.cluster.errors import ClusterError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An executable file."""
    file = tmp_path / "program"
    file.write_bytes(b"\x7fELF" + bytes(5000))
    return file


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    """The bytes of an archive's file."""
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def test_archive_is_consistent(tmp_path: Path, program: Path) -> None:
    """Each blob lies under its own digest, and index, manifest and config lead to the layer with the program."""
    archive = tmp_path / "image.tar"
    digest = images.write_archive(archive, "localhost/x:1", {"/bin/x": program}, entrypoint=["/bin/x"])
    with tarfile.open(archive) as tar:
        blobs = {name.rpartition("/")[2]: _member(tar, name) for name in tar.getnames() if "sha256/" in name}
        index = json.loads(_member(tar, "index.json"))
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in blobs.items())
    assert index["manifests"][0]["digest"] == digest
    manifest = json.loads(blobs[digest.removeprefix("sha256:")])
    config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    layer = tmp_path / "layer.tar"
    layer.write_bytes(blobs[manifest["layers"][0]["digest"].removeprefix("sha256:")])
    with tarfile.open(layer) as tar:
        assert tar.getnames() == ["bin", "tmp", "bin/x"]
        assert _member(tar, "bin/x") == program.read_bytes()


def test_archive_is_reproducible(tmp_path: Path, program: Path) -> None:
    """Equal inputs give equal bytes."""
    for name in ("a.tar", "b.tar"):
        images.write_archive(tmp_path / name, "localhost/x:1", {"/x": program}, entrypoint=["/x"])
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_tag_follows_the_content(program: Path) -> None:
    """Another program under the same name gets another tag, so that its pods are replaced."""
    image = images.Image("x", program, "/x")
    before = images.references([image])
    program.write_bytes(b"other")
    assert images.references([image]) != before


def test_name_is_read_from_the_archive(tmp_path: Path, program: Path) -> None:
    """The archive's annotation gives the image's name."""
    images.write_archive(tmp_path / "a.tar", "localhost/x:1", {"/x": program}, entrypoint=["/x"])
    assert images.archive_name(tmp_path / "a.tar") == "localhost/x:1"


def test_other_tar_is_refused(tmp_path: Path, program: Path) -> None:
    """A tar that is no image gives a sentence."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(program, "program")
    with pytest.raises(ClusterError, match="neither an OCI nor a docker"):
        images.archive_name(tmp_path / "a.tar")
