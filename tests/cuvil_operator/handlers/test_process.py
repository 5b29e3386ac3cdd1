"""The process from outside: what it says and with which code it ends when it cannot do its work."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scripted_http import Answer, scripted_server

HERE = Path(__file__).resolve().parents[3]
ENVIRONMENT = {
    "CUVIL_COMPILER_IMAGE": "registry.example/compiler:1",
    "CUVIL_RUNTIME_IMAGE": "registry.example/runtime:1",
    "CUVIL_REPOSITORY": "registry.example/cuvil/artifacts",
    "CUVIL_PROMETHEUS_URL": "http://127.0.0.1:9",
    "CUVIL_NAMESPACE": "default",
    "CUVIL_IDENTITY": "test",
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start(folder: Path, url: str, **changes: str) -> "subprocess.Popen[str]":
    config = folder / "kubeconfig"
    parts = {
        "clusters": [{"name": "here", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "here", **parts}))
    ports = {"CUVIL_METRICS_PORT": str(free_port()), "CUVIL_HEALTH_PORT": str(free_port())}
    path = os.pathsep.join((str(HERE), str(HERE / "operator")))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "KUBECONFIG": str(config)}
    return subprocess.Popen(
        [sys.executable, "-m", "cuvil_operator"],
        env=environment | ENVIRONMENT | ports | changes,
        stderr=subprocess.PIPE,
        text=True,
    )


def ending(folder: Path, url: str, **changes: str) -> tuple[int, str]:
    """Give the exit code and the last line of stderr."""
    process = start(folder, url, **changes)
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said
    return process.returncode, said.splitlines()[-1]


BAD_SETTINGS = {
    "an address that is none": ({"CUVIL_PROMETHEUS_URL": "prometheus:9090"}, "CUVIL_PROMETHEUS_URL"),
    "an address with a bad port": ({"CUVIL_PROMETHEUS_URL": "http://p:port"}, "Prometheus address"),
    "a missing image": ({"CUVIL_COMPILER_IMAGE": ""}, "CUVIL_COMPILER_IMAGE"),
    "no number": ({"CUVIL_WORKERS": "many"}, "CUVIL_WORKERS"),
    "no cluster": ({"KUBECONFIG": "/nowhere/kubeconfig"}, "no way to a cluster"),
}


@pytest.mark.parametrize(("changes", "words"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys())
def test_a_bad_setting_is_one_sentence(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    """Exit code 2 and a sentence that names the setting."""
    code, said = ending(tmp_path, "http://127.0.0.1:9", **changes)
    assert code == 2 and said.startswith("cuvil-operator: ") and words in said


def test_a_missing_crd_is_one_sentence(tmp_path: Path) -> None:
    """An API server that does not know CuvilModels gives exit code 2 and the cure."""
    with scripted_server() as script:
        script.answer = Answer(404, b'{"message": "the server could not find the requested resource"}')
        code, said = ending(tmp_path, script.url)
    assert code == 2 and "the CRD cuvilmodels.cuvil.dev is not installed" in said and "kubectl apply" in said


def test_a_missing_right_is_one_sentence(tmp_path: Path) -> None:
    """A ServiceAccount without the role gives exit code 2, the server's words and the cure."""
    with scripted_server() as script:
        script.answer = Answer(403, b'{"message": "User \\"sa\\" cannot list resource \\"cuvilmodels\\""}')
        code, said = ending(tmp_path, script.url)
    assert code == 2 and 'cannot list resource "cuvilmodels"' in said and "bind the chart's role" in said


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    """A port that another process holds gives exit code 2 and names the variables."""
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        code, said = ending(tmp_path, "http://127.0.0.1:9", CUVIL_HEALTH_PORT=str(taken.getsockname()[1]))
    assert code == 2 and "CUVIL_HEALTH_PORT" in said


def test_it_ends_at_once_when_it_is_told_to(tmp_path: Path) -> None:
    """SIGTERM while it waits for an API server that is away: exit code 0."""
    process = start(tmp_path, "http://127.0.0.1:9")
    assert process.stderr is not None
    for line in process.stderr:
        if "waiting for the API server" in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0
