"""Small web servers on loopback for tests: scripted pages, and a registry with the OCI distribution API."""

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

Handler = BaseHTTPRequestHandler
Page = Callable[[Handler], None]


def answer(handler: Handler, status: int, body: bytes = b"", **headers: str) -> None:
    """Send an answer."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    if "Content_Length" not in headers:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


@contextmanager
def serving(page: Page) -> Iterator[str]:
    """Serve every request by `page`; give `127.0.0.1:PORT`."""

    class One(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            page(self)

        do_GET = do_HEAD = do_POST = do_PUT = handle_one

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), One)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class MemoryRegistry:
    """Blobs and manifests of one registry; with `password`, behind token authentication for user `robot`."""

    password: str = ""
    basic: bool = False
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def page(self, handler: Handler) -> None:
        """Answer one request."""
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        self.seen.append(f"{handler.command} {parts.path}")
        if parts.path == "/token":
            self._token(handler, parse_qs(parts.query))
        elif self.password and not self._known(handler):
            answer(handler, 401, WWW_Authenticate=self._challenge(handler))
        elif found := re.fullmatch(r"/v2/([a-z0-9/]+)/(blobs|manifests)/(.*)", parts.path):
            self._route(handler, found[2], found[3], body, parse_qs(parts.query))
        else:
            answer(handler, 404)

    def _route(self, handler: Handler, kind: str, name: str, body: bytes, query: dict[str, list[str]]) -> None:
        store = self.blobs if kind == "blobs" else self.manifests
        if handler.command == "POST":
            answer(handler, 202, Location="/v2/a/blobs/uploads/1?state=s")
        elif handler.command == "PUT" and kind == "blobs":
            digest = query["digest"][0]
            if query["state"] != ["s"] or digest != f"sha256:{sha256(body).hexdigest()}":
                answer(handler, 400)
                return
            self.blobs[digest] = body
            answer(handler, 201)
        elif handler.command == "PUT":
            made = json.loads(body)
            if any(one["digest"] not in self.blobs for one in [made["config"], *made["layers"]]):
                answer(handler, 400)
                return
            self.manifests[name] = self.manifests[f"sha256:{sha256(body).hexdigest()}"] = body
            answer(handler, 201)
        elif name in store:
            answer(handler, 200, store[name])
        else:
            answer(handler, 404)

    def _challenge(self, handler: Handler) -> str:
        if self.basic:
            return 'Basic realm="registry"'
        return f'Bearer realm="http://{handler.headers["Host"]}/token",service="here"'

    def _known(self, handler: Handler) -> bool:
        wanted = self._basic() if self.basic else "Bearer good"
        return handler.headers.get("Authorization") == wanted

    def _basic(self) -> str:
        return "Basic " + base64.b64encode(f"robot:{self.password}".encode()).decode()

    def _token(self, handler: Handler, query: dict[str, list[str]]) -> None:
        good = handler.headers.get("Authorization") == self._basic() and query["service"] == ["here"]
        answer(handler, 200 if good and query["scope"][0].startswith("repository:a") else 401, b'{"token":"good"}')
