"""An HTTP server on the loopback that answers as a test says, and keeps what it was asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """What the server says."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    hang: threading.Event | None = None
    """Set by the test to let a hanging answer go."""


@dataclass
class Asked:
    """What a client asked."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass
class ScriptedServer:
    """Gives `answer` to every request; `asked` holds the requests."""

    url: str
    answer: Answer = field(default_factory=Answer)
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run the server until the end of the block."""
    script = ScriptedServer("")

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(self.command, self.path, self.rfile.read(length), dict(self.headers))
            script.asked.append(asked)
            said = script.answer
            if said.hang is not None:
                said.hang.wait(10)
            try:
                self.send_response(said.status)
                for name, value in (said.headers | {"Content-Length": str(len(said.body))}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said.body)
            except (BrokenPipeError, ConnectionResetError):
                pass

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
