"""A shared object in memory → its functions, typed.

The C interface is `cuvil.h` (docs/decisions/0001); what both sides may rely on is in docs/decisions/0025.
"""

import contextlib
import ctypes
import fcntl
import os
import tempfile
import weakref
from _ctypes import dlclose
from collections.abc import Sequence
from pathlib import Path

from cuvil_core.errors import ArtifactError, InfrastructureError

ABI_VERSION = 3
_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # F_SEAL_SEAL, SHRINK, GROW, WRITE of <fcntl.h>
_INT64S = ctypes.POINTER(ctypes.c_int64)
_POINTERS = ctypes.POINTER(ctypes.c_void_p)


class _Expectation(ctypes.Structure):
    _fields_ = (("weight_bytes", ctypes.c_int64), ("signature", ctypes.c_char_p))


class Library:
    """The functions of one loaded variant. Calls let go of the interpreter lock. Unloaded with the object."""

    def __init__(self, code: memoryview | bytes, where: str) -> None:
        """Load checked code; raises ArtifactError when it is no library of this interface."""
        self._handle, self._library = _load(code, where)
        version = self._function("cuvil_abi_version", where)()
        if version != ABI_VERSION:
            self.close()
            raise ArtifactError(f"{where} speaks interface {version}, wanted {ABI_VERSION}; compile it again")
        self.prepare = self._function("cuvil_prepare", where, _INT64S, _INT64S, _INT64S)
        memory = (ctypes.c_void_p,) * 4
        self.run = self._function("cuvil_run", where, _INT64S, _POINTERS, _POINTERS, *memory)
        self.pool_create = self._function("cuvil_pool_create", where, ctypes.c_int32)
        self.pool_create.restype = ctypes.c_void_p
        expects = self._function("cuvil_expects", where)
        expects.restype = ctypes.POINTER(_Expectation)
        self._expectation = expects().contents
        self._close = weakref.finalize(self, _unload, self._library, self._handle)
        # At exit the process goes anyway, and threads of the pool may still stand in this code.
        self._close.atexit = False

    def check(self, signature: str, weight_bytes: int, where: str) -> None:
        """Raise ArtifactError unless the code was compiled for this signature and has the weights that it reads."""
        if (self._expectation.signature or b"") != signature.encode():
            raise ArtifactError(
                f"{where} states other inputs, outputs or bounds than its code was compiled for; compile it again"
            )
        if weight_bytes < self._expectation.weight_bytes:
            raise ArtifactError(
                f"{where} holds {weight_bytes} bytes of weights, its code reads {self._expectation.weight_bytes}; "
                "compile or fetch it again"
            )

    def keep(self) -> None:
        """Never unload: threads live in this code."""
        self._close.detach()

    def close(self) -> None:
        """Unload now; the object is useless afterwards."""
        if hasattr(self, "_close"):
            self._close()
        else:
            _unload(self._library, self._handle)

    def _function(self, name: str, where: str, *arguments: type) -> "ctypes._NamedFuncPointer":
        try:
            function: ctypes._NamedFuncPointer = getattr(self._library, name)
        except AttributeError as fault:
            self.close()
            raise ArtifactError(f"{where} lacks the function {name}; compile it again") from fault
        function.argtypes, function.restype = arguments, ctypes.c_int32
        return function


def int64_array(values: Sequence[int]) -> "ctypes.Array[ctypes.c_int64]":
    """Give a C array; never of length 0, so that its address is valid."""
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def pointer_array(addresses: Sequence[int]) -> "ctypes.Array[ctypes.c_void_p]":
    """Give a C array of addresses; never of length 0."""
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


def _load(code: memoryview | bytes, where: str) -> tuple[int, ctypes.CDLL]:
    """Load through a sealed memory file, which a read-only root allows, else through a file that is removed at once."""
    handle = -1
    with contextlib.suppress(OSError, AttributeError):
        handle = os.memfd_create("cuvil", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    if handle >= 0:
        try:
            _write(handle, code)
            fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _SEALS)
            # The handle stays open with the library: the loader tells libraries apart by this path.
            return handle, ctypes.CDLL(f"/proc/self/fd/{handle}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError:
            os.close(handle)
    try:
        return -1, _load_by_file(code)
    except OSError as fault:
        raise ArtifactError(f"{where} cannot be loaded: {fault}; compile it again on this system") from fault


def _load_by_file(code: memoryview | bytes) -> ctypes.CDLL:
    try:
        handle, name = tempfile.mkstemp(prefix="cuvil-", suffix=".so")
    except OSError as fault:
        raise InfrastructureError(
            f"no memory file and no temporary file can be made: {fault.strerror}; set TMPDIR to a writable folder"
        ) from fault
    try:
        _write(handle, code)
        return ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    finally:
        os.close(handle)
        Path(name).unlink(missing_ok=True)


def _write(handle: int, code: memoryview | bytes) -> None:
    view = memoryview(code)
    while view:
        view = view[os.write(handle, view) :]


def _unload(library: ctypes.CDLL, handle: int) -> None:
    dlclose(library._handle)
    if handle >= 0:
        os.close(handle)
