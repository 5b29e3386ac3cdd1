"""Seeded storms: nothing that users, clusters and kills do in any order breaks an invariant or leaves a model stuck."""

import pytest

from storm import Storm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", range(8))
def test_a_storm_ends_in_calm(seed: int) -> None:
    """Spec changes, orders, blind Prometheus, lost pods and kills: the model ends at rest, and clean."""
    Storm(seed, routed=seed % 2 == 0).run()
