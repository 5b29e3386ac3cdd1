"""Asks a registry for an image's digest: plain HTTP without credentials, or TLS with those of `buildah login`."""

from __future__ import annotations

import urllib.error
import urllib.request

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError, CommandFailed

MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_ABSENT = ("manifest unknown", "name unknown", "not found", "NAME_UNKNOWN")
"""How registries say that they lack an image."""


def digest_of(target: str, insecure: bool) -> str | None:
    """The digest under which the registry has the image, or None; `ClusterError` when the registry does not answer."""
    return _asked_plainly(target) if insecure else _asked_by_skopeo(target)


def _asked_plainly(target: str) -> str | None:
    registry, _, rest = target.partition("/")
    repository, _, tag = rest.rpartition(":")
    accept = {"Accept": ", ".join(MANIFESTS)}
    request = urllib.request.Request(
        f"http://{registry}/v2/{repository}/manifests/{tag}", headers=accept, method="HEAD"
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return str(answer.headers["Docker-Content-Digest"])
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise ClusterError(f"the registry {registry} answers {error.code} for {repository}: look at its log") from None
    except OSError as error:
        cure = "start it with `python -m e2e.cluster up`, or name yours with --registry"
        raise ClusterError(f"the registry {registry} does not answer ({error}); {cure}") from None


def _asked_by_skopeo(target: str) -> str | None:
    registry = target.partition("/")[0]
    try:
        return run(["skopeo", "inspect", "--no-tags", "--format", "{{.Digest}}", f"docker://{target}"]).strip()
    except CommandFailed as error:
        if any(word in str(error) for word in _ABSENT):
            return None
        raise ClusterError(
            f"the registry {registry} does not tell of {target}: {error}; log in with `buildah login {registry}`, "
            "or pass --insecure for plain HTTP"
        ) from None
