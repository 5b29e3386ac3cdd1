"""The cache under all that can go wrong: other processes, kill -9, a full disk, a read-only folder, broken files."""

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import handmade
from cuvil_core.artifact import Artifact
from cuvil_core.cache import Cache, cache_key
from cuvil_core.cache import store as store_module
from cuvil_core.contract import CompileRequest
from cuvil_core.errors import InputError, ModelError
from cuvil_core.runtime import load

KEY = "0f" * 32


def verified(artifact: Artifact) -> Artifact:
    """Check every byte, as loading would check its parts."""
    artifact.verify()
    return artifact


def never() -> bytes:
    """A build that must not happen."""
    raise AssertionError("built again")


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked child; give its exit code, 1 for an exception, or minus the signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as fault:
            os.write(2, f"{fault!r}\n".encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_second_time_is_a_hit(tmp_path: Path) -> None:
    """An entry is built once, then found; what is used is the same bytes."""
    cache = Cache(tmp_path)
    first = cache.obtain(KEY, handmade.artifact, verified)
    second = cache.obtain(KEY, never, load)
    assert (first.hit, second.hit, first.note) == (False, True, "")
    assert first.value.data == second.value.artifact.data
    assert not list((tmp_path / "locks").iterdir())


def test_key_depends_on_all_that_decides_the_bytes() -> None:
    """Model, request, compiler and, for native alone, CPU features change the key."""
    native, fixed = CompileRequest(), CompileRequest(target="x86_64-cpu")
    keys = [
        cache_key("a", native, "1", ["avx2"]),
        cache_key("a", native, "1", ["avx2", "avx512f"]),
        cache_key("b", native, "1", ["avx2"]),
        cache_key("a", native, "2", ["avx2"]),
        cache_key("a", fixed, "1", ["avx2"]),
        cache_key("a", CompileRequest(precision="fp32_strict"), "1", ["avx2"]),
    ]
    assert len(set(keys)) == len(keys)
    assert cache_key("a", fixed, "1", ["avx2"]) == cache_key("a", fixed, "1", ["sse2"])
    assert cache_key("a", native, "1", ["x", "y"]) == cache_key("a", native, "1", ["y", "x"])


def test_broken_entry_is_removed_and_built_again(tmp_path: Path) -> None:
    """A flipped byte, a truncation and an empty file each lead to a new build that is then found."""
    cache = Cache(tmp_path)
    whole = handmade.artifact()
    path = tmp_path / "artifacts" / f"{KEY}.cuvil"
    cache.obtain(KEY, handmade.artifact, verified)
    for broken in (whole[:-1] + b"\xff", whole[:5_000], b""):
        path.write_bytes(broken)
        assert not cache.obtain(KEY, handmade.artifact, load).hit
        assert path.read_bytes() == whole
        assert cache.obtain(KEY, never, load).hit


def test_errors_of_the_build_come_through(tmp_path: Path) -> None:
    """A model that does not compile leaves no entry and no lock."""

    def refuse() -> bytes:
        raise ModelError("no model")

    with pytest.raises(ModelError):
        Cache(tmp_path).obtain(KEY, refuse, verified)
    assert not list((tmp_path / "artifacts").iterdir()) and not list((tmp_path / "locks").iterdir())


def test_sixteen_processes_build_once(tmp_path: Path) -> None:
    """16 processes that want one key at once get the same artifact from one build."""
    journal = tmp_path / "journal"

    def build() -> bytes:
        with open(journal, "a") as file:
            file.write("built\n")
        time.sleep(0.3)
        return handmade.artifact()

    handmade.library()
    children = []
    for _ in range(16):
        child = os.fork()
        if child == 0:
            try:
                good = Cache(tmp_path / "c").obtain(KEY, build, verified).value.data == handmade.artifact()
                os._exit(0 if good else 1)
            except BaseException:
                os._exit(2)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 16
    assert journal.read_text() == "built\n"


def test_killed_in_mid_write(tmp_path: Path) -> None:
    """Writers killed with -9 at several points of the write leave no entry or a whole one, no lock, and no deadlock."""
    big = handmade.artifact(bytes(48 << 20))
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    caught = 0
    for delay in (0.0, 0.002, 0.01, 0.03):
        child = os.fork()
        if child == 0:
            Cache(tmp_path).obtain(KEY, lambda: big, verified)
            os._exit(0)
        until = time.monotonic() + 20
        while time.monotonic() < until and not any(artifacts.iterdir()):
            time.sleep(0.001)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        caught += any(path.name.endswith(".partial") for path in artifacts.iterdir())
        got = Cache(tmp_path).obtain(KEY, handmade.artifact, verified)
        assert len(got.value.data) in (len(big), len(handmade.artifact()))
        Cache(tmp_path).remove(KEY)
        for path in artifacts.iterdir():
            path.unlink()
    assert caught, "no writer was caught in the middle"


def test_leftovers_are_removed_after_an_hour(tmp_path: Path) -> None:
    """A partial file and a build folder go when they are old, not while their owner may live."""
    cache = Cache(tmp_path)
    cache.obtain(KEY, handmade.artifact, verified)
    old, young = (tmp_path / "artifacts" / f".x.{name}.partial" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"x" * 10)
    for name in ("build-old", "build-young"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.c").touch()
    os.utime(tmp_path / "build-old", (1, 1))
    os.utime(old, (1, 1))
    assert cache.collect() == 10
    assert young.exists() and not old.exists()
    assert (tmp_path / "build-young").exists() and not (tmp_path / "build-old").exists()


def test_full_disk_only_costs_the_entry(tmp_path: Path) -> None:
    """Where the file cannot be written whole, the artifact works from memory and no partial stays."""
    handmade.library()

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
        got = Cache(tmp_path).obtain(KEY, handmade.artifact, verified)
        assert not got.hit and "cannot write" in got.note

    assert in_child(work) == 0
    assert not list((tmp_path / "artifacts").iterdir())
    assert Cache(tmp_path).obtain(KEY, handmade.artifact, load).note == ""


def test_read_only_folder_only_costs_the_entry(tmp_path: Path) -> None:
    """A folder that this user may not write gives no entry and no error; entries already there are found."""
    handmade.library()
    shared = tmp_path / "shared"
    Cache(shared).obtain(KEY, handmade.artifact, verified)
    for folder in (tmp_path, shared, shared / "artifacts", shared / "locks"):
        folder.chmod(0o555)
    for parent in list(tmp_path.parents)[:3]:
        parent.chmod(parent.stat().st_mode | 0o055)

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(65_534)
        assert Cache(shared).obtain(KEY, never, verified).hit
        got = Cache(shared).obtain("1e" * 32, handmade.artifact, verified)
        assert not got.hit and "cannot be written" in got.note

    code = in_child(work)
    for folder in (tmp_path, shared, shared / "artifacts", shared / "locks"):
        folder.chmod(0o755)
    assert code == 0


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file where the folder should be only costs the entry."""
    (tmp_path / "file").touch()
    got = Cache(tmp_path / "file" / "c").obtain(KEY, handmade.artifact, verified)
    assert not got.hit and got.note


def test_size_bound_removes_the_longest_unused(tmp_path: Path) -> None:
    """Over the bound the entry unused for longest goes; a hit counts as use; the newest always stays."""
    size = len(handmade.artifact())
    cache = Cache(tmp_path, limit=2 * size)
    for turn, key in enumerate("abc"):
        cache.obtain(key * 64, handmade.artifact, verified)
        os.utime(tmp_path / "artifacts" / f"{key * 64}.cuvil", (turn + 1, turn + 1))
        if key == "b":
            assert cache.obtain("a" * 64, never, verified).hit
    assert {entry.key[0] for entry in cache.entries()} == {"a", "c"}
    tiny = Cache(tmp_path, limit=1)
    assert tiny.obtain("d" * 64, handmade.artifact, verified).note == ""
    assert [entry.key[0] for entry in tiny.entries()] == ["d"]


def test_index_is_made_from_the_files(tmp_path: Path) -> None:
    """The index tells what is stored; a lost or broken one is made again."""
    cache = Cache(tmp_path)
    cache.obtain(KEY, handmade.artifact, verified)
    index = tmp_path / "index.json"
    want = json.loads(index.read_text())["entries"][KEY]
    assert (want["name"], want["size"]) == ("handmade", len(handmade.artifact()))
    for broken in ("", "[]", '{"entries": {"x": 1}}', "{" * 99_999):
        index.write_text(broken)
        cache.collect()
        assert json.loads(index.read_text())["entries"][KEY]["name"] == "handmade"


@pytest.mark.parametrize("damage", [b"x" * 3_000, b"CUVIL\x00\x02\n" + bytes(500)])
def test_damaged_files_count_and_go(tmp_path: Path, damage: bytes) -> None:
    """A damaged file is listed with its size, goes when it is the one unused for longest, and with all others."""
    size = len(handmade.artifact())
    cache = Cache(tmp_path, limit=2 * size)
    for key in ("ab" * 32, "cd" * 32):
        cache.obtain(key, handmade.artifact, verified)
    broken = tmp_path / "artifacts" / f"{'ab' * 32}.cuvil"
    broken.write_bytes(damage)
    os.utime(broken, (1, 1))
    cache.collect()
    (entry,) = (one for one in cache.entries() if one.key == "ab" * 32)
    assert (entry.name, entry.size) == ("unreadable", len(damage))
    assert cache.collect(size + len(damage) - 1) == len(damage) and not broken.exists()
    broken.write_bytes(damage)
    assert cache.collect(0) == size + len(damage)
    broken.write_bytes(handmade.artifact())
    assert [one.name for one in cache.entries()] == ["handmade"]


def test_empty_files_go(tmp_path: Path) -> None:
    """A file without bytes is removed by any collection, also where nothing else lies."""
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / f"{KEY}.cuvil").touch()
    assert Cache(tmp_path).collect() == 0 and not list((tmp_path / "artifacts").iterdir())


def test_what_cannot_be_removed_frees_nothing(tmp_path: Path) -> None:
    """A folder where an entry should be neither stops the removal of others nor counts as freed."""
    cache = Cache(tmp_path)
    cache.obtain(KEY, handmade.artifact, verified)
    (tmp_path / "artifacts" / "x.cuvil").mkdir()
    os.utime(tmp_path / "artifacts" / "x.cuvil", (1, 1))
    assert cache.collect(0) == len(handmade.artifact())


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CUVIL_CACHE_DIR, then an absolute XDG_CACHE_HOME, then the home folder; a senseless limit is refused."""
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path))
    assert store_module.cache_dir() == tmp_path
    monkeypatch.delenv("CUVIL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store_module.cache_dir() == tmp_path / "cuvil"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert store_module.cache_dir() == Path.home() / ".cache" / "cuvil"
    monkeypatch.setenv("CUVIL_CACHE_LIMIT", "a lot")
    with pytest.raises(InputError, match="CUVIL_CACHE_LIMIT"):
        Cache()
