"""What stories 3 and 4 share: a version that breaches under load is rolled back, quarantined, told of, and fast."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from e2e.stories.access import Object, StoryError, wait
from e2e.stories.load import Load
from e2e.stories.replay import Counts, RouteWatch, first_crossing
from e2e.stories.timeline import Played
from e2e.stories.world import World

NAME = "rec"
INTERVAL = 5.0
"""Seconds, of the stories' analysis."""
CALM_SECONDS = 10
ALPHA = 0.005
"""Half of falseRollback: each of the two gates may use up one half."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A version that passes the proof and breaches its SLO on real requests."""

    version: str
    gate: str
    """errorRate or latency."""
    limit: float
    """Share of breaches that the SLO allows."""
    counts: Callable[[World, str, str], list[Counts]]
    """Of the world, PromQL matchers and a PromQL duration back from now: the counts at each scrape."""
    changes: dict[str, Any] = field(default_factory=dict)
    rate: float = 20
    """Requests a second."""
    batch: int = 1
    """Pictures a request."""
    timed: bool = True
    """Whether the way from the crossing scrape to weight 0 is held to two intervals."""


def play(world: World, namespace: str, bad: Bad, stable: str) -> Played:
    """With a good version at rest: apply the bad one, send load, and see it rolled back as promised.

    The load begins with the canary, so that compile and proof do not compete with it for the cores of a small machine.
    """
    began = time.time()
    with world.watched(NAME, namespace) as timeline, RouteWatch(world.access, namespace, NAME) as route:
        world.apply(world.manifest(NAME, namespace, world.version(bad.version), **bad.changes))
        world.wait_status(NAME, namespace, "a canary with traffic", lambda one: one.get("weight"), 600)
        load = world.load(NAME, namespace, rate=bad.rate, concurrency=64, batch=bad.batch)
        status = world.wait_status(NAME, namespace, "rolled back", lambda one: one.get("phase") == "RolledBack", 300)
        facts = _dossier(status, bad, stable)
        revision = status["rollback"]["revision"]
        if bad.timed:
            facts += _timed(world, namespace, bad, revision, route, began)
        facts += [_alert(world, namespace, began), _event(world, namespace, revision, began)]
    facts.append(_calm(load, stable))
    return Played(facts, timeline, revision)


def _dossier(status: Object, bad: Bad, stable: str) -> list[str]:
    dossier = status["rollback"]
    gate = dossier.get("gate") or {}
    lacking = [key for key in ("query", "requests", "breaches", "bound", "limit") if gate.get(key) in (None, "")]
    if gate.get("name") != bad.gate or dossier.get("stable") != stable or lacking:
        raise StoryError(f"the dossier must name {bad.gate} and {stable} and lacks {lacking}: {dossier}")
    if dossier["revision"] not in [one["revision"] for one in status.get("quarantine", [])]:
        raise StoryError(f"{dossier['revision']} is not in quarantine: {status.get('quarantine')}")
    return [f"rolled back {dossier['revision']} to {stable}: {dossier['message']}", "quarantined"]


def _timed(world: World, namespace: str, bad: Bad, revision: str, route: RouteWatch, began: float) -> list[str]:
    """Of this play's scrapes alone: the same revision may have been rolled back on this cluster a moment ago."""
    picked = f'namespace="{namespace}",model="{NAME}",revision="{revision}"'
    crossed = first_crossing(bad.counts(world, picked, f"{time.time() - began:.0f}s"), bad.limit, ALPHA)
    if crossed is None:
        raise StoryError("the scrapes, replayed, never cross the bound: the rollback had no ground")
    took = route.no_traffic_at(revision) - crossed
    if took > 2 * INTERVAL:
        raise StoryError(f"{took:.1f} s from the crossing scrape to weight 0; promised are {2 * INTERVAL:.0f} s")
    return [f"crossing scrape → weight 0: {took:.1f} s = {took / INTERVAL:.2f} intervals (promised: 2)"]


def _alert(world: World, namespace: str, began: float) -> str:
    def look() -> Object | None:
        received = world.access.through_service("monitoring", "alert-sink:8080", "alerts")
        return next(
            (one for one in received if one["at"] > began and one["labels"].get("namespace") == namespace), None
        )

    alert = wait("an alert at the webhook", look, 60)
    return f"the webhook got {alert['labels']['alertname']}"


def _event(world: World, namespace: str, revision: str, began: float) -> str:
    def look() -> Object | None:
        events = world.access.list("v1", "Event", namespace)
        told = (one for one in events if one["reason"] == "RolledBack" and revision in one["message"])
        return next((one for one in told if _told_at(one) >= int(began)), None)

    event = wait(f"an Event RolledBack of {revision}", look, 30)
    return f"Event {event['reason']}: {event['message'][:160]}"


def _told_at(event: Object) -> float:
    """When an Event was written last; whole seconds since 1970, or finer."""
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(str(text)).timestamp()


def _calm(load: Load, stable: str) -> str:
    """After the rollback and the last answers still on their way, stable alone answers, and no request fails."""

    def calm() -> list[Object] | None:
        lines = [line for line in load.lines() if "by_revision" in line][-CALM_SECONDS:]
        quiet = all(set(line["by_revision"]) == {stable} and not line["failed"] for line in lines)
        return lines if quiet and len(lines) == CALM_SECONDS else None

    lines = wait(f"{CALM_SECONDS} s in which stable alone answers and nothing fails", calm, 90, every=1)
    load.stop()
    return f"after it {sum(line['ok'] for line in lines)} requests in {len(lines)} s, all answered by stable"
