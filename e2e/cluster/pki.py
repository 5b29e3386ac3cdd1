"""Certificates and kubeconfigs: one authority, one client certificate an identity, all made by openssl.

The folder `pki` appears only when it is whole, so an interrupted run never leaves half an authority.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.settings import API_PORT, API_SERVICE_IP, CONTEXT, NODE_IP, NODE_NAME, Settings

DAYS = "3650"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_API_NAMES = (
    "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,"
    f"DNS:localhost,IP:127.0.0.1,IP:{API_SERVICE_IP},IP:{NODE_IP}"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate: its file's name, its subject as openssl writes it, the names it serves under."""

    name: str
    subject: str
    serves: str = "DNS:localhost"


IDENTITIES = (
    Identity("apiserver", "/CN=kube-apiserver", _API_NAMES),
    Identity("admin", "/O=system:masters/CN=admin"),
    Identity("controller-manager", "/CN=system:kube-controller-manager"),
    Identity("scheduler", "/CN=system:kube-scheduler"),
    Identity("proxy", "/CN=system:kube-proxy"),
    Identity("kubelet", f"/O=system:nodes/CN=system:node:{NODE_NAME}", f"DNS:{NODE_NAME},IP:127.0.0.1,IP:{NODE_IP}"),
    Identity("front-proxy", "/CN=front-proxy"),
)
KUBECONFIGS = ("admin", "controller-manager", "scheduler", "proxy", "kubelet")


def ensure(settings: Settings) -> None:
    """Makes the authority, the certificates and a kubeconfig each of `KUBECONFIGS`, unless they are there."""
    folder = settings.state / "pki"
    if not folder.exists():
        making = settings.state / "pki.making"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        _make_authority(making)
        for identity in IDENTITIES:
            issue(making, identity)
        making.rename(folder)
    for name in KUBECONFIGS:
        write_private(settings.state / f"{name}.kubeconfig", kubeconfig(folder, name))


def issue(folder: Path, identity: Identity) -> None:
    """Writes NAME.key and NAME.crt, signed by the folder's authority."""
    key, certificate = folder / f"{identity.name}.key", folder / f"{identity.name}.crt"
    names = ("-addext", f"subjectAltName={identity.serves}", "-addext", "extendedKeyUsage=clientAuth,serverAuth")
    request = run(["openssl", "req", "-new", *_KEY, "-keyout", key, "-subj", identity.subject, *names])
    authority = ("-CA", folder / "ca.crt", "-CAkey", folder / "ca.key")
    copy = ("-copy_extensions", "copyall", "-days", DAYS, "-out", certificate)
    run(["openssl", "x509", "-req", *authority, *copy], text=request)
    key.chmod(0o600)


def kubeconfig(folder: Path, name: str) -> str:
    """A kubeconfig (JSON, which is YAML) that carries the identity's certificate and key in itself."""
    user = {
        "client-certificate-data": _encoded(folder / f"{name}.crt"),
        "client-key-data": _encoded(folder / f"{name}.key"),
    }
    cluster = {"server": f"https://127.0.0.1:{API_PORT}", "certificate-authority-data": _encoded(folder / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": name}}],
        "current-context": CONTEXT,
    }
    return json.dumps(config, indent=1) + "\n"


def write_private(file: Path, text: str, owner: tuple[int, int] | None = None) -> None:
    """Writes the file whole with mode 0600, owned by (uid, gid) if given; never readable by others on the way."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(text)
    if owner:
        os.chown(fresh, *owner)
    fresh.replace(file)


def _make_authority(folder: Path) -> None:
    subject = ("-subj", "/CN=cuvil-cluster", "-days", DAYS)
    run(["openssl", "req", "-x509", *_KEY, "-keyout", folder / "ca.key", "-out", folder / "ca.crt", *subject])
    accounts = run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
    write_private(folder / "accounts.key", accounts)
    (folder / "accounts.pub").write_text(run(["openssl", "pkey", "-pubout"], text=accounts))


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
