"""A real server process under hostile clients: each gets its answer, none spoils the error rate or the probes."""

import gzip
import http.client
import json
import socket
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import handmade
import serving_process
from cuvil_core.artifact import pack

MODEL = "/v2/models/tiny"
GOOD = json.dumps({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}).encode()
EMPTY = GOOD.replace(b'"data": [1, 2, 3]', b'"parameters": {"binary_data_size": 0}')


def post(server: serving_process.Server, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Status and sentence of one inference request."""
    host, port = server.address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", f"{MODEL}/infer", body, headers or {})
    answer = connection.getresponse()
    return answer.status, str(json.loads(answer.read()).get("error"))


STRANGE: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "no elements, huge extent": (
        GOOD.replace(b"[1, 3]", b"[0, %d]" % 10**30).replace(b"[1, 2, 3]", b"[]"),
        {},
        400,
        "'shape'",
    ),
    "no bytes, huge extent": (EMPTY.replace(b"[1, 3]", b"[0, %d]" % 2**62), {}, 400, "'shape'"),
    "overflow": (GOOD.replace(b"[1, 2, 3]", b"[1, 2, 1e39]"), {}, 400, "beyond the range"),
    "NaN": (GOOD.replace(b"[1, 2, 3]", b"[1, 2, NaN]"), {}, 400, "NaN is not JSON"),
    "unknown coding": (GOOD, {"Content-Encoding": "br"}, 415, "gzip or deflate"),
    "not packed": (GOOD, {"Content-Encoding": "gzip"}, 400, "no gzip stream"),
    "announced too large": (b"", {"Content-Length": str(10**12)}, 413, "larger than the allowed"),
    "length of many digits": (GOOD, {"Inference-Header-Content-Length": "9" * 4_999}, 400, "Inference-Header"),
    "number of many digits": (GOOD.replace(b"[1, 2, 3]", b"[%b]" % (b"9" * 4_999)), {}, 400, "not JSON"),
    "deep": (b"[" * 100_000, {}, 400, "not JSON"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_no_request_counts_as_an_error(server: serving_process.Server, case: str) -> None:
    """What a client sends, however strange, is its own fault: the error rate that decides on rollbacks stays."""
    before = [server.metric("cuvil_requests_total", outcome=one) for one in ("error", "client_error")]
    body, headers, want, sentence = STRANGE[case]
    status, error = post(server, body, headers)
    assert status == want and sentence in error
    after = [server.metric("cuvil_requests_total", outcome=one) for one in ("error", "client_error")]
    assert after == [before[0], before[1] + 1]


def test_bombs_do_not_hold_up_the_probes(server: serving_process.Server) -> None:
    """A megabyte that inflates to a gigabyte is refused at the limit, while health is answered at once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1 << 10)) + packer.flush()
    took = []
    with ThreadPoolExecutor(1) as crew:
        answer = crew.submit(post, server, bomb, {"Content-Encoding": "gzip"})
        while not answer.done():
            started = time.perf_counter()
            assert server.get("/v2/health/live")[0] == 200
            took.append(time.perf_counter() - started)
            time.sleep(0.01)
    status, sentence = answer.result()
    assert status == 413 and "larger than the allowed 268435456 bytes" in sentence
    assert max(took, default=0.0) < 1


@pytest.mark.parametrize(
    "facts, wanted, counted", [({}, 413, "client_error"), ({"bounds": {"N": [1, 100]}}, 500, "error")]
)
def test_sizes_beyond_the_memory(tmp_path: Path, facts: dict[str, Any], wanted: int, counted: str) -> None:
    """A size that fits no memory is the client's fault, but the server's where the model's bounds promise that size."""
    huge = handmade.SOURCE.replace("*arena_bytes = n * 12;", "*arena_bytes = n == 50 ? (int64_t)1 << 45 : n * 12;")
    made = handmade.manifest(**facts)
    packed = pack(made, {"x86_64-avx2": handmade.library(source=huge, made=made)}, handmade.WEIGHTS.tobytes())
    (tmp_path / "a.cuvil").write_bytes(packed)
    large = GOOD.replace(b"[1, 3]", b"[50, 3]").replace(b"[1, 2, 3]", json.dumps([1] * 150).encode())
    with serving_process.running(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil")) as server:
        status, sentence = post(server, large)
        assert status == wanted and "N = 50 takes" in sentence and "smaller inputs" in sentence
        assert post(server, GOOD)[0] == 200
        told = {one: server.metric("cuvil_requests_total", outcome=one) for one in ("client_error", "error")}
        assert told == {"client_error": 0, "error": 0} | {counted: 1}


def test_a_model_that_fits_no_memory_does_not_become_ready(tmp_path: Path) -> None:
    """Where no size of the warm-up fits the memory, the server ends with 14 and one sentence."""
    huge = handmade.SOURCE.replace("*arena_bytes = n * 12;", "*arena_bytes = (int64_t)1 << 45;")
    packed = pack(handmade.manifest(), {"x86_64-avx2": handmade.library(source=huge)}, handmade.WEIGHTS.tobytes())
    (tmp_path / "a.cuvil").write_bytes(packed)
    server = serving_process.start(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil"))
    assert server.process.wait(20) == 14
    assert "this process can have" in serving_process.log_lines(server)[-1]["message"]


def test_body_limit(tmp_path: Path) -> None:
    """A body over the limit, also one that is small while packed, is 413 and the server lives on."""
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    settings = serving_process.settings_for(tmp_path / "a.cuvil")
    with serving_process.running(tmp_path, settings, "--max-body-bytes", "10000") as server:
        assert post(server, b"x" * 20_000)[0] == 413
        assert post(server, gzip.compress(b"x" * 50_000_000), {"Content-Encoding": "gzip"})[0] == 413
        assert post(server, GOOD)[0] == 200


def test_clients_that_break_off_leave_no_trace(server: serving_process.Server) -> None:
    """Connections cut in the middle of a body, garbage and idle sockets do not disturb the next client."""
    host, port = server.address.split(":")
    for raw in (
        b"GARBAGE\r\n\r\n",
        f"POST {MODEL}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nab".encode(),
        b"",
    ):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(raw)
    assert post(server, GOOD)[0] == 200


def test_a_pipe_is_no_artifact(tmp_path: Path) -> None:
    """A pipe in the artifact's place ends the server with 16 at once; an ordinary open would wait for ever."""
    import os

    (tmp_path / "a.cuvil").write_bytes(b"x")
    settings = serving_process.settings_for(tmp_path / "a.cuvil")
    (tmp_path / "a.cuvil").unlink()
    os.mkfifo(tmp_path / "a.cuvil")
    server = serving_process.start(tmp_path, settings)
    assert server.process.wait(20) == 16
    assert "no plain file" in serving_process.log_lines(server)[-1]["message"]


def test_broken_http_leaves_one_line(tmp_path: Path) -> None:
    """A request that breaks HTTP itself is answered 400 and logged in a line without a traceback."""
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    with serving_process.running(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil")) as server:
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(b"POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.0 400")
        lines = [line for line in serving_process.log_lines(server) if "broke HTTP" in line["message"]]
        assert [(line["level"], "traceback" in line) for line in lines] == [("info", False)]


@pytest.mark.parametrize(
    "option",
    ["--port=99999", "--port=-1", "--port=x", "--max-body-bytes=0", "--drain-seconds=nan", "--drain-seconds=1e999"],
)
def test_senseless_options_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A port beyond 65535, which the system would take modulo 65536, and other nonsense end with the usage code."""
    from cuvil_core.serving.__main__ import parser

    with pytest.raises(SystemExit) as end:
        parser().parse_args(["--settings", "s.json", option])
    assert end.value.code == 2
    assert "from " in capsys.readouterr().err
