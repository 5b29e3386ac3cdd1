"""The stories' own objects in the cluster: the load Job and the receiver of alerts, as dicts."""

import base64
import io
from pathlib import Path

import numpy as np

import text_pictures as text
from e2e.stories.access import Object

HERE = Path(__file__).parent
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pictures() -> bytes:
    """Give an .npz of the words as uint8[words, 3, HEIGHT, width]."""
    stacked = np.stack([text.render(word) for word in text.WORDS]).transpose(0, 3, 1, 2)
    out = io.BytesIO()
    np.savez_compressed(out, pictures=stacked)
    return out.getvalue()


def load_files(name: str, namespace: str) -> Object:
    """A ConfigMap with the load client and its pictures."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"load_client.py": (HERE / "load_client.py").read_text()},
        "binaryData": {"pictures.npz": base64.b64encode(pictures()).decode()},
    }


def load_job(name: str, namespace: str, image: str, arguments: list[str]) -> Object:
    """A Job that runs the load client once."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"cuvil-stories": "load"}},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"cuvil-stories/load": name}},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "containers": [_container("load", image, ["python3", "/load/load_client.py", *arguments])],
                    "volumes": [{"name": "files", "configMap": {"name": "cuvil-load"}}],
                },
            },
        },
    }


def alert_sink(namespace: str, image: str) -> list[Object]:
    """ConfigMap, Deployment and Service `alert-sink`: what Alertmanager's webhook calls."""
    labels = {"app": "alert-sink"}
    container = _container("sink", image, ["python3", "/load/alert_sink.py"])
    container["readinessProbe"] = {"httpGet": {"path": "/alerts", "port": 8080}, "periodSeconds": 1}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "files", "configMap": {"name": "alert-sink"}}],
        },
    }
    meta = {"name": "alert-sink", "namespace": namespace}
    script = (HERE / "alert_sink.py").read_text()
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"alert_sink.py": script}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": [{"name": "http", "port": 8080}]},
        },
    ]


def _container(name: str, image: str, command: list[str]) -> Object:
    return {
        "name": name,
        "image": image,
        "command": command,
        "env": [{"name": "OPENBLAS_NUM_THREADS", "value": "1"}],
        "securityContext": {**RESTRICTED, "runAsUser": 65532},
        "volumeMounts": [{"name": "files", "mountPath": "/load"}],
    }
