"""HTTP with bounds: allowed hosts, few redirects, timeouts, few retries, errors by cause.

On urllib, which honours proxies and the system's certificates; redirects are followed here, since credentials must not
travel to another host.
"""

import fnmatch
import functools
import http.client
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any

from cuvil_core.errors import InfrastructureError, InputError, MissingError

SCHEMES = "file, http, https, oci"
ALLOWED = "CUVIL_ALLOWED_HOSTS"
REDIRECTS = 5
TIMEOUT_SECONDS = 30.0
PAUSES = (0.5, 2.0)
"""Seconds before the second and the third try."""
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
Body = bytes | memoryview
_MOVED = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with its body still to be read."""

    status: int
    headers: Message
    body: IO[bytes]
    url: str

    def read(self, limit: int) -> bytes:
        """Read a small body; raises InfrastructureError beyond `limit` bytes or when the connection breaks."""
        try:
            with self.body as body:
                data = body.read(limit + 1)
        except (OSError, http.client.HTTPException) as fault:
            raise unreachable(self.url, fault) from fault
        if len(data) > limit:
            raise InfrastructureError(f"{shown(self.url)} answered more than {limit} bytes where few were due")
        return data


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    """Give the opener; made at the first call, since reading the system's certificates takes a while."""
    return urllib.request.build_opener(_Stay, urllib.request.HTTPSHandler(context=ssl.create_default_context()))


def call(
    method: str,
    url: str,
    headers: Mapping[str, str],
    data: IO[bytes] | Body | None = None,
    pauses: tuple[float, ...] = PAUSES,
) -> Reply:
    """Send a request and give the answer, whatever its status below 500.

    Transient failures are tried again after `pauses`, unless `data` is a stream. Raises InfrastructureError when they
    persist, MissingError for a host that is not allowed.
    """
    tries = () if is_stream(data) else pauses
    for pause in tries:
        try:
            reply = _follow(method, url, headers, data)
            if reply.status not in TRANSIENT:
                return reply
            reply.body.close()
        except InfrastructureError:
            pass
        time.sleep(pause)
    reply = _follow(method, url, headers, data)
    if reply.status in TRANSIENT:
        reply.body.close()
        raise InfrastructureError(f"{shown(url)} answers {reply.status}; try again later")
    return reply


def is_stream(data: IO[bytes] | Body | None) -> bool:
    """Tell a body that can be sent once only."""
    return data is not None and not isinstance(data, bytes | memoryview)


def check_host(url: str) -> None:
    """Raise MissingError unless the URL's host is in CUVIL_ALLOWED_HOSTS (names or patterns, by comma; unset: all)."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as fault:
        raise MissingError(f"{shown(url)} is no URL; correct the URI") from fault
    allowed = [one.strip().lower() for one in os.environ.get(ALLOWED, "").split(",") if one.strip()]
    if not host:
        raise MissingError(f"{shown(url)} names no host; correct the URI")
    if allowed and not any(fnmatch.fnmatchcase(host.lower(), one) for one in allowed):
        raise MissingError(f"host {host} is not among the allowed hosts; ask for it in {ALLOWED} or use another source")


def check_url(url: str) -> None:
    """Raise InputError for what can be no URL, or holds a user's name: sentences and logs would tell the password."""
    told, scheme = masked(url).partition("?")[0], url.partition("://")[0]
    if "://" not in url:
        raise InputError(f"{told!r} has no scheme; write file:///path or one of {SCHEMES}")
    if scheme != "file" and any(one <= " " or one >= "\x7f" for one in url):
        raise InputError(f"{told!r} holds a blank or a letter beyond ASCII; write it percent-encoded, as %20")
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as fault:
        raise InputError(f"{told!r} names no host or port; write HOST or HOST:PORT, a port up to 65535") from fault
    if "@" in parts.netloc:
        raise InputError(f"{told!r} was given with a user's name in it; put credentials into a Secret or a file")
    if not host and scheme != "file":
        raise InputError(f"{told!r} names no host; write it after ://")


def masked(text: str) -> str:
    """Give what may be a reference or a URL, right or wrong, without what stands before an `@`: it may be a secret."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "", text
    rest, at, digest = rest.partition("@sha256:")
    return scheme + mark + (f"…@{rest.rpartition('@')[2]}" if "@" in rest else rest) + at + digest


def shown(url: str) -> str:
    """Give a URL without user, password and query, which may carry secrets."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return masked(url).partition("?")[0]
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def refused(url: str, status: int) -> MissingError:
    """Give the error for an answer that says no."""
    cures = {401: "pass credentials", 403: "pass credentials that may read it", 404: "correct the URI"}
    return MissingError(f"{shown(url)} answers {status}; {cures.get(status, 'correct the URI')}")


def unreachable(url: str, fault: BaseException) -> InfrastructureError:
    """Give the error for a connection that failed."""
    cause = getattr(fault, "reason", None) or fault
    return InfrastructureError(f"{shown(url)} cannot be read: {cause or type(fault).__name__}; try again later")


def joined(url: str, place: str) -> str:
    """Give the URL that an answer's Location means; raises MissingError where it means none."""
    try:
        return urllib.parse.urljoin(url, place)
    except ValueError as fault:
        raise MissingError(f"{shown(url)} leads to what is no URL; correct the URI") from fault


def _follow(method: str, url: str, headers: Mapping[str, str], data: IO[bytes] | Body | None) -> Reply:
    sent = dict(headers)
    for _ in range(REDIRECTS + 1):
        check_host(url)
        reply = _once(method, url, sent, data)
        target = reply.headers.get("Location")
        if reply.status not in _MOVED or target is None or method not in ("GET", "HEAD"):
            return reply
        reply.body.close()
        there = joined(url, target)
        old, new = urllib.parse.urlsplit(url), urllib.parse.urlsplit(there)
        if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
            raise MissingError(f"{shown(url)} leads to {shown(there)}, which is not as safe; correct the URI")
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            sent.pop("Authorization", None)
        url = there
    raise MissingError(f"{shown(url)} is redirected more than {REDIRECTS} times; correct the URI")


def _once(method: str, url: str, headers: Mapping[str, str], data: IO[bytes] | Body | None) -> Reply:
    try:
        request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)
        answer = _opener().open(request, timeout=TIMEOUT_SECONDS)
        return Reply(answer.status, answer.headers, answer, url)
    except urllib.error.HTTPError as answer:
        return Reply(answer.code, answer.headers, answer, url)
    except ssl.SSLCertVerificationError as fault:
        raise MissingError(f"{shown(url)} has a certificate that is not trusted; set SSL_CERT_FILE") from fault
    except urllib.error.URLError as fault:
        if isinstance(fault.reason, ssl.SSLCertVerificationError):
            raise MissingError(f"{shown(url)} has a certificate that is not trusted; set SSL_CERT_FILE") from fault
        raise unreachable(url, fault) from fault
    except (OSError, http.client.HTTPException) as fault:
        raise unreachable(url, fault) from fault
    except ValueError as fault:
        raise MissingError(f"{shown(url)} is no URL; correct the URI") from fault
