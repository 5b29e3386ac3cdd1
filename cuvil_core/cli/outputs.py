"""What a command may write to, asked before the work whose result would be lost, or would destroy something."""

import os
import urllib.parse
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from cuvil_core.artifact import check_target
from cuvil_core.errors import InputError

READ = ("model", "artifact", "golden", "baseline", "inputs", "file")
"""Options and arguments that name what is read."""
WRITTEN = ("output", "report")
"""Options that name a file that is replaced."""
_OUTCOME = b'{"code":'


def check_outputs(given: Namespace) -> None:
    """Raise InputError unless all that a command line names can be written without loss."""
    read = [Path(_local(str(one))) for name in READ if (one := getattr(given, name, None)) is not None]
    for name in WRITTEN:
        path = getattr(given, name, None)
        if path is not None:
            check_output(path, read)
    log = given.termination_log
    if log is not None and not may_hold_outcome(log):
        raise InputError(
            f"{log} is no file for how a command ends: it holds something else; name another --termination-log"
        )


def check_output(path: Path, read: Iterable[Path] = ()) -> Path:
    """Give a path that can be written and is none of those that are read; raises InputError."""
    check_target(path)
    for one in read:
        if same_file(path, one):
            raise InputError(f"{path} is also what is read, and would be replaced; name another file to write")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder here, so {path.name} cannot be written there; make it or name another")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder} cannot be written by this user; name another folder for {path.name}")
    return path


def same_file(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to the same file, which is there."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def may_hold_outcome(path: Path) -> bool:
    """Tell what a termination message may be written to: a file that is new, empty or of an earlier one, or no file."""
    try:
        if not path.is_file():
            return not path.is_dir()
        with open(path, "rb") as file:
            start = file.read(len(_OUTCOME))
        return start in (b"", _OUTCOME)
    except (OSError, ValueError):
        return False


def _local(text: str) -> str:
    """Give the path of a file URI, and anything else as it is."""
    return urllib.parse.unquote(text.removeprefix("file://").removeprefix("localhost")) if "://" in text else text
