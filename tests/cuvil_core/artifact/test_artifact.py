"""The artifact file: what goes in comes out, and no altered byte gets through."""

import os
import random
import stat
from pathlib import Path

import pytest

from cuvil_core.artifact import open_artifact, pack, publish
from cuvil_core.artifact.layout import PAGE
from cuvil_core.contract import CompileRequest, Manifest, TensorSpec
from cuvil_core.errors import ArtifactError, DigestError, InfrastructureError, InputError, MissingError, SizeError

ROUNDS = 1_000


def manifest() -> Manifest:
    """A small manifest with a symbolic dim."""
    return Manifest(
        name="tiny",
        model_sha256="ab" * 32,
        request=CompileRequest(),
        inputs=(TensorSpec("x", "float32", ("N", 3)),),
        outputs=(TensorSpec("y", "float32", ("N", 3)),),
        segments=(),
        compiler="0",
    )


def whole(weights: bytes = b"w" * 5_000) -> bytes:
    """An artifact with two libraries."""
    return pack(manifest(), {"x86_64-avx2": b"two" * 100, "x86_64-avx512": b"five" * 2_000}, weights)


def read_all(data: bytes) -> tuple[object, ...]:
    """All that a reader can take from an artifact."""
    artifact = open_artifact(data)
    artifact.verify()
    parts = {name: bytes(artifact.library(name)) for name in artifact.variants}
    return artifact.manifest, parts, bytes(artifact.weights())


def test_parts_come_back() -> None:
    """Manifest, libraries and weights come back as they went in, each on its page."""
    artifact = open_artifact(whole())
    assert bytes(artifact.library("x86_64-avx2")) == b"two" * 100
    assert bytes(artifact.library("x86_64-avx512")) == b"five" * 2_000
    assert bytes(artifact.weights()) == b"w" * 5_000
    assert artifact.manifest.inputs == manifest().inputs
    assert all(part.offset % PAGE == 0 for part in artifact.manifest.segments)
    assert artifact.manifest.segments[-1].name == "weights"


def test_equal_arguments_give_equal_bytes() -> None:
    """Packing is a function of its arguments."""
    assert whole() == whole()


def test_no_weights() -> None:
    """A model without weights packs and reads."""
    assert bytes(open_artifact(whole(b"")).weights()) == b""


def test_every_bit_flip_is_an_error() -> None:
    """1,000 single bit flips at seeded places each end in an ArtifactError."""
    data, dice = whole(), random.Random(1)
    for _ in range(ROUNDS):
        at = dice.randrange(len(data) * 8)
        bad = bytearray(data)
        bad[at // 8] ^= 1 << at % 8
        with pytest.raises(ArtifactError):
            read_all(bytes(bad))


def test_every_bit_flip_of_the_head_is_an_error() -> None:
    """Each single bit flip in the head and the first bytes of the manifest ends in an ArtifactError."""
    data = whole()
    for at in range(148 * 8):
        bad = bytearray(data)
        bad[at // 8] ^= 1 << at % 8
        with pytest.raises(ArtifactError):
            read_all(bytes(bad))


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    """1,000 seeded truncations, of files and of bytes, each end in an ArtifactError."""
    data, dice = whole(), random.Random(2)
    path = tmp_path / "a"
    for turn in range(ROUNDS):
        cut = dice.randrange(len(data))
        if turn % 10 == 0:
            path.write_bytes(data[:cut])
            with pytest.raises(ArtifactError):
                open_artifact(path).verify()
        with pytest.raises(ArtifactError):
            read_all(data[:cut])


def test_added_bytes_are_an_error() -> None:
    """An artifact with a tail is refused."""
    with pytest.raises(ArtifactError, match="bytes where its manifest says"):
        open_artifact(whole() + b"\0")


def test_weights_of_many_chunks_are_checked_by_threads() -> None:
    """A flip deep inside many megabytes is found with one thread and with two."""
    weights = bytearray(os.urandom(1 << 20) * 6 + b"tail")
    data = bytearray(whole(bytes(weights)))
    assert len(open_artifact(bytes(data)).weights(threads=2)) == len(weights)
    data[-3] ^= 1
    for threads in (1, 2):
        with pytest.raises(ArtifactError, match="altered weights"):
            open_artifact(bytes(data)).weights(threads=threads)


def test_digest_of_the_file() -> None:
    """The right digest passes, another is a DigestError that names both."""
    artifact = open_artifact(whole())
    artifact.verify(artifact.sha256())
    with pytest.raises(DigestError, match="wanted 00"):
        artifact.verify("00" * 32)


def test_bad_paths_have_their_errors(tmp_path: Path) -> None:
    """A missing file, a folder, an empty file, a device and an oversize each give their own error."""
    with pytest.raises(MissingError):
        open_artifact(tmp_path / "none")
    with pytest.raises(ArtifactError, match="folder"):
        open_artifact(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(ArtifactError, match="empty"):
        open_artifact(tmp_path / "empty")
    with pytest.raises(ArtifactError, match="no plain file"):
        open_artifact("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    for endless in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ArtifactError, match="no plain file"):
            open_artifact(endless)
    with pytest.raises(ArtifactError, match="no path"):
        open_artifact("a\0b")
    with pytest.raises(SizeError):
        open_artifact(whole(), limit=100)


def test_deep_nesting_is_an_error() -> None:
    """A manifest nested beyond the parser's depth is an ArtifactError, not a crash."""
    from hashlib import sha256

    from cuvil_core.artifact.layout import HEAD, MAGIC

    text = b"[" * 200_000
    with pytest.raises(ArtifactError):
        open_artifact(HEAD.pack(MAGIC, len(text), sha256(text).digest()) + text)


def test_publish_leaves_all_or_nothing(tmp_path: Path) -> None:
    """A published file is whole, and a failed write leaves neither file nor partial."""
    publish(b"one", tmp_path / "a")
    publish(b"two", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"two"
    with pytest.raises(InfrastructureError):
        publish(b"x", tmp_path / "none" / "a")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_publish_replaces_plain_files_only(tmp_path: Path) -> None:
    """A pipe, a folder, a link to a pipe, a device's link and an impossible name are refused and stay as they are."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for bad, sentence in (
        (tmp_path / "pipe", "a pipe"),
        (tmp_path / "link", "a pipe"),
        (tmp_path, "is a folder"),
        (Path("/proc/self/exe"), "stands for a device"),
        (tmp_path / ("n" * 300), "can name no file"),
        (Path("a\0b"), "can name no file"),
    ):
        with pytest.raises(InputError, match=sentence):
            publish(b"x", bad)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "pipe"]


def test_publish_takes_the_longest_name(tmp_path: Path) -> None:
    """A name of 255 bytes, which leaves none for the partial file's own, is written."""
    publish(b"x", tmp_path / ("ü" * 127))
    assert (tmp_path / ("ü" * 127)).read_bytes() == b"x"
