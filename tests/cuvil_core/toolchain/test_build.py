"""The toolchain builds, repeats itself byte for byte, and turns each way to fail into its own error."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from pathlib import Path

import pytest

from compiled_kernels import CACHE, targets
from cuvil_core import support
from cuvil_core.errors import InfrastructureError, InternalError, SizeError, TimeLimitError
from cuvil_core.toolchain import AVX2, AVX512, TargetSpec, build, compiler_version, prepared
from cuvil_core.toolchain.process import Compiler

ADD = '#include "cuvil.h"\nCUVIL_EXPORT int32_t add(int32_t a, int32_t b) { return a + b; }\n'
TIMES = '#include "cuvil.h"\nCUVIL_EXPORT int32_t times(int32_t a, int32_t b) { return a * b; }\n'


def load(binary: bytes, folder: Path) -> ctypes.CDLL:
    """The library, from a file that is free to go."""
    file = folder / "built.so"
    file.write_bytes(binary)
    return ctypes.CDLL(str(file))


def test_files_link_into_one_library(tmp_path: Path) -> None:
    """Several files become one shared object whose exports work."""
    library = load(build({"a.c": ADD, "b.c": TIMES}, support.headers(), AVX2, cache_dir=CACHE), tmp_path)
    assert library.add(2, 3) == 5 and library.times(2, 3) == 6


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
def test_equal_inputs_give_equal_bytes(target: TargetSpec) -> None:
    """Two builds of the support library, files given in another order, are the same bytes."""
    sources = {"a.c": ADD, "b.c": TIMES, **support.sources()}
    turned = dict(reversed(sources.items()))
    first, second = (build(s, support.headers(), target, cache_dir=CACHE) for s in (sources, turned))
    assert first == second


def test_the_library_needs_only_libc(tmp_path: Path) -> None:
    """No dependency but the C library and its threads, no symbol newer than glibc 2.17."""
    binary = build(support.sources(), support.headers(), targets()[-1], cache_dir=CACHE)
    needed = {name for name in (b"libm.so", b"libgcc_s", b"libstdc++", b"libomp") if name in binary}
    assert not needed
    newer = [f"GLIBC_2.{minor}".encode() for minor in range(18, 60) if f"GLIBC_2.{minor}".encode() + b"\0" in binary]
    assert not newer


def test_first_build_of_a_machine_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without runtime pieces is told from one in which something was built."""
    monkeypatch.delenv("ZIG_GLOBAL_CACHE_DIR", raising=False)
    build({"a.c": ADD}, support.headers(), AVX2, cache_dir=CACHE)
    assert prepared(CACHE) and not prepared(tmp_path)
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path))
    assert not prepared(CACHE)


def test_wrong_c_names_the_line() -> None:
    """C that does not compile is a fault of Cuvil, told with file, line and reason."""
    with pytest.raises(InternalError, match=r"bad\.c:1:\d+: error"):
        build({"bad.c": "int f(void) { return missing; }\n"}, {}, AVX2, cache_dir=CACHE)


def test_an_undefined_symbol_is_found_at_link_time() -> None:
    """What would fail when the artifact is loaded fails when it is built."""
    text = '#include "cuvil.h"\nint absent(void);\nCUVIL_EXPORT int f(void) { return absent(); }\n'
    with pytest.raises(InternalError, match="absent"):
        build({"undefined.c": text}, support.headers(), AVX2, cache_dir=CACHE)


def test_the_time_limit_holds() -> None:
    """A build that is out of time says so."""
    with pytest.raises(TimeLimitError, match="time limit"):
        build({"a.c": ADD * 1}, support.headers(), AVX2, cache_dir=CACHE, time_limit=0.0)


@pytest.mark.parametrize("ended_by", ["a signal", "the time limit"])
def test_no_process_outlives_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, ended_by: str
) -> None:
    """The compiler and what it started are gone when a build is interrupted or out of time."""
    pipe, program = tmp_path / "pipe", tmp_path / "slow"
    os.mkfifo(pipe)
    # Both processes hold the pipe open: its end is read when the last of them is gone.
    program.write_text(f"#!/bin/sh\nexec 3>{pipe}\nsleep 600 &\necho started >&3\nwait\n")
    program.chmod(0o700)
    monkeypatch.setattr(
        "cuvil_core.toolchain.building.find_compiler", lambda _: Compiler(program, "0", tmp_path / "pieces")
    )

    def watch() -> None:
        with open(pipe, encoding="utf-8") as file:
            assert file.readline() == "started\n"
            if ended_by == "a signal":
                os.kill(os.getpid(), signal.SIGINT)
            file.read()

    # A process that a shell has put into the background ignores SIGINT, and so would the tests.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    limit = 600.0 if ended_by == "a signal" else 2.0
    with pytest.raises(KeyboardInterrupt if ended_by == "a signal" else TimeLimitError):
        build({"a.c": ADD}, {}, AVX2, cache_dir=tmp_path, time_limit=limit)
    watcher.join(20)
    assert not watcher.is_alive()


@pytest.mark.parametrize("name", ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"])
def test_a_compilers_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A folder in which nothing can be made, with which the compiler would spin for ever, is refused at once."""
    monkeypatch.setenv(name, "/proc/x")
    with pytest.raises(InfrastructureError, match=rf"/proc/x: No such file.* set {name} to"):
        build({"a.c": ADD}, {}, AVX2, cache_dir=tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A cache directory below a file is refused with the directory and the cure."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=r"file.*CUVIL_CACHE_DIR"):
        build({"a.c": ADD}, {}, AVX2, cache_dir=tmp_path / "file" / "cache")


def test_too_much_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of generated C is bounded."""
    monkeypatch.setattr("cuvil_core.toolchain.building.MAX_SOURCE_BYTES", 10)
    with pytest.raises(SizeError, match="smaller model"):
        build({"a.c": ADD}, {}, AVX2, cache_dir=CACHE)


def test_the_compiler_has_a_version() -> None:
    """Cache keys carry the compiler's version."""
    assert compiler_version().count(".") == 2


def test_the_users_flags_do_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """CFLAGS and CPATH of the shell change nothing."""
    plain = build({"a.c": ADD}, support.headers(), AVX2, cache_dir=CACHE)
    monkeypatch.setenv("CFLAGS", "-DADD=1 -O0")
    monkeypatch.setenv("CPATH", "/nowhere")
    assert build({"a.c": ADD}, support.headers(), AVX2, cache_dir=CACHE) == plain
