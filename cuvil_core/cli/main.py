"""`cuvil`: arguments → command → exit code; every error becomes one sentence."""

import argparse
import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from cuvil_core.cli.arguments import Misused, build_parser, manner_of
from cuvil_core.cli.console import Console, Failed, Result, plain, silence, unwritable
from cuvil_core.cli.outputs import check_outputs, may_hold_outcome
from cuvil_core.contract import ExitCode, Outcome
from cuvil_core.errors import CuvilError, InternalError, SizeError

INTERRUPTED, TERMINATED = 130, 143
Command = Callable[[argparse.Namespace, Console], Result]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; give the exit code. No traceback is ever shown unless `--debug` asks for it."""
    try:
        given = build_parser().parse_args(arguments)
    except Misused as fault:
        return _misused(manner_of(arguments), fault)
    except SystemExit:  # after --help and --version
        return int(ExitCode.OK)
    except BrokenPipeError:
        silence(sys.stdout)
        return int(ExitCode.OK)
    except OSError as fault:
        silence(sys.stdout)
        return _fail(manner_of(arguments), Console(), unwritable(fault))
    console = Console(as_json=given.json, quiet=given.quiet)
    try:
        return _run(given, console)
    finally:
        console.settle()


def _run(given: argparse.Namespace, console: Console) -> int:
    try:
        with _ended_by_sigterm():
            check_outputs(given)
            result = command_of(given.command)(given, console)
        console.show(result)
        _leave(given.termination_log, Outcome(ExitCode.OK, "Completed", _first_line(result.text), result.data))
        return int(ExitCode.OK)
    except Failed as failed:
        return _fail(given, console, failed.fault, failed.result)
    except CuvilError as fault:
        return _fail(given, console, fault)
    except _Terminated:
        console.say("cuvil: terminated")
        return TERMINATED
    except KeyboardInterrupt:
        console.say("cuvil: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away, as `| head` does: nothing more can be said.
        silence(console.out)
        return int(ExitCode.OK)
    except MemoryError as fault:
        return _fail(given, console, _from(SizeError("this machine's memory is too small; give it more"), fault))
    except Exception as fault:
        sentence = (
            f"a fault of Cuvil ({type(fault).__name__}: {_first_line(str(fault))}); "
            "report it with the output of the same command with --debug"
        )
        return _fail(given, console, _from(InternalError(sentence), fault))


class _Terminated(KeyboardInterrupt):
    """SIGTERM came: leave as for Ctrl-C, so that temporary folders and child processes go."""


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block. Without a handler, the first process of a container would not even notice it."""

    def end(*_: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def command_of(name: str) -> Command:
    """Bring a command's room in only when it is asked for: most need neither NumPy nor the compiler."""
    if name == "compile":
        from cuvil_core.cli.compiling import compile_command as command
    elif name == "verify":
        from cuvil_core.cli.verifying import verify_command as command
    elif name == "run":
        from cuvil_core.cli.running import run_command as command
    elif name == "bench":
        from cuvil_core.cli.benching import bench_command as command
    elif name == "inspect":
        from cuvil_core.cli.inspecting import inspect_command as command
    elif name == "doctor":
        from cuvil_core.cli.doctor import doctor_command as command
    elif name in ("resolve", "push"):
        from cuvil_core.cli import remote

        command = remote.resolve_command if name == "resolve" else remote.push_command
    elif name == "cache":
        from cuvil_core.cli.caching import cache_command as command
    else:
        from cuvil_core.cli.completion import completion_command as command
    return command


def _misused(given: argparse.Namespace, fault: Misused) -> int:
    console = Console(as_json=given.json)
    if not given.json:
        console.tell(fault.usage.rstrip("\n"))
    return _fail(given, console, fault.fault)


def _fail(given: argparse.Namespace, console: Console, fault: CuvilError, found: Result | None = None) -> int:
    outcome = Outcome(fault.code, fault.reason, str(fault), found.data if found else {})
    if given.debug:
        console.tell("".join(traceback.format_exception(fault)).rstrip("\n"))
    if found is not None and not given.json:
        console.offer(found)
    if not given.json or not console.offer(Result("", asdict(outcome))):
        console.tell(f"cuvil: {fault.reason}: {fault}")
    _leave(given.termination_log, outcome)
    return int(fault.code)


def _leave(path: Path | None, outcome: Outcome) -> None:
    if path is not None and may_hold_outcome(path):
        clean = replace(outcome, message=plain(outcome.message), result=plain(outcome.result))
        with contextlib.suppress(OSError):
            path.write_text(clean.to_json(), encoding="utf-8")


def _from(error: CuvilError, cause: BaseException) -> CuvilError:
    error.__cause__ = cause
    return error


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0][:300]


if __name__ == "__main__":
    sys.exit(main())
