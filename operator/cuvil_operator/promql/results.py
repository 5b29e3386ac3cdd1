"""Instant vectors → whole counts per pod, or why they cannot be counted. Never a guess, never a partial count.

| answer                                                    | state        |
|-----------------------------------------------------------|--------------|
| no series                                                 | NO_DATA      |
| NaN, ±Inf, negative, fraction, or above 2^53              | NOT_A_NUMBER |
| a series without pod, outcome or le; two of one name      | UNUSABLE     |
| no bucket at the threshold, or buckets that fall          | UNUSABLE     |
| anything else                                             | OK           |
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import inf, isclose, isfinite
from typing import Protocol

from cuvil_core.contract import RequestOutcome
from cuvil_operator.promql.reading import PodCounts, Reading, SourceState

COUNTED = (RequestOutcome.OK, RequestOutcome.ERROR, RequestOutcome.REJECTED)
"""Outcomes that the error objective is about; client_error is the caller's fault."""
BREACHES = (RequestOutcome.ERROR, RequestOutcome.REJECTED)
GREATEST = 2.0**53
"""Above this a float no longer counts one by one."""


class SeriesLike(Protocol):
    """One series of an instant vector, from whatever gateway."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Label names → values."""
        ...

    @property
    def value(self) -> str:
        """As Prometheus writes it."""
        ...


class _UnusableError(Exception):
    def __init__(self, state: SourceState, message: str) -> None:
        super().__init__(message)
        self.state, self.message = state, message


def failed(query: str, state: SourceState, message: str, at: datetime) -> Reading:
    """Give the reading of a query that had no answer."""
    return Reading(query, state, at, message)


def errors(query: str, series: Iterable[SeriesLike], at: datetime) -> Reading:
    """Count requests and those that failed, from the answer to queries.requests."""
    return _reading(query, tuple(series), at, "outcome", _by_outcome)


def latency(query: str, series: Iterable[SeriesLike], threshold: timedelta, at: datetime) -> Reading:
    """Count answered requests and those slower than the threshold, from the answer to queries.durations."""
    return _reading(
        query, tuple(series), at, "le", lambda pod, found: _by_bucket(pod, found, threshold.total_seconds())
    )


def _reading(query: str, series: tuple[SeriesLike, ...], at: datetime, label: str, count: "_Count") -> Reading:
    if not series:
        message = "no such series: the pods were not scraped yet, or no PodMonitor of this Prometheus selects them"
        return Reading(query, SourceState.NO_DATA, at, message)
    try:
        pods = _grouped(series, label)
        return Reading(query, SourceState.OK, at, pods=tuple(count(pod, pods[pod]) for pod in sorted(pods)))
    except _UnusableError as fault:
        return Reading(query, fault.state, at, fault.message)


class _Count(Protocol):
    def __call__(self, pod: str, found: dict[str, int], /) -> PodCounts: ...


def _grouped(series: tuple[SeriesLike, ...], label: str) -> dict[str, dict[str, int]]:
    pods: dict[str, dict[str, int]] = defaultdict(dict)
    for one in series:
        pod, key = one.labels.get("pod", ""), one.labels.get(label, "")
        if not pod or not key:
            raise _UnusableError(SourceState.UNUSABLE, f"a series has no label {label if pod else 'pod'}")
        if key in pods[pod]:
            raise _UnusableError(SourceState.UNUSABLE, f"pod {pod} has several series of {label} {key!r}")
        pods[pod][key] = _whole(one.value, pod)
    return pods


def _by_outcome(pod: str, found: dict[str, int], /) -> PodCounts:
    requests = sum(found.get(one, 0) for one in COUNTED)
    return PodCounts(pod, requests, sum(found.get(one, 0) for one in BREACHES))


def _by_bucket(pod: str, found: dict[str, int], threshold: float) -> PodCounts:
    buckets = sorted((_bound(text, pod), count) for text, count in found.items())
    counts = [count for _, count in buckets]
    if counts != sorted(counts):
        raise _UnusableError(SourceState.UNUSABLE, f"the buckets of pod {pod} fall")
    if not buckets or buckets[-1][0] != inf:
        raise _UnusableError(SourceState.UNUSABLE, f"pod {pod} has no bucket le=+Inf")
    within = next((count for bound, count in buckets if isclose(bound, threshold, rel_tol=1e-9)), None)
    if within is None:
        known = ", ".join(f"{bound:g}" for bound, _ in buckets)
        raise _UnusableError(
            SourceState.UNUSABLE, f"pod {pod} has no bucket at {threshold:g} s, the SLO's threshold; it has {known}"
        )
    return PodCounts(pod, counts[-1], counts[-1] - within)


def _bound(text: str, pod: str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = float("nan")
    if bound != bound:
        raise _UnusableError(SourceState.UNUSABLE, f"pod {pod} has a bucket le={text!r}, which is no number")
    return bound


def _whole(text: str, pod: str) -> int:
    try:
        value = float(text)
    except ValueError:
        raise _UnusableError(
            SourceState.MALFORMED, f"pod {pod} has the value {text[:40]!r}, which is no number"
        ) from None
    if not isfinite(value) or not 0 <= value <= GREATEST or value != int(value):
        raise _UnusableError(SourceState.NOT_A_NUMBER, f"pod {pod} has the value {text[:40]}, which is no count")
    return int(value)
