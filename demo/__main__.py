"""`python -m demo [--context NAME]`: sets a cluster up and plays four rollouts of a real model."""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from demo.report import Chapter, write
from e2e.stories import s01_first_deploy, s02_promotion, s03_slow_version, s04_erring_version
from e2e.stories.setup import SetupError, prepare
from e2e.stories.telling import last_words, tell
from e2e.stories.timeline import Played, plots
from e2e.stories.world import World

REPORT = Path(__file__).with_name("report.html")


def main() -> int:
    """Play the four stories; 0 when each went as expected."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--context", help="a context of your kubeconfig instead of the embedded cluster")
    chosen = parser.parse_args()
    try:
        world = prepare(chosen.context)
    except SetupError as fault:
        print(f"demo: {fault}", file=sys.stderr)
        return 1
    chapters: list[Chapter] = []
    good = tell(
        _stories(world, chapters),
        "demo",
        before_last=lambda: _farewell(world, chapters),
        on_fault=partial(last_words, world.access),
    )
    return 0 if good else 1


def _stories(world: World, chapters: list[Chapter]) -> list[tuple[int, str, Callable[[], list[str]]]]:
    def first() -> list[str]:
        facts = s01_first_deploy.run(world)
        chapters.append(Chapter("1. A real model is deployed", facts))
        return facts

    def rollout(title: str, play: Callable[[World], Played]) -> Callable[[], list[str]]:
        def run() -> list[str]:
            done = play(world)
            series = plots(done.timeline, world.prometheus, done.revision, time.time())
            chapters.append(Chapter(title, done.facts, done, series))
            return done.facts

        return run

    return [
        (1, "a real model is compiled, proved and served", first),
        (2, "a better version is promoted", rollout("2. A better version is promoted", s02_promotion.played)),
        (3, "a slow version is rolled back", rollout("3. A slow version is rolled back", s03_slow_version.played)),
        (
            4,
            "an erring version is rolled back",
            rollout("4. An erring version is rolled back", s04_erring_version.played),
        ),
    ]


def _farewell(world: World, chapters: list[Chapter]) -> None:
    write(REPORT, chapters)
    print(f"\nreport      {REPORT}")
    for line in world.directions:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
