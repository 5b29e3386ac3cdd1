"""Watches a CuvilModel while a story runs: what was decided, when, and what the traffic looked like."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from e2e.stories.access import Access, Object
from e2e.stories.prometheus import Prometheus

WINDOW = "10s"
"""Of the plotted rates; the operator's own decisions use counts, not these."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One change of the model's state."""

    at: float
    phase: str
    weight: int
    stable: str
    canary: str
    message: str


@dataclass
class Timeline:
    """Moments of one model, gathered by a thread; `say` gets each as a line of text."""

    access: Access
    namespace: str
    name: str
    say: Callable[[str], None]
    began: float = field(default_factory=time.time)
    moments: list[Moment] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Timeline":
        self._thread = threading.Thread(target=self._gather, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _gather(self) -> None:
        while not self._stop.wait(0.5):
            try:
                model = self.access.get("cuvil.dev/v1alpha1", "CuvilModel", self.name, self.namespace)
            except Exception as fault:
                self.say(f"  (the API server did not answer: {type(fault).__name__})")
                continue
            if model is not None:
                self._note(moment_of(model))

    def _note(self, moment: Moment) -> None:
        last = self.moments[-1] if self.moments else None
        if last is None or _shown(last) != _shown(moment):
            self.moments.append(moment)
            self.say(f"  {moment.at - self.began:6.1f}s  {_line(moment)}")


def moment_of(model: Object) -> Moment:
    """Read what the printer columns show, and the message of the last decision."""
    status = model.get("status") or {}
    return Moment(
        at=time.time(),
        phase=status.get("phase") or "-",
        weight=int(status.get("weight") or 0),
        stable=(status.get("stable") or {}).get("revision", "-"),
        canary=(status.get("canary") or {}).get("revision", "-"),
        message=status.get("message") or "",
    )


def _shown(moment: Moment) -> tuple[object, ...]:
    return (moment.phase, moment.weight, moment.stable, moment.canary, moment.message)


def _line(moment: Moment) -> str:
    return f"{moment.phase:<12} canary {moment.weight:>3} %  stable {moment.stable[:12]:<12}  {moment.message}"


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a rollout: facts to print, its timeline, and the revision that was the canary."""

    facts: list[str]
    timeline: Timeline
    revision: str


@dataclass(frozen=True, slots=True)
class Plots:
    """Series of one story for the report: (time, value)."""

    weight: list[tuple[float, float]]
    p95: list[tuple[float, float]]
    """Seconds, of the canary's requests."""
    errors: list[tuple[float, float]]
    """Share of the canary's requests that failed."""


def plots(timeline: Timeline, prometheus: Prometheus, revision: str, end: float) -> Plots:
    """Ask Prometheus for the canary's latency and errors over the story; each value looks back WINDOW."""
    picked = f'namespace="{timeline.namespace}",model="{timeline.name}",revision="{revision}"'
    buckets = f"cuvil_request_duration_seconds_bucket{{{picked}}}"
    total = f"sum(rate(cuvil_requests_total{{{picked}}}[{WINDOW}]))"
    bad = f'sum(rate(cuvil_requests_total{{{picked},outcome=~"error|rejected"}}[{WINDOW}]))'
    weight = [(moment.at, float(moment.weight)) for moment in timeline.moments]
    weight += [(end, weight[-1][1])] if weight else []
    return Plots(
        weight=weight,
        p95=prometheus.series(
            f"histogram_quantile(0.95, sum by (le) (rate({buckets}[{WINDOW}])))", timeline.began, end
        ),
        errors=prometheus.series(f"({bad} or vector(0)) / {total}", timeline.began, end),
    )
