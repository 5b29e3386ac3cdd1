"""`python -m cuvil_core.serving --settings FILE --port 8080`: what a serving pod runs."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path

from cuvil_core.contract import ExitCode, Outcome, ServingSettings
from cuvil_core.errors import CuvilError, InfrastructureError, InputError, MissingError
from cuvil_core.serving.logs import say, set_up

try:
    from cuvil_core.serving.app import BODY_LIMIT
    from cuvil_core.serving.server import Listening, serve
except ModuleNotFoundError as absent:
    set_up()
    say(logging.CRITICAL, f"{absent.name} is not installed here; pip install aiohttp prometheus-client")
    sys.exit(int(ExitCode.NOT_FOUND))

SETTINGS_LIMIT = 1 << 20


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal; give the exit code."""
    # Until the server listens; the first process of a container has no default handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(ExitCode.OK)))
    given = parser().parse_args(arguments)
    set_up()
    try:
        settings = read_settings(given.settings)
        left = asyncio.run(
            serve(settings, Listening(given.host, given.port, given.max_body_bytes, given.drain_seconds))
        )
    except CuvilError as fault:
        return _end(given.termination_log, Outcome(fault.code, fault.reason, str(fault)), fault)
    except OSError as fault:
        error = InfrastructureError(
            f"cannot listen on {given.host or 'any address'}, port {given.port}: {fault.strerror}; choose another port"
        )
        return _end(given.termination_log, Outcome(error.code, error.reason, str(error)), fault)
    if left:
        # Threads of requests and loads that were given up would hold up an ordinary exit, or crash in it.
        sys.stderr.flush()
        os._exit(int(ExitCode.OK))
    return int(ExitCode.OK)


def parser() -> argparse.ArgumentParser:
    """Give the command line."""
    made = argparse.ArgumentParser(prog="python -m cuvil_core.serving", description="Serve one compiled model.")
    made.add_argument("--settings", type=Path, required=True, help="JSON file: model, revision, artifact, sha256, …")
    made.add_argument("--host", help="address to listen on (default: all)")
    made.add_argument("--port", type=port, default=8080, help="port to listen on, 0 for any free one (default: 8080)")
    made.add_argument("--max-body-bytes", type=positive, default=BODY_LIMIT, help="largest request body")
    made.add_argument("--drain-seconds", type=seconds, default=30.0, help="time for requests under way after SIGTERM")
    made.add_argument("--termination-log", type=Path, default=Path("/dev/termination-log"), help="file for the reason")
    return made


def port(text: str) -> int:
    """Read a port, 0 to 65535; the resolver would take a larger one modulo 65536."""
    return _whole(text, 0, 65_535)


def positive(text: str) -> int:
    """Read a number of bytes, at least 1."""
    return _whole(text, 1, 1 << 46)


def seconds(text: str) -> float:
    """Read a time, 0 to a day."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) <= 86_400:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no time from 0 to 86400 seconds")


def _whole(text: str, least: int, most: int) -> int:
    with contextlib.suppress(ValueError):
        if least <= (value := int(text)) <= most:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")


def read_settings(path: Path) -> ServingSettings:
    """Read the settings file; raises MissingError, InputError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(SETTINGS_LIMIT + 1)
        if len(text) > SETTINGS_LIMIT:
            raise InputError(f"{path} is larger than {SETTINGS_LIMIT} bytes: it is no settings file")
        return ServingSettings.from_json(text)
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {fault.strerror}; name the settings file") from fault
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{path} is no settings file: {fault}") from fault


def _end(log: Path, outcome: Outcome, fault: BaseException) -> int:
    internal = outcome.code is ExitCode.INTERNAL
    say(logging.CRITICAL, outcome.message, fault=fault if internal else None, reason=outcome.reason)
    with contextlib.suppress(OSError):
        # The kubelet makes this file; where there is none, nobody reads it.
        handle = os.open(log, os.O_WRONLY | os.O_TRUNC)
        with open(handle, "w") as file:
            file.write(outcome.to_json())
    return int(outcome.code)


if __name__ == "__main__":
    sys.exit(main())
