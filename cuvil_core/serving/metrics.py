"""What a serving pod counts, under the contract's names."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from cuvil_core.contract import RequestOutcome, ServingMetric, ServingSettings

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds."""


class Metrics:
    """The counters of one revision, present from the start so that rates are never without a first sample."""

    def __init__(self, settings: ServingSettings) -> None:
        """Label everything with the model and its revision."""
        # The function has no annotations in its library; it only sets a switch of the process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        own = ("model", "revision")
        values = (settings.model, settings.revision)
        requests = Counter(
            ServingMetric.REQUESTS, "Inference requests answered.", (*own, "outcome"), registry=self.registry
        )
        duration = Histogram(
            ServingMetric.DURATION,
            "From the request's headers to its answer; outcomes ok and error.",
            own,
            buckets=tuple(sorted({*BUCKETS, settings.threshold_seconds})),
            registry=self.registry,
        )
        queue = Gauge(ServingMetric.QUEUE_LENGTH, "Requests that wait for the model.", own, registry=self.registry)
        strange = Counter(ServingMetric.NON_FINITE, "Requests with NaN or Inf.", own, registry=self.registry)
        self._requests = {outcome: requests.labels(*values, outcome) for outcome in RequestOutcome}
        self._duration = duration.labels(*values)
        self.queue = queue.labels(*values)
        self.nonfinite = strange.labels(*values)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def count(self, outcome: RequestOutcome, seconds: float) -> None:
        """Count an answered request; only ok and error have a duration, since only they ran the model."""
        self._requests[outcome].inc()
        if outcome in (RequestOutcome.OK, RequestOutcome.ERROR):
            self._duration.observe(seconds)

    def exposition(self) -> tuple[bytes, str]:
        """Give the metrics' text and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
