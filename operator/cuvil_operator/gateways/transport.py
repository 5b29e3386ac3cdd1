"""Requests to the API server through the async client of the `kubernetes` package; answers as documents or failures.

The generated models are not used: documents go in and out as dicts, so no field that a newer server knows gets lost and
2,000 model classes stay unloaded.
"""

import json
from collections.abc import Sequence
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException

from cuvil_operator.gateways.failures import (
    KubernetesConflict,
    KubernetesDenied,
    KubernetesFailure,
    KubernetesInvalid,
    KubernetesUnavailable,
)
from cuvil_operator.gateways.protocols import Document

MESSAGE_LIMIT = 1024
"""Bytes of a server's message that are passed on."""


class NotFound(KubernetesFailure):
    """404: the object, its namespace or its kind is not there; the room decides which it means."""


class ApiTransport:
    """One connection pool to one API server."""

    def __init__(self, client: ApiClient, timeout: float = 10.0) -> None:
        self._client = client
        self._timeout = timeout

    async def request(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float | None = None,
    ) -> Document:
        """Send one request, never repeated; raises NotFound or another KubernetesFailure."""
        what = f"{method} {path}"
        limit = min(self._timeout, timeout) if timeout is not None else self._timeout
        try:
            verb, url, headers, sent, _ = await self._client.param_serialize(
                method,
                path,
                query_params=list(query),
                header_params={"Accept": accept, "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(
                verb, url, header_params=headers, body=sent, _request_timeout=aiohttp.ClientTimeout(total=limit)
            )
            raw = await answer.read()
        except TimeoutError as fault:
            raise KubernetesUnavailable(f"{what}: no answer within {limit:.1f} s") from fault
        except (aiohttp.ClientError, OSError, ApiException) as fault:
            raise KubernetesUnavailable(f"{what}: the API server cannot be reached: {fault}") from fault
        if 200 <= answer.status < 300:
            return _document(what, raw)
        raise _failure(what, answer.status, raw, answer.headers.get("Retry-After"))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _document(what: str, raw: bytes) -> Document:
    try:
        read = json.loads(raw)
    except ValueError as fault:
        raise KubernetesUnavailable(f"{what}: the answer is not JSON: {fault}") from fault
    if not isinstance(read, dict):
        raise KubernetesUnavailable(f"{what}: the answer is not an object")
    return read


def _failure(what: str, status: int, raw: bytes, retry_after: str | None) -> KubernetesFailure:
    message = f"{what}: {_message(raw) or 'no reason given'} (HTTP {status})"
    if status == 404:
        return NotFound(message)
    if status == 409:
        return KubernetesConflict(message)
    if status in (401, 403):
        return KubernetesDenied(message)
    if status == 429 or status >= 500 or status == 408:
        return KubernetesUnavailable(message, _seconds(retry_after))
    return KubernetesInvalid(message)


def _message(raw: bytes) -> str:
    try:
        said = json.loads(raw)
    except ValueError:
        return raw[:MESSAGE_LIMIT].decode(errors="replace").strip()
    return str(said.get("message", ""))[:MESSAGE_LIMIT] if isinstance(said, dict) else ""


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None
