"""A Prometheus that has scraped the pods of ClusterLife a moment ago; its faults are a test's to set."""

import re
from dataclasses import dataclass

from cluster_life import ClusterLife
from cuvil_core.contract import ServingMetric
from cuvil_operator.gateways.protocols import QueryAnswer, QueryFailure, Series, SourceFault


@dataclass(slots=True)
class FakePrometheus:
    """PrometheusGateway over the counters that the pods hold now."""

    life: ClusterLife
    threshold: float = 0.8
    fault: SourceFault | None = None
    """Set: every query fails so."""
    silent: bool = False
    """True: it answers, but knows no such series."""
    asked: int = 0

    async def query(self, expression: str, timeout: float | None = None) -> QueryAnswer | QueryFailure:
        """Answer the two questions of promql.queries."""
        self.asked += 1
        if self.fault is not None:
            return QueryFailure(expression, self.fault, f"Prometheus gave no answer ({self.fault.value})")
        found = re.search(r'revision="([0-9a-f]+)"', expression)
        revision = found[1] if found and not self.silent else ""
        pods = {pod: one for pod, one in sorted(self.life.counters.items()) if one.revision == revision}
        series: list[Series] = []
        for pod, one in pods.items():
            if ServingMetric.DURATION_BUCKET in expression:
                whole = one.ok + one.error
                series += [
                    self._series(whole - one.slow, pod=pod, le=f"{self.threshold:g}"),
                    self._series(whole, pod=pod, le="+Inf"),
                ]
            else:
                series += [
                    self._series(one.ok, pod=pod, outcome="ok"),
                    self._series(one.error, pod=pod, outcome="error"),
                ]
        return QueryAnswer(expression, tuple(series))

    def _series(self, value: int, **labels: str) -> Series:
        return Series(labels, self.life.clock.now().timestamp(), str(value))
