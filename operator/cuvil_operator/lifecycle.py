"""The life of the process: connect, check, stand by, lead, end. The one place that puts all parts together."""

import asyncio
import logging
import signal
import uuid
from collections.abc import Coroutine
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from cuvil_operator import conventions
from cuvil_operator.control.keys import keys_of
from cuvil_operator.control.resync import Resync, Scope
from cuvil_operator.control.watch_health import WatchHealth
from cuvil_operator.control.work_queue import WorkQueue
from cuvil_operator.control.workers import Workers
from cuvil_operator.election import Election, LeaseTerms
from cuvil_operator.errors import GiveUpError, OperatorError
from cuvil_operator.gateways.clock import SystemClock
from cuvil_operator.gateways.connect import connect
from cuvil_operator.gateways.failures import KubernetesDenied, KubernetesUnavailable
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.kubernetes_api import ApiKubernetes
from cuvil_operator.gateways.lease_api import ApiLeases
from cuvil_operator.gateways.limiter import RateLimiter
from cuvil_operator.gateways.probe_server import serve_metrics, serve_probes
from cuvil_operator.gateways.prometheus_api import ApiPrometheus
from cuvil_operator.gateways.protocols import Document, ObjectStamp, Resource
from cuvil_operator.gateways.resources import (
    CONFIG_MAPS,
    CUVIL_MODELS,
    DEPLOYMENTS,
    HTTP_ROUTES,
    JOBS,
    PODS,
    SERVICES,
)
from cuvil_operator.gateways.transport import ApiTransport
from cuvil_operator.handlers import Watch, Watcher
from cuvil_operator.metrics import Metrics
from cuvil_operator.reconcile import Reconciler
from cuvil_operator.settings import Settings

log = logging.getLogger(__name__)

WATCHED = (CUVIL_MODELS, JOBS, DEPLOYMENTS, CONFIG_MAPS, SERVICES, PODS, HTTP_ROUTES)
OWN = {conventions.LABEL_MANAGED_BY: conventions.MANAGED_BY}
WATCH_GRACE = 90.0
"""Seconds after which a change that a watch has not told makes the process unhealthy."""
PATIENCE = 60.0
"""Seconds for which a start waits for an API server that is away."""
GOODBYE = 3.0
"""Seconds that ending may take before the process goes anyway."""


class Process:
    """One controller process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._fence = Fence(self._clock)
        self._prometheus = ApiPrometheus(settings.prometheus_url, settings.prometheus_timeout_s)
        self._metrics = Metrics(_version())
        self._health = WatchHealth(self._clock, WATCH_GRACE)
        self._queue = WorkQueue(self._clock)
        self._stopped = asyncio.Event()
        self._resync: Resync | None = None
        self._election: Election | None = None
        self._ready = False

    async def run(self) -> None:
        """Live until SIGTERM (returns) or until the Lease or a watch is lost (raises an OperatorError)."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._stopped.set)
        servers = await self._serve()
        transport = ApiTransport(await connect())
        try:
            await self._until_stopped(self._live(transport))
        finally:
            self._fence.close()
            await transport.close()
            for server in servers:
                await server.cleanup()

    async def _until_stopped(self, life: Coroutine[None, None, None]) -> None:
        """Run life until it ends or the process is asked to stop."""
        living, stopping = asyncio.create_task(life), asyncio.create_task(self._stopped.wait())
        await asyncio.wait((living, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        living.cancel()
        try:
            await asyncio.wait_for(asyncio.shield(living), GOODBYE)
        except (asyncio.CancelledError, TimeoutError):
            log.info("ended by a signal")

    async def _live(self, transport: ApiTransport) -> None:
        """Check, stand by, lead."""
        kubernetes = self._gateway(transport)
        scope = await self._preflight(kubernetes)
        self._ready = True
        self._election = Election(ApiLeases(transport), self._clock, self._fence, self._terms())
        await self._election.acquire()
        try:
            self._metrics.leader.set(1)
            await self._lead(kubernetes, scope, self._election)
        finally:
            # Cancelled workers have ended by now: nothing of this process is on its way when the next one leads.
            await self._election.release()

    async def _lead(self, kubernetes: ApiKubernetes, scope: Scope, election: Election) -> None:
        reconciler = Reconciler(kubernetes, self._prometheus, self._clock, self._settings.platform, self._metrics)
        workers = Workers(self._queue, reconciler.turn, self._clock, self._metrics)
        self._resync = Resync(
            kubernetes, self._queue, self._health, self._clock, self._metrics, scope, self._settings.resync_s
        )
        label = ",".join(f"{key}={value}" for key, value in OWN.items())
        watches = [Watch(one, "" if one == CUVIL_MODELS else label) for one in scope.resources]
        watcher = Watcher(watches, self._settings.namespaces, self._seen)
        watcher.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(election.hold(), name="lease")
                group.create_task(workers.run(self._settings.workers), name="workers")
                group.create_task(self._resync.run(), name="resync")
                group.create_task(_watch_the_watcher(watcher), name="watcher")
        finally:
            self._fence.close()
            watcher.stop()

    def _seen(self, resource: Resource, event: str, document: Document) -> None:
        """Take an event of a watch: note it, and have its models looked at."""
        stamp = ObjectStamp.of(document)
        self._health.told(resource, stamp.uid, stamp.resource_version, event == "DELETED")
        for key in keys_of(resource, stamp):
            self._queue.add(key)

    def _gateway(self, transport: ApiTransport) -> ApiKubernetes:
        rate = self._settings.api_writes_per_second
        limiter = RateLimiter(self._clock, rate, burst=max(1, round(2 * rate)))
        return ApiKubernetes(transport, self._clock, self._fence, limiter, self._metrics.count_write)

    def _terms(self) -> LeaseTerms:
        whole = float(self._settings.lease_seconds)
        # The pod's name comes back after a restart of its container, a new process must not.
        identity = f"{self._settings.identity}_{uuid.uuid4().hex[:8]}"
        return LeaseTerms(
            self._settings.own_namespace, self._settings.lease_name, identity, whole, whole * 2 / 3, whole * 2 / 15
        )

    async def _preflight(self, kubernetes: ApiKubernetes) -> Scope:
        """Give what can be watched; GiveUpError with the cure where the CRD or a right is missing."""
        namespaces, known = self._settings.namespaces, []
        until = self._clock.monotonic() + PATIENCE
        for resource in WATCHED:
            if all([await self._knows(kubernetes, resource, one, until) for one in namespaces or (None,)]):
                known.append(resource)
        if CUVIL_MODELS not in known:
            raise GiveUpError(
                f"the CRD {conventions.PLURAL}.{conventions.GROUP} is not installed: install the chart, or "
                "`kubectl apply -f crds/`, then start again"
            )
        if HTTP_ROUTES not in known:
            log.info("the cluster has no HTTPRoute: traffic is split by pod count only")
        return Scope(known, namespaces, OWN)

    async def _knows(self, kubernetes: ApiKubernetes, resource: Resource, namespace: str | None, until: float) -> bool:
        while True:
            try:
                return await kubernetes.knows(resource, namespace)
            except KubernetesDenied as fault:
                where = f"in namespace {namespace}" if namespace else "in the whole cluster"
                raise GiveUpError(
                    f"{fault}; bind the chart's role to this ServiceAccount, so that it may list and watch "
                    f"{resource.plural} {where}"
                ) from fault
            except KubernetesUnavailable as fault:
                if self._clock.monotonic() > until:
                    raise
                log.warning("waiting for the API server: %s", fault)
                await self._clock.sleep(2.0)

    async def _serve(self) -> list[web.AppRunner]:
        try:
            probes = await serve_probes(self._settings.health_port, self._liveness, self._readiness)
            metrics = await serve_metrics(self._settings.metrics_port, self._metrics.registry, self._refresh)
        except OSError as fault:
            raise GiveUpError(f"a port cannot be opened: {fault}; set CUVIL_HEALTH_PORT, CUVIL_METRICS_PORT") from fault
        return [probes, metrics]

    def _refresh(self) -> None:
        self._metrics.queue_depth.set(self._queue.depth)

    def _liveness(self) -> str:
        """Give what only a restart can mend."""
        dead = self._health.dead()
        if dead:
            names = ", ".join(f"{one.plural} ({self._health.lag(one):.0f} s behind)" for one in dead)
            return f"the watch of {names} is dead"
        return ""

    def _readiness(self) -> str:
        return "" if self._ready else "the API server has not answered yet"


async def _watch_the_watcher(watcher: Watcher) -> None:
    raise OperatorError(f"the watches ended: {await watcher.ended}")


def _version() -> str:
    try:
        return version("cuvil")
    except PackageNotFoundError:
        return "unpackaged"
