"""The server's life: listen, admit, serve, drain, end.

It listens before the artifact is loaded, so that probes get true answers: live at once, ready when warm. SIGTERM (and
SIGINT) makes it unready; answers then tell clients to close their connections, requests under way and queued are
finished, idle connections are closed, and the process ends with 0.
"""

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from cuvil_core.contract import ServingSettings
from cuvil_core.runtime import CuvilModule
from cuvil_core.serving.admission import admit
from cuvil_core.serving.app import BODY_LIMIT, Service
from cuvil_core.serving.engine import Engine
from cuvil_core.serving.logs import say
from cuvil_core.serving.metrics import Metrics

CLOSE_SECONDS = 1.0
"""For answers on their last way out, once nothing is under way."""
KEEP_ALIVE_SECONDS = 120.0
"""Above the idle time of the common proxies (90 s), so that they, not this server, end idle connections."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how to listen."""

    host: str | None = None
    """None: all addresses, IPv4 and IPv6."""
    port: int = 8080
    body_limit: int = BODY_LIMIT
    drain_seconds: float = 30.0
    """Requests under way have this long to end after SIGTERM."""


class _Quiet(logging.Filter):
    """Requests that break HTTP itself: one line without a traceback, since the fault lies with the client."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite such a record; let all pass."""
        fault = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(fault, HttpProcessingError):
            record.levelno, record.levelname = logging.INFO, "INFO"
            record.msg, record.args, record.exc_info = "a client broke HTTP: %.200r", (fault.message,), None
        return True


async def serve(settings: ServingSettings, listening: Listening) -> int:
    """Serve until a signal; give the number of requests, or loads, given up, whose threads may still run.

    Raises CuvilError when the artifact cannot be admitted, OSError for the port.
    """
    metrics = Metrics(settings)
    engine = Engine(settings.queue, metrics.queue.set)
    service = Service(settings, engine, metrics)
    logging.getLogger("aiohttp.server").addFilter(_Quiet())
    runner = web.AppRunner(
        service.application(listening.body_limit),
        access_log=None,
        # Packed bodies are inflated in the engine's threads: here they would hold up the probes.
        auto_decompress=False,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        shutdown_timeout=CLOSE_SECONDS,
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await runner.setup()
    try:
        site = web.TCPSite(runner, listening.host, listening.port, backlog=512, reuse_address=True)
        await site.start()
        say(logging.INFO, "listening", addresses=[f"{one[0]}:{one[1]}" for one in runner.addresses])
        loaded = await _admit(settings, service, stop)
        if loaded:
            say(logging.INFO, "ready", model=settings.model, revision=settings.revision)
            await stop.wait()
        service.draining = True
        say(logging.INFO, "draining", under_way=service.under_way)
        left = await _drain(service, listening.drain_seconds)
    finally:
        await runner.cleanup()
        engine.close()
    say(logging.INFO, "ended", left=left)
    return left if loaded else left + 1


async def _admit(settings: ServingSettings, service: Service, stop: asyncio.Event) -> bool:
    """Load in a thread; give False when a signal came first."""
    loading = _in_thread(lambda: admit(settings))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not loading.done():
        return False
    service.admit(loading.result())
    return True


def _in_thread(work: Callable[[], CuvilModule]) -> "asyncio.Future[CuvilModule]":
    """Run in a daemon thread: a download under way must not hold up the process's end, as an executor's would."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[CuvilModule] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as fault:
            _tell(loop, future.set_exception, fault)
        else:
            _tell(loop, future.set_result, result)

    threading.Thread(target=run, name="admission", daemon=True).start()
    return future


def _tell(loop: asyncio.AbstractEventLoop, setter: Callable[[Any], None], value: object) -> None:
    # The loop is closed when the process is on its way out: nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(setter, value)


async def _drain(service: Service, seconds: float) -> int:
    """Wait until nothing is under way, at most `seconds`, and give what is; new requests are still answered."""
    try:
        async with asyncio.timeout(seconds):
            while service.under_way:
                await asyncio.sleep(0.01)
    except TimeoutError:
        say(logging.WARNING, "requests are given up", left=service.under_way)
    return service.under_way
