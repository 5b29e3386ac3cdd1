"""The OCI distribution API: manifests and blobs, in and out.

Source: opencontainers/distribution-spec v1.1. Own code rather than the `oras` package, which needs requests and
jsonschema (docs/decisions/0027): the runtime image has the standard library only.
"""

import json
import os
import re
import urllib.parse
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from cuvil_core.errors import DigestError, InfrastructureError, MissingError
from cuvil_core.fetching.credentials import for_registry
from cuvil_core.fetching.reference import Reference
from cuvil_core.fetching.sink import Expected, Received, receive
from cuvil_core.fetching.web import Body, Reply, call, is_stream, joined, refused, shown

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
MANIFEST_LIMIT = 4 << 20
"""Bytes: registries must take manifests up to this size."""
TOKEN_LIMIT = 1 << 20


class Registry:
    """One repository of one registry."""

    def __init__(self, reference: Reference, insecure: bool) -> None:
        """Credentials are read when the registry asks for them."""
        self._reference = reference
        self._base = reference.base(insecure)
        self._authorization: str | None = None

    def manifest(self, name: str) -> tuple[dict[str, Any], str]:
        """Give a manifest and its digest. Raises MissingError, DigestError, InfrastructureError."""
        url = f"{self._base}/manifests/{name}"
        reply = self._call("GET", url, "pull", {"Accept": f"{MANIFEST}, {DOCKER_MANIFEST}"})
        if reply.status != 200:
            raise refused(url, reply.status)
        body = reply.read(MANIFEST_LIMIT)
        digest = f"sha256:{sha256(body).hexdigest()}"
        if name.startswith("sha256:") and digest != name:
            raise DigestError(f"{shown(url)} gives a manifest of digest {digest}; the registry is broken, push again")
        try:
            manifest = json.loads(body)
            if not isinstance(manifest["layers"], list):
                raise TypeError("layers is no list")
        except (ValueError, KeyError, TypeError, RecursionError) as fault:
            raise MissingError(
                f"{self._reference} is no single artifact (an index?); name one by its digest"
            ) from fault
        return manifest, digest

    def blob(self, digest: str, wanted: Expected, destination: Path) -> Received:
        """Download a blob. Raises MissingError, DigestError, SizeError, InfrastructureError."""
        url = f"{self._base}/blobs/{digest}"
        reply = self._call("GET", url, "pull")
        if reply.status != 200:
            reply.body.close()
            raise refused(url, reply.status)
        return receive(reply.body, url, wanted, destination)

    def has_blob(self, digest: str, action: str = "pull") -> bool:
        """Tell whether the repository holds a blob."""
        reply = self._call("HEAD", f"{self._base}/blobs/{digest}", action)
        reply.body.close()
        return reply.status == 200

    def push_blob(self, digest: str, size: int, data: Body | Path) -> None:
        """Upload a blob in one piece, unless it is there. Raises MissingError, InfrastructureError."""
        if self.has_blob(digest, "pull,push"):
            return
        url = f"{self._base}/blobs/uploads/"
        reply = self._call("POST", url, "pull,push", {"Content-Length": "0"}, b"")
        reply.body.close()
        place = reply.headers.get("Location")
        if reply.status != 202 or place is None:
            raise refused(url, reply.status)
        target = joined(url, place)
        target += ("&" if "?" in target else "?") + urllib.parse.urlencode({"digest": digest})
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        if not isinstance(data, Path):
            self._put(target, headers, data)
        else:
            with _open(data) as file:
                self._put(target, headers, file)

    def push_manifest(self, body: bytes, name: str) -> str:
        """Upload a manifest under a tag or its digest; give its digest. Raises MissingError, InfrastructureError."""
        self._put(f"{self._base}/manifests/{name}", {"Content-Type": MANIFEST}, body)
        return f"sha256:{sha256(body).hexdigest()}"

    def _put(self, url: str, headers: dict[str, str], data: Body | IO[bytes]) -> None:
        reply = self._call("PUT", url, "pull,push", headers, data)
        reply.body.close()
        if reply.status not in (200, 201, 202):
            raise refused(url, reply.status)

    def _call(
        self,
        method: str,
        url: str,
        action: str,
        headers: dict[str, str] | None = None,
        data: Body | IO[bytes] | None = None,
    ) -> Reply:
        """Send a request; when the registry asks who we are, answer and send it once more."""
        sent = dict(headers or {})
        if self._authorization:
            sent["Authorization"] = self._authorization
        reply = call(method, url, sent, data)
        challenge = reply.headers.get("WWW-Authenticate", "")
        # A stream is spent after one try; by then the session is authorized, since uploads begin with small calls.
        if reply.status != 401 or not challenge or is_stream(data):
            return reply
        reply.body.close()
        self._authorization = self._authorize(challenge, action)
        if self._authorization is None:
            raise refused(url, 401)
        return call(method, url, {**sent, "Authorization": self._authorization}, data)

    def _authorize(self, challenge: str, action: str) -> str | None:
        credentials = for_registry(self._reference.host)
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() != "bearer":
            return credentials.header
        if credentials.token:
            return credentials.header
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        return self._token(fields, credentials.basic, action)

    def _token(self, fields: dict[str, str], basic: str | None, action: str) -> str:
        """Ask the token service that the challenge names (Docker Registry v2 token authentication)."""
        realm = fields.get("realm", "")
        if not realm.startswith(("http://", "https://")):
            raise InfrastructureError(f"registry {self._reference.host} names no token service; ask its operator")
        if self._base.startswith("https:") and not realm.startswith("https:"):
            raise InfrastructureError(
                f"registry {self._reference.host} names an unsafe token service; ask its operator"
            )
        query = {"scope": fields.get("scope") or f"repository:{self._reference.repository}:{action}"}
        if "service" in fields:
            query["service"] = fields["service"]
        url = f"{realm}{'&' if '?' in realm else '?'}{urllib.parse.urlencode(query)}"
        reply = call("GET", url, {"Authorization": basic} if basic else {})
        if reply.status != 200:
            raise refused(url, reply.status)
        try:
            answer = json.loads(reply.read(TOKEN_LIMIT))
            return "Bearer " + str(answer.get("token") or answer["access_token"])
        except (ValueError, KeyError, AttributeError, RecursionError) as fault:
            raise InfrastructureError(f"the token service {shown(realm)} gives no token; try again later") from fault


def _open(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as fault:
        raise MissingError(f"{path} cannot be read: {os.strerror(fault.errno or 0)}; name a file") from fault
