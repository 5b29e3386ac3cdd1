"""The ten stories, in order."""

from collections.abc import Callable

from e2e.stories import (
    s01_first_deploy,
    s02_promotion,
    s03_slow_version,
    s04_erring_version,
    s05_wrong_models,
    s06_killed_controller,
    s07_prometheus_away,
    s08_verbs,
    s09_single_flight_and_history,
    s10_deletion,
)
from e2e.stories.world import World

STORIES: tuple[tuple[str, Callable[[World], list[str]]], ...] = (
    ("first deploy of a real model", s01_first_deploy.run),
    ("a better version is promoted", s02_promotion.run),
    ("a slow version is rolled back", s03_slow_version.run),
    ("an erring version is rolled back", s04_erring_version.run),
    ("a wrong model never gets traffic", s05_wrong_models.run),
    ("the controller is killed after each write", s06_killed_controller.run),
    ("Prometheus is away", s07_prometheus_away.run),
    ("re-apply, revert, verbs", s08_verbs.run),
    ("single flight and history", s09_single_flight_and_history.run),
    ("deletion", s10_deletion.run),
)
