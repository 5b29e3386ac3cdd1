"""The controller's own HTTP doors: liveness, readiness, metrics."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str]
"""Gives one sentence of what is wrong, or nothing."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def serve_probes(port: int, live: Check, ready: Check) -> web.AppRunner:
    """Serve /healthz and /readyz; 200 `ok`, or 503 with the sentence. Call cleanup() of what it gives at the end."""
    return await _serve(port, {"/healthz": _probe(live), "/readyz": _probe(ready)})


async def serve_metrics(port: int, registry: CollectorRegistry, refresh: Callable[[], None]) -> web.AppRunner:
    """Serve /metrics; refresh is called before each scrape."""

    async def scrape(request: web.Request) -> web.Response:
        refresh()
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return await _serve(port, {"/metrics": scrape})


def _probe(check: Check) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        fault = check()
        return web.Response(text=fault or "ok", status=503 if fault else 200)

    return answer


async def _serve(port: int, paths: dict[str, Handler]) -> web.AppRunner:
    app = web.Application()
    for path, handler in paths.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner
