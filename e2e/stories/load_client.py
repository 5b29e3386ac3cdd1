"""Sends Open Inference Protocol requests from inside the cluster; runs alone in the runtime image.

`load_client.py URL MODEL RATE SECONDS CONCURRENCY BATCH [HOST]`: an open loop of RATE requests a second (at most
CONCURRENCY in flight) for SECONDS, each with BATCH of the pictures of `pictures.npz` beside this file. Prints
one JSON line a second (`{"t", "ok", "failed", "by_revision", "p95_ms"}`) and a last one with `"total"`. Ends by itself.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

import aiohttp
import numpy as np


def request_body(picture: "np.ndarray") -> tuple[bytes, dict[str, str]]:
    """Give body and headers of one binary inference request."""
    raw = picture.astype("<f4").tobytes()
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": "x",
                    "datatype": "FP32",
                    "shape": list(picture.shape),
                    "parameters": {"binary_data_size": len(raw)},
                }
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    return head + raw, headers


class Tally:
    """Counts of one second and of the whole run."""

    def __init__(self) -> None:
        self.second: list[tuple[float, str, str]] = []
        self.ok = 0
        self.failed = 0
        self.revisions: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def add(self, seconds: float, fault: str, revision: str) -> None:
        """Count one answer; an empty fault is a success."""
        self.second.append((seconds, fault, revision))
        self.ok += not fault
        self.failed += bool(fault)
        self.revisions[revision] += 1
        if fault:
            self.faults[fault] += 1

    def flush(self) -> dict[str, object]:
        """Give the second's line and begin the next one."""
        rows, self.second = self.second, []
        times = sorted(seconds for seconds, _, _ in rows)
        return {
            "t": round(time.time(), 3),
            "ok": sum(not fault for _, fault, _ in rows),
            "failed": sum(bool(fault) for _, fault, _ in rows),
            "faults": Counter(fault for _, fault, _ in rows if fault),
            "by_revision": Counter(revision for _, _, revision in rows),
            "p95_ms": round(1000 * times[int(0.95 * (len(times) - 1))], 1) if times else None,
        }

    def total(self) -> dict[str, object]:
        """Give the last line."""
        return {
            "total": self.ok + self.failed,
            "ok": self.ok,
            "failed": self.failed,
            "by_revision": self.revisions,
            "faults": self.faults,
        }


async def one(session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str], tally: Tally) -> None:
    """Send one request and count its answer; an answer that names no version counts as `?`."""
    began = time.perf_counter()
    revision = "?"
    try:
        async with session.post(url, data=body, headers=headers) as answer:
            data = await answer.read()
            fault = "" if answer.status == 200 else f"HTTP {answer.status} {data[:200].decode(errors='replace')}"
            head = data[: int(answer.headers.get("Inference-Header-Content-Length", 0))]
            revision = json.loads(head)["model_version"] if head else "?"
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        fault = f"{type(error).__name__} {error}"
    tally.add(time.perf_counter() - began, fault, revision)


async def main(url: str, model: str, rate: float, seconds: float, concurrency: int, batch: int, host: str) -> None:
    """Run the loop; prints as the module says."""
    pictures = np.load(Path(__file__).with_name("pictures.npz"))["pictures"]
    scaled = pictures.astype(np.float32) / 127.5 - 1
    requests = [request_body(np.roll(scaled, shift, axis=0)[:batch]) for shift in range(len(scaled))]
    tally = Tally()
    pending: set[asyncio.Task[None]] = set()
    timeout = aiohttp.ClientTimeout(total=20)
    connector = aiohttp.TCPConnector(limit=concurrency)
    extra = {"Host": host} if host else {}
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        began = flushed = time.monotonic()
        sent = 0
        while (now := time.monotonic()) - began < seconds:
            if now - flushed >= 1:
                flushed = now
                print(json.dumps(tally.flush()), flush=True)
            # What could not be sent while every connection waited is not made up for: the burst would be a load that no
            # story asked for, and keep a version busy long after the one that was slow has gone.
            sent = max(sent, int((now - began - 1) * rate))
            if sent < (now - began) * rate and len(pending) < concurrency:
                body, headers = requests[sent % len(requests)]
                task = asyncio.create_task(one(session, f"{url}/v2/models/{model}/infer", body, headers | extra, tally))
                pending.add(task)
                task.add_done_callback(pending.discard)
                sent += 1
            else:
                await asyncio.sleep(0.002)
        await asyncio.gather(*pending)
    print(json.dumps(tally.total()), flush=True)


if __name__ == "__main__":
    words = [*sys.argv[1:], ""]
    asyncio.run(main(words[0], words[1], float(words[2]), float(words[3]), int(words[4]), int(words[5]), words[6]))
