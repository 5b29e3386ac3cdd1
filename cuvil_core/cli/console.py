"""What people see: results on standard output, progress and errors on standard error."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

from cuvil_core.errors import CuvilError, InfrastructureError

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command found."""

    text: str
    """For people."""
    data: dict[str, Any] = field(default_factory=dict)
    """For programs: printed by `--json`, and the result of a termination message."""


class Failed(Exception):
    """An error together with what was found before it."""

    def __init__(self, fault: CuvilError, result: Result) -> None:
        super().__init__(str(fault))
        self.fault, self.result = fault, result


@dataclass(frozen=True, slots=True)
class Console:
    """Where and how to speak."""

    as_json: bool = False
    quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def show(self, result: Result) -> None:
        """Print a result; raises BrokenPipeError when the reader went away, else InfrastructureError."""
        text = json.dumps(plain(result.data), indent=2, sort_keys=True) if self.as_json else result.text
        if text:
            self._write(text)

    def offer(self, result: Result) -> bool:
        """Print a result where that is possible, and tell whether it was."""
        try:
            self.show(result)
        except (BrokenPipeError, InfrastructureError):
            silence(self.out)
            return False
        return True

    def say(self, sentence: str) -> None:
        """Tell something beside the result."""
        if not self.quiet:
            self.tell(sentence)

    def tell(self, sentence: str) -> None:
        """Tell even who asked for quiet. Where standard error cannot be written, nobody can be told of that either."""
        with suppress(OSError):
            print(sentence, file=self.err, flush=True)

    def settle(self) -> None:
        """Give up what standard output did not take."""
        try:
            if self.out is not None:
                self.out.flush()
        except (OSError, ValueError):
            silence(self.out)

    def _write(self, text: str) -> None:
        try:
            print(_writable(text, self.out), file=self.out, flush=True)
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise unwritable(fault) from fault

    @contextmanager
    def progress(self, title: str) -> Iterator[Progress]:
        """Lend a function to be told stage and part done: a bar on a terminal, a line for each stage elsewhere."""
        if self.quiet or self.as_json:
            yield lambda stage, part: None
        elif self.err.isatty():
            with _bar(title) as report:
                yield report
        else:
            yield self._lines(title)

    def _lines(self, title: str) -> Progress:
        told: set[str] = set()

        def report(stage: str, part: float) -> None:
            if stage not in told:
                told.add(stage)
                self.say(f"{title}: {stage}")

        return report


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    from rich.console import Console as Terminal
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[stage]}"), TimeElapsedColumn())
    with Bars(*columns, console=Terminal(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=1.0, stage="")
        yield lambda stage, part: bars.update(task, completed=part, stage=stage)


def unwritable(fault: OSError) -> InfrastructureError:
    """Give the error for standard output that takes nothing."""
    return InfrastructureError(
        f"standard output cannot be written: {fault.strerror or fault}; free space or send it elsewhere"
    )


def silence(stream: TextIO | None) -> None:
    """Let what a stream still holds go nowhere: Python would try to write it once more at exit, and complain."""
    if stream is None:  # closed before the process began
        return
    with suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def plain(value: Any) -> Any:
    """Give data that every reader of JSON takes: no half characters, which file names may have, no NaN."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {plain(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def _writable(text: str, stream: TextIO | None) -> str:
    """Spell by their numbers the characters that a stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding, getattr(stream, "errors", None) or "strict")
        return text
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)


def table(rows: list[tuple[str, str]]) -> str:
    """Give names and values in two columns."""
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def size_text(count: float) -> str:
    """Give bytes as people read them."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
