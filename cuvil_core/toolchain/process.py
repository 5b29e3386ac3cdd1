"""The compiler's process: environment, time limit, and what its failures mean."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuvil_core.errors import InfrastructureError, InternalError, TimeLimitError

GLOBAL_CACHE, LOCAL_CACHE = "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"
_DISK = ("NoSpaceLeft", "No space left on device", "DiskQuota", "Disk quota exceeded")
_MEMORY = ("OutOfMemory", "out of memory", "SystemResources")
_DENIED = ("AccessDenied", "ReadOnlyFileSystem", "Read-only file system", "Permission denied")
_SHOWN_LINES = 6


class Running:
    """The compiler's processes of one build, so that all of them end with it: each leads a session of its own."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def start(self, arguments: Sequence[str], room: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Starts a process; none any more after `stop`, which raises InfrastructureError."""
        with self._lock:
            if self._stopped:
                raise InfrastructureError("The build was stopped; start it again.")
            process = subprocess.Popen(
                arguments,
                cwd=room,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._processes.add(process)
            return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kills what is left of a process and of its children."""
        with self._lock:
            self._processes.discard(process)
        _kill(process)

    def stop(self) -> None:
        """Kills all, and lets nothing start any more."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the group of a process that was not waited for yet: until then its number belongs to no other."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Compiler:
    """The wheel's compiler and where it keeps the runtime pieces that it builds once."""

    program: Path
    version: str
    pieces: Path | None
    """None: where the user's environment says."""

    def run(self, arguments: Sequence[str], room: Path, deadline: float, running: Running) -> None:
        """Runs `zig cc` in a directory until the deadline (monotonic seconds); see `build` for what is raised."""
        process = running.start([str(self.program), "cc", *arguments], room, self._environment(room))
        try:
            _, said = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimeLimitError("Compiling the C took longer than its time limit; raise the limit.") from error
        finally:
            running.end(process)
            process.communicate()
        if process.returncode:
            raise _failure(process.returncode, said.decode("utf-8", "replace"))

    def check_folders(self) -> None:
        """Raises InfrastructureError for a cache that cannot be written: the compiler would try without an end."""
        stated = [(name, os.environ[name]) for name in (GLOBAL_CACHE, LOCAL_CACHE) if os.environ.get(name)]
        own = [("CUVIL_CACHE_DIR", str(self.pieces))] if self.pieces else []
        for name, folder in stated + own:
            try:
                Path(folder).mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                raise InfrastructureError(
                    f"The C compiler cannot keep its pieces in {folder}: {error.strerror or error}; set {name} to a "
                    "directory that can be written."
                ) from error

    def _environment(self, room: Path) -> dict[str, str]:
        """Only what the compiler needs: the user's CPATH, CFLAGS and the like must not change the result."""
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        pieces = self.pieces or Path(os.environ[GLOBAL_CACHE]).absolute()
        local = os.environ.get(LOCAL_CACHE)
        return {
            **kept,
            "HOME": str(room),
            "TMPDIR": str(room),
            "LC_ALL": "C",
            GLOBAL_CACHE: str(pieces),
            LOCAL_CACHE: str(Path(local).absolute() if local else room / "zig"),
        }


def find_compiler(cache_dir: Path | None) -> Compiler:
    """The compiler of the installed wheel; InfrastructureError when it is missing."""
    spec = importlib.util.find_spec("ziglang")
    program = Path(spec.origin).parent / "zig" if spec and spec.origin else None
    if program is None or not program.exists():
        raise InfrastructureError(
            "The C compiler is missing: the package `ziglang` is not installed; `pip install ziglang`."
        )
    pieces = None if os.environ.get(GLOBAL_CACHE) else (cache_dir or Path(".")).absolute() / "compiler"
    return Compiler(program, importlib.metadata.version("ziglang"), pieces)


def prepared(cache_dir: Path) -> bool:
    """False where the next build must first make the runtime pieces, which takes seconds."""
    pieces = find_compiler(cache_dir).pieces or Path(os.environ[GLOBAL_CACHE])
    return (pieces / "o").is_dir()


def _failure(code: int, said: str) -> Exception:
    lines = [line for line in said.splitlines() if line.strip()]
    shown = " / ".join([line for line in lines if "error" in line][:_SHOWN_LINES] or lines[:_SHOWN_LINES])
    if any(word in said for word in _DISK):
        return InfrastructureError(f"The disk is full while compiling C ({shown}); free some space and try again.")
    if any(word in said for word in _MEMORY) or code == -signal.SIGKILL:
        return InfrastructureError(f"Memory ran out while compiling C ({shown}); give the compile job more memory.")
    if any(word in said for word in _DENIED):
        return InfrastructureError(
            f"The compiler cannot write its cache ({shown}); set CUVIL_CACHE_DIR to a directory that can be written."
        )
    return InternalError(f"The generated C does not compile, exit {code}: {shown}; report it with the model.")
