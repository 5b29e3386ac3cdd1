"""Story 8: what was rolled back does not start again by itself; reverting is immediate; each verb does what it says."""

import time
from collections.abc import Callable
from functools import partial

from e2e.stories.access import Object, StoryError
from e2e.stories.s04_erring_version import ERRING
from e2e.stories.world import API, KIND, STAGE, World, other

NAME = "rec"
LONG = [{"weight": 20, "hold": "5m"}, {"weight": 50, "hold": "5m"}]
"""Steps that nothing but a verb passes within the story."""


def run(world: World, namespace: str = STAGE) -> list[str]:
    """Play the story; gives the facts to print."""
    kind, stable = world.steady(NAME, namespace)
    with world.watched(NAME, namespace):
        facts = [_reapplied(world, namespace, stable)]
        facts += [_reverted(world, namespace, kind, stable), *_verbs(world, namespace, kind, stable)]
    return facts


def _reapplied(world: World, namespace: str, stable: str) -> str:
    """Roll a bad version back, then apply the same spec again, as Argo CD's sync does."""
    bad = world.manifest(NAME, namespace, world.version(ERRING.version))
    load = world.load(NAME, namespace, rate=20, concurrency=32)
    world.apply(bad)
    world.wait_status(NAME, namespace, "rolled back", lambda one: one.get("phase") == "RolledBack", 400)
    load.stop()
    world.access.annotate(API, KIND, NAME, namespace, "argocd.argoproj.io/tracking-id", f"app:{time.time()}")
    world.apply(bad)
    time.sleep(15)
    after = world.status(NAME, namespace)
    if after.get("phase") != "RolledBack" or after.get("weight") or after["stable"]["revision"] != stable:
        raise StoryError(f"applying the rolled-back spec again moved the model: {after.get('phase')}")
    return f"{after['revision']} applied again: still RolledBack, weight 0"


def _reverted(world: World, namespace: str, kind: str, stable: str) -> str:
    """A changed spec starts; stable's spec in mid-canary takes it back at once."""
    _start(world, namespace, other(kind))
    began = time.monotonic()
    world.apply(_long(world, namespace, kind))
    world.wait_status(NAME, namespace, "back on stable", lambda one: _back(one, stable), 30)
    return f"a changed spec started a canary; reverting it took {time.monotonic() - began:.1f} s"


def _verbs(world: World, namespace: str, kind: str, stable: str) -> list[str]:
    """Each verb, in the phases in which it means something and in one in which it does not."""
    told = []

    def give(verb: str, revision: str, what: str, test: Callable[[Object], object], seconds: float = 60) -> Object:
        world.command(NAME, namespace, f"{verb}@{revision}#{verb}-{time.monotonic_ns()}")
        status = world.wait_status(NAME, namespace, f"{what} after {verb}", test, seconds)
        told.append(f"{verb}: {what}")
        return status

    canary = _start(world, namespace, other(kind))
    give("pause", canary, "Paused", lambda one: one.get("phase") == "Paused")
    give("resume", canary, "Progressing", lambda one: one.get("phase") == "Progressing")
    give("promote", canary, "at the next step", lambda one: one.get("weight") == 50)
    give("abort", canary, "back on stable", lambda one: _back(one, stable, any_phase=True))
    give("retry", canary, "at the first step again", lambda one: one.get("weight") == 20, 120)
    give("promote-full", canary, "the new stable", lambda one: _back(one, canary), 120)
    give("abort", canary, "still stable (abort without a rollout does nothing)", lambda one: _answered(one, "abort"))
    give("restart", canary, "restarted", lambda one: _answered(one, "restart") and one.get("phase") == "Stable", 120)
    world.wait_stable(NAME, namespace)
    for revision in _quarantined(world.status(NAME, namespace)):
        give("clear-quarantine", revision, "out of quarantine", partial(_is_free, revision))
    return told


def _start(world: World, namespace: str, kind: str) -> str:
    world.apply(_long(world, namespace, kind))
    status = world.wait_status(NAME, namespace, "at weight 20", lambda one: one.get("weight") == 20, 400)
    return str(status["canary"]["revision"])


def _long(world: World, namespace: str, kind: str) -> Object:
    return world.manifest(NAME, namespace, world.version(kind), rollout__steps=LONG)


def _back(status: Object, revision: str, any_phase: bool = False) -> bool:
    on = (status.get("stable") or {}).get("revision") == revision and not status.get("weight")
    return on and (any_phase or status.get("phase") == "Stable")


def _answered(status: Object, verb: str) -> bool:
    return str((status.get("lastCommand") or {}).get("text", "")).startswith(verb)


def _is_free(revision: str, status: Object) -> bool:
    return revision not in _quarantined(status)


def _quarantined(status: Object) -> list[str]:
    return [one["revision"] for one in status.get("quarantine", [])]
