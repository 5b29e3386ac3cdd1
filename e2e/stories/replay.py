"""How fast a breach was answered: replays every scrape of the canary and times the way to no traffic.

The operator looks once an interval; the scrapes come every second. Replayed in order, the first scrape whose counts
cross the bound is the moment from which the promise of two analysis intervals runs.
"""

import threading
import time
from dataclasses import dataclass, field

from cuvil_operator.decide import bound
from e2e.stories.access import Access, Object, wait
from e2e.stories.prometheus import Prometheus


@dataclass(frozen=True, slots=True)
class Counts:
    """Cumulative counts of a revision at one scrape, summed over its pods."""

    at: float
    requests: int
    breaches: int


def first_crossing(counts: list[Counts], limit: float, alpha: float) -> float | None:
    """Give the time of the first scrape that refutes "the share of breaches is at most the limit"."""
    return next((one.at for one in counts if bound.refuted(one.breaches, one.requests, limit, alpha)), None)


def error_counts(prometheus: Prometheus, picked: str, window: str) -> list[Counts]:
    """Read requests that count, and those that failed, at each scrape of the window."""
    rows = prometheus.raw(f"cuvil_requests_total{{{picked}}}[{window}]")
    return _summed(
        [
            (labels["pod"], at, value, labels["outcome"])
            for labels, at, value in rows
            if labels["outcome"] != "client_error"
        ],
        bad=("error", "rejected"),
    )


def latency_counts(prometheus: Prometheus, picked: str, threshold: float, window: str) -> list[Counts]:
    """Read answered requests, and those slower than the threshold (seconds), at each scrape of the window."""
    total = prometheus.raw(f"cuvil_request_duration_seconds_count{{{picked}}}[{window}]")
    buckets = prometheus.raw(f"cuvil_request_duration_seconds_bucket{{{picked}}}[{window}]")
    quick = [row for row in buckets if row[0]["le"] not in ("+Inf", "Inf") and float(row[0]["le"]) == threshold]
    fast = {(labels["pod"], at): value for labels, at, value in quick}
    rows = [
        (labels["pod"], at, fast[labels["pod"], at], "fast") for labels, at, _ in total if (labels["pod"], at) in fast
    ]
    rows += [
        (labels["pod"], at, value - fast[labels["pod"], at], "slow")
        for labels, at, value in total
        if (labels["pod"], at) in fast
    ]
    return _summed(rows, bad=("slow",))


def _summed(rows: list[tuple[str, float, float, str]], bad: tuple[str, ...]) -> list[Counts]:
    latest: dict[tuple[str, str], float] = {}
    found: dict[float, Counts] = {}
    for pod, at, value, kind in sorted(rows, key=lambda row: row[1]):
        latest[pod, kind] = value
        requests = sum(latest.values())
        breaches = sum(number for (_, one), number in latest.items() if one in bad)
        found[at] = Counts(at, int(requests), int(breaches))
    return [found[at] for at in sorted(found)]


@dataclass
class RouteWatch:
    """Notes when the weight of a revision's backend in the HTTPRoute of a model becomes 0."""

    access: Access
    namespace: str
    name: str
    changes: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "RouteWatch":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _look(self) -> None:
        while not self._stop.wait(0.2):
            try:
                route = self.access.get("gateway.networking.k8s.io/v1", "HTTPRoute", self.name, self.namespace)
            except Exception:  # the API server is busy; the next look tells
                continue
            weights = weights_of(route)
            if weights and (not self.changes or self.changes[-1][1] != weights):
                self.changes.append((time.time(), weights))

    def no_traffic_at(self, revision: str) -> float:
        """Give the time at which the revision, having had traffic, got none; raises StoryError when it never did."""
        return float(wait(f"the route to take the traffic from {revision}", lambda: self._emptied(revision), 15))

    def _emptied(self, revision: str) -> float | None:
        had = False
        for at, weights in tuple(self.changes):
            mine = sum(weight for backend, weight in weights.items() if backend.endswith(revision))
            if had and mine == 0:
                return at
            had = had or mine > 0
        return None


def weights_of(route: Object | None) -> dict[str, int]:
    """Give backend name → weight of a route's first rule."""
    if route is None:
        return {}
    return {one["name"]: int(one.get("weight", 1)) for one in route["spec"]["rules"][0].get("backendRefs", [])}
