"""kopf, and nothing else: watches give keys to the queue, in a thread and an event loop of their own.

Low-level event handlers only, so kopf writes nothing: no finalizer, no annotation, no Event. Its own loop, because it
cancels foreign tasks of its loop when it ends.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf

from cuvil_operator.errors import GiveUpError
from cuvil_operator.gateways.connect import access
from cuvil_operator.gateways.protocols import Document, Resource

log = logging.getLogger(__name__)

LOGIN_LIFE = timedelta(minutes=10)
"""After this time kopf logs in anew: a ServiceAccount's token is renewed within the hour."""
SERVER_TIMEOUT = 600
"""Whole seconds after which a watch is opened anew; the API server refuses a fraction."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One kind to watch."""

    resource: Resource
    label: str = ""
    """Only objects that carry this label; empty: all."""


OnSeen = Callable[[Resource, str, Document], None]
"""Called in the main loop with resource, event type (empty for the first list) and object."""


class Watcher:
    """kopf in its own thread; `ended` is set in the main loop when it stops, for whatever reason."""

    def __init__(self, watches: Sequence[Watch], namespaces: Sequence[str], seen: OnSeen) -> None:
        self._loop = asyncio.get_running_loop()
        self._watches = watches
        self._namespaces = namespaces
        self._seen = seen
        self._kopf_loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self.ended: asyncio.Future[str] = self._loop.create_future()

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Ask kopf to end; does not wait."""
        if self._kopf_loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended already
                self._kopf_loop.call_soon_threadsafe(self._stop.set)

    def _run(self) -> None:
        # Only the sentence is kept: the exception would hold on to kopf's frames and tasks.
        fault = "it was told to stop"
        try:
            asyncio.run(self._operate())
        except BaseException as raised:
            fault = f"{type(raised).__name__}: {raised}"
        with contextlib.suppress(RuntimeError):  # the main loop has ended already
            self._loop.call_soon_threadsafe(self._end, fault)

    def _end(self, fault: str) -> None:
        if not self.ended.done():
            self.ended.set_result(fault)

    async def _operate(self) -> None:
        # An event of kopf's own loop: it waits for a threading one in a thread that nothing can end.
        self._kopf_loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._kopf_loop.set_exception_handler(_say_in_one_line)
        # One line an event at INFO would drown the controller's own.
        logging.getLogger("kopf.objects").setLevel(logging.WARNING)
        # kopf warns that it handles no signals outside the main thread: that is meant, the main loop does.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        await kopf.operator(
            registry=self._registry(),
            settings=_settings(self._watches),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=tuple(self._namespaces),
            stop_flag=self._stop,
        )

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(_login)
        for watch in self._watches:
            named = (watch.resource.group, watch.resource.version, watch.resource.plural)
            kopf.on.event(*named, registry=registry, id="seen")(self._handler(watch.resource))
        return registry

    def _handler(self, resource: Resource) -> Callable[..., Any]:
        async def seen(type: str | None, body: kopf.Body, **_: Any) -> None:
            self._loop.call_soon_threadsafe(self._seen, resource, type or "", dict(body))

        return seen


def _say_in_one_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """kopf leaves failed tasks behind when it ends; why it ended is told by `ended` already."""
    log.debug("kopf: %s: %s", context.get("message"), context.get("exception"))


async def _login(**_: Any) -> kopf.ConnectionInfo:
    """The gateway's own way in, by address: the controller must outlive a broken cluster DNS."""
    try:
        found = await access()
    except GiveUpError as fault:
        raise kopf.PermanentError(str(fault)) from fault
    return kopf.ConnectionInfo(
        server=found.server,
        ca_path=found.ca_path,
        certificate_path=found.certificate_path,
        private_key_path=found.key_path,
        scheme=found.scheme,
        token=found.token,
        insecure=found.insecure,
        # kopf asks again when the token is refused; before that it would never notice a new one.
        expiration=datetime.now(UTC) + LOGIN_LIFE,
    )


def _settings(watches: Sequence[Watch]) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 5.0
    settings.watching.server_timeout = SERVER_TIMEOUT
    settings.watching.client_timeout = SERVER_TIMEOUT + 30
    settings.watching.connect_timeout = 5.0
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5
    settings.execution.max_workers = 1
    for watch in watches:
        if watch.label:
            named = (watch.resource.group, watch.resource.version, watch.resource.plural)
            settings.watching.label_selectors[named] = watch.label
    return settings
