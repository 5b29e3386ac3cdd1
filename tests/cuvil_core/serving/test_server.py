"""A real server process on loopback, asked by the real tritonclient and by hand."""

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import handmade
import serving_process
import web_server
from cuvil_core.artifact import pack
from cuvil_core.contract import ServingSettings
from cuvil_core.fetching import push_artifact

MODEL = "/v2/models/tiny"
SLOW = handmade.SOURCE.replace(
    "  const float *x = inputs[0]",
    "  if (((const float *)inputs[0])[0] == 777.0f) nap();\n  const float *x = inputs[0]",
).replace("int32_t cuvil_abi", "#include <unistd.h>\nstatic void nap(void) { usleep(400000); }\nint32_t cuvil_abi", 1)
"""The handmade program, which takes 0.4 s where x[0] is 777."""


def slow_artifact() -> bytes:
    """An artifact of the slow program."""
    return pack(handmade.manifest(), {"x86_64-avx2": handmade.library(source=SLOW)}, handmade.WEIGHTS.tobytes())


def ask(
    address: str, first: float = 1.0, rows: int = 1, second: float = 1.0
) -> tuple[int, dict[str, Any], http.client.HTTPResponse]:
    """One JSON inference request on a connection of its own."""
    host, port = address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    entry = {"name": "x", "shape": [rows, 3], "datatype": "FP32", "data": [[first, second, 1.0]] * rows}
    connection.request("POST", f"{MODEL}/infer", json.dumps({"inputs": [entry]}))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read()), answer


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
@pytest.mark.parametrize("packing", [None, "gzip", "deflate"])
def test_tritonclient_infers(
    server: serving_process.Server, binary_in: bool, binary_out: bool, packing: str | None
) -> None:
    """tritonclient gets the model's numbers with binary and JSON tensors, packed and not."""
    x = np.random.default_rng(1).standard_normal((5, 3), np.float32)
    tensor = triton.InferInput("x", [5, 3], "FP32")
    tensor.set_data_from_numpy(x, binary_data=binary_in)
    outputs = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in ("total", "y")]
    with triton.InferenceServerClient(server.address) as client:
        got = client.infer(
            "tiny",
            [tensor],
            outputs=outputs,
            request_id="42",
            request_compression_algorithm=packing,
            response_compression_algorithm=packing,
        )
    want = handmade.expected(x)
    np.testing.assert_allclose(got.as_numpy("y"), want[0], rtol=1e-6)
    np.testing.assert_allclose(got.as_numpy("total"), want[1], rtol=1e-5, atol=1e-6)
    assert got.get_response()["id"] == "42"


def test_tritonclient_without_outputs_and_with_version(server: serving_process.Server) -> None:
    """All outputs come when none is named; the revision is the version."""
    tensor = triton.InferInput("x", [1, 3], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 3), np.float32))
    with triton.InferenceServerClient(server.address) as client:
        got = client.infer("tiny", [tensor], model_version="0123456789ab")
        assert got.as_numpy("y").shape == (1, 3) and got.as_numpy("total").shape == (1,)
        futures = [client.async_infer("tiny", [tensor]) for _ in range(8)]
        assert all(one.get_result().as_numpy("total")[0] == -0.5 for one in futures)


def test_tritonclient_asks_about_the_model(server: serving_process.Server) -> None:
    """Health, metadata and configuration as tritonclient reads them; unknown models and versions are not ready."""
    with triton.InferenceServerClient(server.address) as client:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("tiny")
        assert not client.is_model_ready("other") and not client.is_model_ready("tiny", "beef")
        assert client.get_server_metadata()["name"] == "cuvil"
        about = client.get_model_metadata("tiny", "0123456789ab")
        assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
        assert client.get_model_config("tiny")["max_batch_size"] == 0
        with pytest.raises(InferenceServerException, match="no model 'other'"):
            client.get_model_metadata("other")


def test_bad_requests_are_the_clients_errors(server: serving_process.Server) -> None:
    """A wrong shape, a broken guard, no JSON, an unknown model and path get their status, a sentence and a count."""
    before = server.metric("cuvil_requests_total", outcome="client_error")
    durations = server.metric("cuvil_request_duration_seconds_count")
    status, answer, _ = ask(server.address, rows=101)
    assert status == 400 and "N <= 100" in answer["error"]
    host, port = server.address.split(":")
    for path, body, want, sentence in (
        (f"{MODEL}/infer", b"{", 400, "not JSON"),
        (f"{MODEL}/infer", b'{"inputs": []}', 400, "input 'x' is missing"),
        ("/v2/models/other/infer", b"{}", 404, "no model 'other'"),
        (f"{MODEL}/versions/9/infer", b"{}", 404, "no version '9'"),
    ):
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request("POST", path, body)
        reply = connection.getresponse()
        assert reply.status == want and sentence in json.loads(reply.read())["error"]
    assert server.metric("cuvil_requests_total", outcome="client_error") == before + 5
    assert server.metric("cuvil_request_duration_seconds_count") == durations
    status, text = server.get("/nowhere")
    assert status == 404 and "error" in json.loads(text)
    assert server.get(f"{MODEL}/infer")[0] == 405


def test_metrics_have_the_agreed_names(server: serving_process.Server) -> None:
    """Every outcome has a sample before it happens; the threshold is a bucket; an answer counts once."""
    labels = {"model": "tiny", "revision": "0123456789ab"}
    for outcome in ("ok", "client_error", "error", "rejected"):
        server.metric("cuvil_requests_total", outcome=outcome, **labels)
    server.metric("cuvil_queue_length", **labels)
    server.metric("cuvil_nonfinite_outputs_total", **labels)
    before = server.metric("cuvil_request_duration_seconds_bucket", le="0.7", **labels)
    assert ask(server.address)[0] == 200
    assert server.metric("cuvil_request_duration_seconds_bucket", le="0.7", **labels) == before + 1


def test_nonfinite_outputs_pass_and_are_counted_by_default(server: serving_process.Server) -> None:
    """Without rejectNonFinite an overflow is answered, and counted."""
    before = server.metric("cuvil_nonfinite_outputs_total")
    x = np.array([[3e38, 3e38, 1]], np.float32)
    tensor = triton.InferInput("x", [1, 3], "FP32")
    tensor.set_data_from_numpy(x)
    with triton.InferenceServerClient(server.address) as client:
        got = client.infer("tiny", [tensor]).as_numpy("y")
    np.testing.assert_array_equal(got, np.array([[3e38, -np.inf, 0.5]], np.float32))
    assert server.metric("cuvil_nonfinite_outputs_total") == before + 1


def test_nonfinite_outputs_do_not_go_as_json(server: serving_process.Server) -> None:
    """JSON cannot hold them: 400 with the cure, counted as non-finite and not as the model's error."""
    before, errors = (
        server.metric("cuvil_nonfinite_outputs_total"),
        server.metric("cuvil_requests_total", outcome="error"),
    )
    status, answer, _ = ask(server.address, second=3e38)
    assert status == 400 and "ask for it with 'binary_data'" in answer["error"]
    assert server.metric("cuvil_nonfinite_outputs_total") == before + 1
    assert server.metric("cuvil_requests_total", outcome="error") == errors


def test_nonfinite_outputs_can_be_refused(tmp_path: Path) -> None:
    """With rejectNonFinite an overflow is a 500 with a sentence, counted as error; finite answers pass."""
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    settings = serving_process.settings_for(tmp_path / "a.cuvil", reject_non_finite=True)
    with serving_process.running(tmp_path, settings) as server:
        status, answer, _ = ask(server.address, second=3e38)
        assert status == 500 and "holds NaN or Inf" in answer["error"]
        assert ask(server.address)[0] == 200
        assert server.metric("cuvil_requests_total", outcome="error") == 1
        assert server.metric("cuvil_requests_total", outcome="ok") == 1
        assert server.metric("cuvil_nonfinite_outputs_total") == 1
        assert server.metric("cuvil_request_duration_seconds_count") == 2


def test_full_queue_rejects(tmp_path: Path) -> None:
    """With a queue of 1, of many slow requests at once some are answered, the rest get 429 and are counted."""
    (tmp_path / "a.cuvil").write_bytes(slow_artifact())
    with serving_process.running(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil", queue=1)) as server:
        with ThreadPoolExecutor(12) as crew:
            answers = list(crew.map(lambda _: ask(server.address, first=777.0), range(12)))
        statuses = [status for status, _, _ in answers]
        assert set(statuses) == {200, 429} and statuses.count(200) >= 2
        rejected = next(one for one in answers if one[0] == 429)
        assert "wait already" in rejected[1]["error"] and rejected[2].getheader("Retry-After") == "1"
        assert server.metric("cuvil_requests_total", outcome="rejected") == statuses.count(429)
        assert server.metric("cuvil_queue_length") == 0


def test_drain_finishes_what_is_under_way(tmp_path: Path) -> None:
    """On SIGTERM, requests under way and queued are answered, readiness goes, connections close, the end is 0."""
    (tmp_path / "a.cuvil").write_bytes(slow_artifact())
    with serving_process.running(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil")) as server:
        host, port = server.address.split(":")
        idle = http.client.HTTPConnection(host, int(port), timeout=60)
        idle.request("GET", "/v2/health/live")
        idle.getresponse().read()
        with ThreadPoolExecutor(6) as crew:
            slow = [crew.submit(ask, server.address, 777.0) for _ in range(6)]
            time.sleep(0.2)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
            status, text = server.get("/v2/health/ready")
            assert status == 503 and json.loads(text) == {"ready": False}
            answers = [one.result() for one in slow]
        assert [status for status, _, _ in answers] == [200] * 6
        assert server.process.wait(20) == 0
        assert any(answer.getheader("Connection") == "close" for _, _, answer in answers)
        assert idle.sock is not None and idle.sock.recv(1) == b""
        messages = [line["message"] for line in serving_process.log_lines(server)]
        assert messages[-2:] == ["draining", "ended"]


def test_idle_server_stops_at_once(tmp_path: Path) -> None:
    """Without requests SIGTERM ends the server within two seconds."""
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    with serving_process.running(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil")) as server:
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 2


BROKEN: dict[str, tuple[Callable[[Path], ServingSettings], int, str]] = {
    "wrong digest": (lambda s: serving_process.settings_for(s, sha256="00" * 32), 18, "wanted 0000"),
    "missing file": (lambda s: serving_process.settings_for(s).__class__("m", "r", "/none", "0", 1.0), 19, "/none"),
    "too large": (lambda s: serving_process.settings_for(s, max_artifact_bytes=10), 14, "more than the allowed 10"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_artifacts_that_are_not_admitted(tmp_path: Path, case: str) -> None:
    """A wrong digest, a missing and an oversize artifact end the server with the contract's code and one sentence."""
    make, code, sentence = BROKEN[case]
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    (tmp_path / "why").touch()
    server = serving_process.start(tmp_path, make(tmp_path / "a.cuvil"), "--termination-log", str(tmp_path / "why"))
    assert server.process.wait(20) == code
    last = serving_process.log_lines(server)[-1]
    assert last["level"] == "critical" and sentence in last["message"] and "traceback" not in last
    assert json.loads((tmp_path / "why").read_text())["code"] == code


def test_artifact_from_a_registry(tmp_path: Path) -> None:
    """A server pulls its artifact by digest, and after a restart serves it with the registry away."""
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    with web_server.serving(web_server.MemoryRegistry().page) as host:
        stored = push_artifact(tmp_path / "a.cuvil", f"{host}/a/b")
        settings = ServingSettings("tiny", "0123456789ab", stored.reference, stored.sha256, 0.7)
        with serving_process.running(tmp_path, settings) as server:
            assert ask(server.address)[0] == 200
    with serving_process.running(tmp_path, settings) as server:
        assert ask(server.address)[0] == 200


def test_altered_artifact_is_not_loaded(tmp_path: Path) -> None:
    """An artifact whose bytes break its own digests is refused even when the settings name it."""
    bad = bytearray(handmade.artifact())
    bad[-1] ^= 1
    (tmp_path / "a.cuvil").write_bytes(bad)
    server = serving_process.start(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil"))
    assert server.process.wait(20) == 16


def test_broken_settings(tmp_path: Path) -> None:
    """Settings that are no settings end the server with the usage code."""
    import subprocess
    import sys

    (tmp_path / "s.json").write_text('{"model": 3}')
    command = [sys.executable, "-m", "cuvil_core.serving", "--settings", str(tmp_path / "s.json")]
    done = subprocess.run(command, cwd=serving_process.ROOT, capture_output=True, timeout=30, check=False)
    assert done.returncode == 2 and b"Traceback" not in done.stderr
    assert "is no settings file" in json.loads(done.stderr.splitlines()[-1])["message"]


def test_load_keeps_the_tail_short(server: serving_process.Server) -> None:
    """4 clients for 400 requests: all answered, numbers right, p95 under 100 ms on a busy machine."""
    took: list[float] = []
    lock = threading.Lock()

    def client(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((8, 3), np.float32)
        tensor = triton.InferInput("x", [8, 3], "FP32")
        tensor.set_data_from_numpy(x)
        with triton.InferenceServerClient(server.address) as connection:
            for _ in range(100):
                started = time.perf_counter()
                got = connection.infer("tiny", [tensor]).as_numpy("y")
                with lock:
                    took.append(time.perf_counter() - started)
                np.testing.assert_allclose(got, handmade.expected(x)[0], rtol=1e-6)

    with ThreadPoolExecutor(4) as crew:
        list(crew.map(client, range(4)))
    assert len(took) == 400
    assert float(np.percentile(took, 95)) < 0.1


def test_stop_while_loading(tmp_path: Path) -> None:
    """A signal during a download that never ends stops the server at once; until then it is live and not ready."""
    release = threading.Event()

    def hang(handler: web_server.Handler) -> None:
        release.wait(20)

    with web_server.serving(hang) as host:
        settings = ServingSettings("tiny", "r", f"{host}/a/b@sha256:{'0' * 64}", "0" * 64, 0.7)
        server = serving_process.start(tmp_path, settings)
        assert server.get("/v2/health/live")[0] == 200 and server.get("/v2/health/ready")[0] == 503
        assert ask(server.address)[0] == 503
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 5
        release.set()


def test_requests_beyond_the_drain_are_given_up(tmp_path: Path) -> None:
    """A request that outlasts --drain-seconds does not keep the process alive."""
    endless = SLOW.replace("usleep(400000)", "sleep(30)")
    packed = pack(handmade.manifest(), {"x86_64-avx2": handmade.library(source=endless)}, bytes(12))
    (tmp_path / "a.cuvil").write_bytes(packed)
    settings = serving_process.settings_for(tmp_path / "a.cuvil")
    with serving_process.running(tmp_path, settings, "--drain-seconds", "0.3") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            entry = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [777.0, 1.0, 1.0]}
            body = json.dumps({"inputs": [entry]})
            head = f"POST {MODEL}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(f"{head}{body}".encode())
            time.sleep(0.3)
            started = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - started < 10
        assert serving_process.log_lines(server)[-1]["left"] == 1


def test_drain_waits_for_bodies(tmp_path: Path) -> None:
    """A request whose body is still arriving when SIGTERM comes is answered."""
    (tmp_path / "a.cuvil").write_bytes(handmade.artifact())
    with serving_process.running(tmp_path, serving_process.settings_for(tmp_path / "a.cuvil")) as server:
        entry = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1.0, 1.0, 1.0]}
        body = json.dumps({"inputs": [entry]})
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            head = f"POST {MODEL}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(f"{head}{body[:9]}".encode())
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(2.0)
            connection.sendall(body[9:].encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert server.process.wait(20) == 0


@pytest.mark.parametrize("package", ["aiohttp", "prometheus_client"])
def test_a_missing_package_is_one_sentence(tmp_path: Path, package: str) -> None:
    """Without the packages of serving the process ends with 19 and says what to install."""
    import os
    import subprocess
    import sys

    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('none', name={package!r})\n")
    command = [sys.executable, "-m", "cuvil_core.serving", "--settings", "none.json"]
    search = os.pathsep.join([str(tmp_path), str(serving_process.ROOT)])
    environment = {**os.environ, "PYTHONPATH": search}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=30, check=False)
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 19
    assert json.loads(line)["message"] == f"{package} is not installed here; pip install aiohttp prometheus-client"
