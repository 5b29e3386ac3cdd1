"""Requests counted over a rollout from cumulative counters that may restart, vanish and come back.

For each pod, between two looks:

    new pod               all that its counters show (a process begins at 0)
    counters grew         the difference
    a counter fell        the process was restarted: all that it shows now; what came between is lost, never invented
    pod not in the answer its last value is kept, so that a gap in the scrapes is not counted twice

No rates: a difference of two counters is a number of requests, whatever the scrape times were.
"""

from dataclasses import dataclass
from datetime import datetime

from cuvil_operator.api import CounterSample
from cuvil_operator.promql import PodCounts, Reading

KEPT_PODS = 64
"""Pods whose last counters are kept in status; beyond, those that vanished first are forgotten."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Requests and breaches since the evidence began, and the counters that they were counted from."""

    requests: int = 0
    breaches: int = 0
    counters: tuple[CounterSample, ...] = ()


def advance(before: Evidence, reading: Reading) -> Evidence:
    """Add what a usable reading shows beyond the counters kept; any other reading adds nothing."""
    last = {one.pod: one for one in before.counters}
    steps = [_difference(last.get(pod.pod), pod) for pod in reading.pods]
    return Evidence(
        before.requests + sum(requests for requests, _ in steps),
        before.breaches + sum(breaches for _, breaches in steps),
        _kept(last, reading),
    )


def baseline(reading: Reading) -> Evidence:
    """Start the count here: what the counters show now came before the canary had any traffic of this rollout."""
    return Evidence(counters=_kept({}, reading))


def _difference(last: CounterSample | None, now: PodCounts) -> tuple[int, int]:
    if last is None or now.requests < last.requests or now.breaches < last.breaches:
        return now.requests, now.breaches
    requests = now.requests - last.requests
    # two counters of one scrape cannot disagree; two scrapes merged by the query can, by a request in flight
    return requests, min(now.breaches - last.breaches, requests)


def _kept(last: dict[str, CounterSample], reading: Reading) -> tuple[CounterSample, ...]:
    seen = {pod.pod: _sample(pod, reading.at) for pod in reading.pods}
    newest_first = sorted((last | seen).values(), key=lambda one: (-one.at.timestamp(), one.pod))
    return tuple(sorted(newest_first[:KEPT_PODS], key=lambda one: one.pod))


def _sample(pod: PodCounts, at: datetime) -> CounterSample:
    return CounterSample(pod.pod, pod.requests, pod.breaches, at)
