"""How many pods of each revision make a share of the traffic.

With a gateway the route splits, so stable keeps its whole need R and the canary gets its share of R, rounded up:

    canary = max(1, ceil(R · w / 100))                       R = 4, w = 25: 4 + 1

By pod count behind one Service the share is canary / (stable + canary), so with w ≤ 50 stable stays whole and

    canary = max(1, floor(R · w / (100 − w)))                R = 4, w = 25: 4 + 1 = 20 %

and with w > 50 the canary is whole and stable shrinks, never under its need R · (100 − w) / 100:

    stable = max(1, ceil(R · (100 − w) / w))                 R = 4, w = 75: 2 + 4 = 67 %

Rounding never gives the canary more than asked, but for its one pod that must be.
"""

from dataclasses import dataclass

from cuvil_operator.api import Step


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of each revision."""

    stable: int
    canary: int

    @property
    def share(self) -> int:
        """The canary's share of the pods, percent, rounded half up, within 1…99 where both have pods."""
        whole = self.stable + self.canary
        return max(1, min(99, (200 * self.canary + whole) // (2 * whole)))


def by_gateway(replicas: int, weight: int) -> Pods:
    """Give the pods for `weight` percent of the traffic where a route splits; 100 means the canary is whole."""
    return Pods(replicas, max(1, -(-replicas * weight // 100)))


def by_pod_count(replicas: int, weight: int) -> Pods:
    """Give the pods whose share comes nearest to `weight` from below; at 100 both are whole until the switch."""
    if weight >= 100:
        return Pods(replicas, replicas)
    if weight <= 50:
        return Pods(replicas, max(1, replicas * weight // (100 - weight)))
    return Pods(max(1, -(-replicas * (100 - weight) // weight)), replicas)


def unreachable(replicas: int, steps: tuple[Step, ...]) -> Step | None:
    """Give the first step that pod counts would exceed more than twofold."""
    return next((step for step in steps if by_pod_count(replicas, step.weight).share > 2 * step.weight), None)
