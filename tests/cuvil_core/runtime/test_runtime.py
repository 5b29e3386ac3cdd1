"""Loading and calling: right numbers, one-sentence refusals, many threads, bounded memory."""

import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handmade
from cuvil_core.artifact import open_artifact, pack
from cuvil_core.errors import ArtifactError, InputError, InternalError, MissingError, TargetError
from cuvil_core.runtime import load, module


@pytest.fixture
def loaded() -> module.CuvilModule:
    """The handmade program, loaded from memory."""
    return load(handmade.artifact())


def rows(count: int) -> np.ndarray[Any, Any]:
    """Seeded input."""
    return np.random.default_rng(count).standard_normal((count, 3), np.float32)


def test_numbers_by_position_by_name_and_by_mapping(loaded: module.CuvilModule) -> None:
    """Each way of calling gives the program's numbers, for several sizes."""
    for count in (1, 7, 100):
        want = handmade.expected(rows(count))
        for got in (loaded(rows(count)), loaded(x=rows(count)), tuple(loaded.run({"x": rows(count)}).values())):
            np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
            np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-6)


def test_strided_input_is_copied(loaded: module.CuvilModule) -> None:
    """A transposed or stepped view gives the numbers of its contiguous copy."""
    wide = np.random.default_rng(0).standard_normal((3, 8), np.float32)
    np.testing.assert_array_equal(loaded(wide.T)[0], loaded(wide.T.copy())[0])
    np.testing.assert_array_equal(loaded(rows(8)[::2])[0], loaded(rows(8)[::2].copy())[0])


def test_unaligned_input_is_copied(loaded: module.CuvilModule) -> None:
    """An array at an odd address gives the right numbers."""
    odd = np.frombuffer(b"\0" + rows(4).tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 3)
    assert not odd.flags.aligned
    np.testing.assert_array_equal(loaded(odd)[0], loaded(rows(4))[0])


REFUSALS: dict[str, tuple[Callable[[module.CuvilModule], object], str]] = {
    "too many": (lambda m: m(rows(1), rows(1)), "2 inputs were passed, wanted x float32"),
    "missing": (lambda m: m(), "input 'x' is missing, wanted x float32"),
    "unknown name": (lambda m: m(z=rows(1)), "no input 'z'"),
    "twice": (lambda m: m(rows(1), x=rows(1)), "by position and by name"),
    "dtype": (lambda m: m(rows(1).astype(np.float64)), "is float64, wanted float32"),
    "byte order": (lambda m: m(rows(1).astype(">f4")), "wanted float32"),
    "rank": (lambda m: m(rows(1)[0]), r"has shape \(3\), wanted \(N, 3\): it must have 2 axes"),
    "extent": (lambda m: m(np.zeros((1, 4), np.float32)), r"has shape \(1, 4\), wanted \(N, 3\): axis 1 must be 3"),
    "empty": (lambda m: m(np.zeros((0, 3), np.float32)), r"axis 0 \(N\) must be at least 1"),
    "guard": (lambda m: m(rows(101)), r"\(N = 101\) break the model's condition N <= 100"),
    "list": (lambda m: m([[1.0, 2.0, 3.0]]), "is of type list, wanted a NumPy array"),
    "text": (lambda m: m("abc"), "is of type str"),
    "object": (lambda m: m(np.array([[None] * 3])), "is object, wanted float32"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_wrong_inputs_get_one_sentence(loaded: module.CuvilModule, case: str) -> None:
    """Each misuse is an InputError that says which input, what came and what is wanted."""
    call, sentence = REFUSALS[case]
    with pytest.raises(InputError, match=sentence):
        call(loaded)


def test_bounds_of_the_request_hold() -> None:
    """An extent outside the stated bounds is refused, the limits themselves pass."""
    bounded = load(handmade.artifact(bounds={"N": [2, 4]}))
    assert bounded(rows(2))[0].shape == (2, 3)
    assert bounded(rows(4))[0].shape == (4, 3)
    for count in (1, 5):
        with pytest.raises(InputError, match="from 2 to 4"):
            bounded(rows(count))


def test_same_symbol_must_agree() -> None:
    """Two axes of one symbol with different extents are refused, naming both."""
    from dataclasses import replace

    from cuvil_core.contract import TensorSpec

    two = (TensorSpec("x", "float32", ("N", 3)), TensorSpec("z", "float32", ("N",)))
    made = replace(handmade.manifest(), inputs=two)
    loaded = load(pack(made, {"x86_64-avx2": handmade.library(made=made)}, b"\0" * 12))
    with pytest.raises(InputError, match=r"input 'z' has shape \(3\), wanted \(N\): axis 0 \(N\) must be 2"):
        loaded(rows(2), np.zeros(3, np.float32))


def test_many_threads_at_once(loaded: module.CuvilModule) -> None:
    """Calls of 8 threads with changing sizes each get their own numbers."""

    def call(turn: int) -> None:
        x = rows(1 + turn % 60)
        np.testing.assert_array_equal(loaded(x)[0], handmade.expected(x)[0])

    with ThreadPoolExecutor(8) as crew:
        list(crew.map(call, range(800)))


def test_remembered_sizes_are_bounded(loaded: module.CuvilModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of prepared sizes never grows beyond its bound, and forgotten sizes are prepared again."""
    monkeypatch.setattr(module, "REMEMBERED", 4)
    for count in [*range(1, 50), 1]:
        assert loaded(rows(count))[0].shape == (count, 3)
    assert len(loaded._plans) <= 4


def test_arenas_are_reused(loaded: module.CuvilModule) -> None:
    """Sequential calls of growing size keep one arena."""
    for count in (1, 50, 100, 2):
        loaded(rows(count))
    assert len(loaded._arenas._idle) == 1
    assert loaded.arena_bytes({"x": rows(10)}) == 120


def test_failed_run_is_internal_and_the_module_lives_on(loaded: module.CuvilModule) -> None:
    """A code that nothing explains is an InternalError; the next call works."""
    with pytest.raises(InternalError, match="code 7"):
        loaded(np.full((1, 3), -12345.0, np.float32))
    assert loaded(rows(1))[0].shape == (1, 3)


def test_stated_assert_is_the_callers_fault() -> None:
    """A code with a text in the manifest is an InputError with that text."""
    loaded = load(handmade.artifact(asserts=["0"] * 6 + ["indices within 0 and 9"]))
    with pytest.raises(InputError, match="indices within 0 and 9"):
        loaded(np.full((1, 3), -12345.0, np.float32))


def test_altered_code_and_weights_are_never_loaded() -> None:
    """A flip in a library or in the weights stops the load."""
    whole = handmade.artifact()
    for part in open_artifact(whole).manifest.segments:
        bad = bytearray(whole)
        bad[part.offset] ^= 1
        with pytest.raises(ArtifactError):
            load(bytes(bad))


def test_variant_by_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The richest runnable variant is chosen; none runnable says what this CPU lacks; a forced one must exist."""
    facts = {"variants": {"x86_64-rich": ["avx", "avx2"], "x86_64-alien": ["flux_capacitor"], "x86_64-avx2": ["avx"]}}
    code = handmade.library()
    packed = pack(
        handmade.manifest(**facts), {"x86_64-rich": code, "x86_64-alien": code, "x86_64-avx2": code}, b"\0" * 12
    )
    assert load(packed).report.variant == "x86_64-rich"
    assert load(packed, variant="x86_64-avx2").report.variant == "x86_64-avx2"
    with pytest.raises(TargetError, match="no variant 'x86_64-amx', it has"):
        load(packed, variant="x86_64-amx")
    with pytest.raises(TargetError, match="x86_64-alien needs flux_capacitor"):
        load(packed, variant="x86_64-alien")


def test_foreign_code_is_refused() -> None:
    """Another interface version, a missing function and bytes that are no library are ArtifactErrors."""
    for code, sentence in (
        (handmade.library(abi=9), "speaks interface 9, wanted 3"),
        (handmade.library(source="int cuvil_abi_version(void) { return 3; }"), "lacks the function cuvil_prepare"),
        (b"not a library", "cannot be loaded"),
    ):
        with pytest.raises(ArtifactError, match=sentence):
            load(pack(handmade.manifest(), {"x86_64-avx2": code}, b""))


def test_code_is_unloaded_with_the_module() -> None:
    """Loading and dropping many modules leaves neither handles nor mappings behind."""
    keep = load(handmade.artifact())
    keep(rows(1))  # makes the pool, whose library stays
    for _ in range(3):
        load(handmade.artifact())
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        load(handmade.artifact())(rows(2))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    assert keep(rows(1))[0].shape == (1, 3)


def test_without_memory_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory files are forbidden, a temporary file serves and is gone afterwards."""
    monkeypatch.setattr(os, "memfd_create", lambda *_: (_ for _ in ()).throw(OSError("forbidden")))
    assert load(handmade.artifact())(rows(2))[0].shape == (2, 3)


def test_save_and_load_by_path(tmp_path: Path, loaded: module.CuvilModule) -> None:
    """A saved artifact is the same bytes and loads; a missing path is a MissingError."""
    loaded.save(tmp_path / "a.cuvil")
    assert (tmp_path / "a.cuvil").read_bytes() == handmade.artifact()
    assert load(tmp_path / "a.cuvil").report.weight_bytes == 12
    with pytest.raises(MissingError):
        load(tmp_path / "none")


def test_report_and_signature(loaded: module.CuvilModule) -> None:
    """The report tells variant and load time, the signature reads like one."""
    assert str(loaded.signature) == "(x float32(N, 3)) → y float32(N, 3), total float32(N)"
    assert loaded.report.variant == "x86_64-avx2"
    assert 0 < loaded.report.load_ms < 5_000
    assert '"handmade"' in loaded.report.to_json()
    assert loaded.metadata == {"character": "abc"}


def test_one_thread_pool_for_all_modules() -> None:
    """Two modules, loaded and called by threads at once, use one pool address."""
    from cuvil_core.runtime.pool import _ProcessPool

    pool, barrier = _ProcessPool(), threading.Barrier(4)
    libraries = [load(handmade.artifact())._library for _ in range(2)]

    def ask(turn: int) -> int | None:
        barrier.wait()
        return pool.address(libraries[turn % 2])

    with ThreadPoolExecutor(4) as crew:
        assert len(set(crew.map(ask, range(4)))) == 1


def test_child_after_fork_computes(loaded: module.CuvilModule) -> None:
    """A forked child makes its own pool and gets the right numbers."""
    loaded(rows(2))
    child = os.fork()
    if child == 0:
        good = bool(np.array_equal(loaded(rows(2))[0], handmade.expected(rows(2))[0]))
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class _Lent:
    """An array of another library: it speaks DLPack alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries(loaded: module.CuvilModule) -> None:
    """What speaks DLPack is read; what lies elsewhere is refused with the cure."""

    class Far(_Lent):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it lies on cuda:0")

    np.testing.assert_array_equal(loaded(_Lent(rows(3)))[0], loaded(rows(3))[0])
    with pytest.raises(InputError, match=r"cuda:0.*pass it on the CPU"):
        loaded(Far(rows(3)))


def test_torch_tensors_give_torch_tensors(loaded: module.CuvilModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a module named torch is loaded and its tensors come in, its tensors go out, by from_numpy."""
    import types

    class Tensor(_Lent):
        def detach(self) -> "Tensor":
            return self

    monkeypatch.setitem(__import__("sys").modules, "torch", types.SimpleNamespace(Tensor=Tensor, from_numpy=Tensor))
    y, total = loaded(Tensor(rows(3)))
    assert isinstance(y, Tensor) and isinstance(total, Tensor)
    np.testing.assert_allclose(y.array, handmade.expected(rows(3))[0], rtol=1e-6)
    assert isinstance(loaded(rows(3))[0], np.ndarray)


def test_altered_artifacts_load_right_or_not_at_all() -> None:
    """1,000 seeded bit flips and 1,000 truncations, loaded and called: an ArtifactError or the right numbers."""
    import random

    whole, dice, x = handmade.artifact(), random.Random(5), rows(4)
    want, loads = handmade.expected(x)[0], 0
    for turn in range(2_000):
        bad = bytearray(whole)
        if turn % 2:
            bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        else:
            del bad[dice.randrange(len(bad)) :]
        try:
            y = load(bytes(bad))(x)[0]
        except ArtifactError:
            continue
        loads += 1
        np.testing.assert_array_equal(y, want)
    assert loads < 1_000
