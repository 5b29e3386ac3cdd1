"""The real Prometheus gateway: `prometheus-api-client` in a thread, one try, a timeout below the analysis interval."""

import asyncio
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util.retry import Retry

from cuvil_operator.errors import SettingsError
from cuvil_operator.gateways.protocols import QueryAnswer, QueryFailure, Series, SourceFault

MOST_BYTES = 8 << 20
"""An answer beyond this is malformed: the controller asks for a few series."""
MESSAGE_LIMIT = 300


class TooLarge(requests.RequestException):
    """The answer is longer than MOST_BYTES."""


class BoundedSession(requests.Session):
    """A session that reads no more than MOST_BYTES, follows no redirect and passes errors on as they are."""

    def request(self, *args: Any, **given: Any) -> requests.Response:
        """Send, then read at most MOST_BYTES."""
        answer = super().request(*args, **(given | {"stream": True, "allow_redirects": False}))
        with answer:
            content = bytearray()
            for chunk in answer.iter_content(1 << 16):
                content += chunk
                if len(content) > MOST_BYTES:
                    raise TooLarge(f"the answer is longer than {MOST_BYTES} bytes")
        answer._content = bytes(content)
        return answer


class ApiPrometheus:
    """PrometheusGateway over HTTP."""

    def __init__(self, url: str, timeout: float, token: Callable[[], str] = str) -> None:
        """Take the base address, the seconds a query may take, and a source of the bearer token (empty: none).

        Raises SettingsError where the address is not an http(s) URL.
        """
        check_url(url)
        self._client = PrometheusConnect(url=url.rstrip("/"), retry=Retry(total=0), session=BoundedSession())
        self._timeout = timeout
        self._token = token

    async def query(self, expression: str, timeout: float | None = None) -> QueryAnswer | QueryFailure:
        """Evaluate; never raises but for cancellation."""
        limit = min(self._timeout, timeout) if timeout is not None else self._timeout
        try:
            # The socket's timeout counts each read, so a server that drips bytes needs the second, whole one.
            async with asyncio.timeout(limit):
                return await asyncio.to_thread(self._ask, expression, limit)
        except TimeoutError:
            return QueryFailure(expression, SourceFault.TIMEOUT, f"Prometheus gave no answer within {limit:g} s")

    def _ask(self, expression: str, limit: float) -> QueryAnswer | QueryFailure:
        token = self._token()
        self._client.headers = {"Authorization": f"Bearer {token}"} if token else None
        try:
            # Prometheus reads whole units only: 2500ms, never 2.5s.
            params = {"timeout": f"{max(1, round(limit * 1000))}ms"}
            found = self._client.custom_query(expression, params=params, timeout=limit)
            return QueryAnswer(expression, tuple(map(_series, found)))
        except requests.Timeout:
            return QueryFailure(expression, SourceFault.TIMEOUT, f"Prometheus gave no answer within {limit:g} s")
        except TooLarge as fault:
            return QueryFailure(expression, SourceFault.MALFORMED, str(fault))
        except PrometheusApiClientException as fault:
            return _refused(expression, str(fault))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as fault:
            message = f"Prometheus gave an answer that is no instant vector: {type(fault).__name__}: {fault}"
            return QueryFailure(expression, SourceFault.MALFORMED, message[:MESSAGE_LIMIT])
        except requests.RequestException as fault:
            message = f"Prometheus cannot be reached: {type(fault).__name__}"
            return QueryFailure(expression, SourceFault.UNREACHABLE, message)


def _series(raw: Any) -> Series:
    time, value = raw["value"]
    labels = {str(key): str(text) for key, text in raw["metric"].items()}
    if not isinstance(value, str):
        raise TypeError("a sample's value is not text")
    return Series(labels, float(time), value)


def _refused(expression: str, said: str) -> QueryFailure:
    """Read the status out of the client's message, its only carrier."""
    status = re.search(r"HTTP Status Code (\d+)", said)
    code = int(status.group(1)) if status else 500
    fault = SourceFault.SERVER_ERROR if code >= 500 or code == 429 else SourceFault.BAD_QUERY
    return QueryFailure(expression, fault, f"Prometheus refused the query: {said[:MESSAGE_LIMIT]}")


def check_url(url: str) -> None:
    """Raise SettingsError with the cure where this is no address of a Prometheus."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            "the Prometheus address is not an http(s) URL: give something like http://prometheus.monitoring:9090"
        )
