"""A real serving process on loopback, for tests."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cuvil_core.contract import ServingSettings

ROOT = Path(__file__).parents[2]


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a GET."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as fault:
            return fault.code, fault.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """One sample of /metrics."""
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(name + "{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        raise LookupError(f"no sample {name} {labels}")

    def stop(self) -> int:
        """Send SIGTERM and give the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)


def settings_for(artifact: Path, **more: Any) -> ServingSettings:
    """Settings that name the file by its true digest."""
    digest = sha256(artifact.read_bytes()).hexdigest()
    facts: dict[str, Any] = {"sha256": digest, "threshold_seconds": 0.7, **more}
    return ServingSettings("tiny", "0123456789ab", str(artifact), **facts)


def start(folder: Path, settings: ServingSettings, *options: str) -> Server:
    """Start a server; returns when it listens or has ended."""
    (folder / "serving.json").write_text(settings.to_json())
    log = folder / "log"
    command = [sys.executable, "-m", "cuvil_core.serving", "--settings", str(folder / "serving.json")]
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", "0", *options],
            cwd=ROOT,
            stderr=out,
            env={**os.environ, "CUVIL_CACHE_DIR": str(folder / "cache")},
        )
    server = Server(process, log, 0)
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r'"127\.0\.0\.1:(\d+)"', log.read_text()):
            server.port = int(found[1])
            break
        time.sleep(0.02)
    return server


def until_ready(server: Server) -> None:
    """Wait for readiness."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if server.get("/v2/health/ready")[0] == 200:
            return
        time.sleep(0.02)
    raise TimeoutError(server.log.read_text())


@contextlib.contextmanager
def running(folder: Path, settings: ServingSettings, *options: str) -> Iterator[Server]:
    """A ready server that ends with the block."""
    server = start(folder, settings, *options)
    try:
        until_ready(server)
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()


def log_lines(server: Server) -> list[dict[str, Any]]:
    """The log, line by line."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]
