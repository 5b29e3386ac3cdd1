"""Story 3: a version with too little CPU passes the single-stream gate and breaches p95 under concurrent load."""

from e2e.stories import replay
from e2e.stories.access import wait
from e2e.stories.rollbacks import NAME, Bad, play
from e2e.stories.timeline import Played
from e2e.stories.world import LATENCY_SECONDS, STAGE, World, other

RATE = 20.0
BATCH = 8
"""Pictures a request: enough work that the CPU decides, not the protocol."""
SHARE = 0.5
"""Of the traffic at the last step."""
STARVED = 0.6
"""Of the CPU that this share needs."""
LEAST_CPU = 0.06
"""Cores; with less the proof before any traffic would take too long."""


def run(world: World) -> list[str]:
    """Play the story; gives the facts to print."""
    return played(world).facts


def played(world: World, namespace: str = STAGE, timed: bool = True) -> Played:
    """Measure what a request costs, then apply a version with less CPU than its share of the load needs."""
    kind, stable = world.steady(NAME, namespace)
    load = world.load(NAME, namespace, rate=RATE, concurrency=64, batch=BATCH)
    cost = wait("the CPU time of a request", lambda: cost_of_request(world, namespace, stable), 90, every=2)
    cores = max(LEAST_CPU, STARVED * SHARE * RATE * cost)
    world.say(f"  a request takes {1000 * cost:.0f} ms of CPU; the new version gets {1000 * cores:.0f}m")
    load.stop()
    resources = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": f"{1000 * cores:.0f}m"}}
    slow = Bad(
        version=other(kind),
        gate="latency",
        limit=0.05,
        counts=lambda world, picked, window: replay.latency_counts(world.prometheus, picked, LATENCY_SECONDS, window),
        changes={"serving__resources": resources},
        rate=RATE,
        batch=BATCH,
        timed=timed,
    )
    return play(world, namespace, slow, stable)


def cost_of_request(world: World, namespace: str, revision: str) -> float | None:
    """Give the CPU seconds of one request of a revision over the last 20 s; None until there are enough."""
    pods = f'namespace="{namespace}",pod=~"{NAME}-{revision}-.*"'
    spent = world.prometheus.number(f"sum(increase(process_cpu_seconds_total{{{pods}}}[20s]))")
    answered = world.prometheus.number(f"sum(increase(cuvil_requests_total{{{pods}}}[20s]))")
    return spent / answered if spent and answered and answered > 0.7 * 20 * RATE else None
