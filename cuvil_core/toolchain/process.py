"""The compiler's process: environment, time limit, and what its failures mean."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuvil_core.errors import InfrastructureError, InternalError, TimeLimitError

_DISK = ("NoSpaceLeft", "No space left on device", "DiskQuota", "Disk quota exceeded")
_MEMORY = ("OutOfMemory", "out of memory", "SystemResources")
_DENIED = ("AccessDenied", "ReadOnlyFileSystem", "Read-only file system", "Permission denied")
_SHOWN_LINES = 6


@dataclass(frozen=True, slots=True)
class Compiler:
    """The wheel's compiler and where it keeps the runtime pieces that it builds once."""

    program: Path
    version: str
    pieces: Path | None
    """None: where the user's environment says."""

    def run(self, arguments: Sequence[str], room: Path, deadline: float) -> None:
        """Runs `zig cc` in a directory until the deadline (monotonic seconds); see `build` for what is raised."""
        process = subprocess.Popen(
            [str(self.program), "cc", *arguments],
            cwd=room,
            env=self._environment(room),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, said = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimeLimitError("Compiling the C took longer than its time limit; raise the limit.") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode:
            raise _failure(process.returncode, said.decode("utf-8", "replace"))

    def _environment(self, room: Path) -> dict[str, str]:
        """Only what the compiler needs: the user's CPATH, CFLAGS and the like must not change the result."""
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        pieces = self.pieces or Path(os.environ["ZIG_GLOBAL_CACHE_DIR"])
        return {
            **kept,
            "HOME": str(room),
            "TMPDIR": str(room),
            "LC_ALL": "C",
            "ZIG_GLOBAL_CACHE_DIR": str(pieces),
            "ZIG_LOCAL_CACHE_DIR": os.environ.get("ZIG_LOCAL_CACHE_DIR", str(room / "zig")),
        }


def find_compiler(cache_dir: Path | None) -> Compiler:
    """The compiler of the installed wheel; InfrastructureError when it is missing."""
    spec = importlib.util.find_spec("ziglang")
    program = Path(spec.origin).parent / "zig" if spec and spec.origin else None
    if program is None or not program.exists():
        raise InfrastructureError(
            "The C compiler is missing: the package `ziglang` is not installed; `pip install ziglang`."
        )
    pieces = None if os.environ.get("ZIG_GLOBAL_CACHE_DIR") else (cache_dir or Path(".")).absolute() / "compiler"
    return Compiler(program, importlib.metadata.version("ziglang"), pieces)


def prepared(cache_dir: Path) -> bool:
    """False where the next build must first make the runtime pieces, which takes seconds."""
    pieces = find_compiler(cache_dir).pieces or Path(os.environ["ZIG_GLOBAL_CACHE_DIR"])
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
