"""Receives Alertmanager's webhooks inside the cluster and shows them; runs alone in the runtime image.

`POST /` takes a notification; `GET /alerts` lists `{"at", "status", "labels"}` of the last 1,000 alerts received.
"""

import time
from collections import deque

from aiohttp import web

RECEIVED: deque[dict[str, object]] = deque(maxlen=1000)


async def take(request: web.Request) -> web.Response:
    """Keep every alert of one notification with the time of its arrival."""
    for alert in (await request.json())["alerts"]:
        RECEIVED.append({"at": time.time(), "status": alert["status"], "labels": alert["labels"]})
    return web.Response()


async def show(_: web.Request) -> web.Response:
    """List what arrived, oldest first."""
    return web.json_response(list(RECEIVED))


app = web.Application()
app.add_routes([web.post("/", take), web.get("/alerts", show)])

if __name__ == "__main__":
    web.run_app(app, port=8080, print=None)
