"""The controller's own metrics, as objects to be set; served by gateways.probe_server."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from cuvil_operator.conventions import Metric

RECONCILE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
DETECTION_BUCKETS = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600)


class Metrics:
    """One registry of its own, so that several controllers of one process (tests) do not meet."""

    def __init__(self, version: str = "") -> None:
        self.registry = CollectorRegistry()
        self.reconcile = Histogram(
            Metric.RECONCILE,
            "Time of one turn of one CuvilModel.",
            ["outcome"],
            buckets=RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self.writes = Counter(
            Metric.WRITES,
            "Writes to the Kubernetes API.",
            ["kind", "verb", "result"],
            registry=self.registry,
        )
        self.queue_depth = Gauge(Metric.QUEUE_DEPTH, "CuvilModels that wait for a worker.", registry=self.registry)
        self.rollouts = Counter(
            Metric.ROLLOUTS,
            "Rollouts that ended.",
            ["namespace", "model", "outcome"],
            registry=self.registry,
        )
        self.rollbacks = Counter(
            Metric.ROLLBACKS,
            "Rollbacks by reason.",
            ["namespace", "model", "reason"],
            registry=self.registry,
        )
        self.detection = Histogram(
            Metric.DETECTION,
            "From the samples that crossed the bound to weight 0.",
            buckets=DETECTION_BUCKETS,
            registry=self.registry,
        )
        self.weight = Gauge(
            Metric.MODEL_WEIGHT,
            "Actual share of the traffic, percent.",
            ["namespace", "model", "revision", "role"],
            registry=self.registry,
        )
        self.phase = Gauge(
            Metric.MODEL_PHASE, "1 for the present phase.", ["namespace", "model", "phase"], registry=self.registry
        )
        self.quarantined = Gauge(
            Metric.MODEL_QUARANTINED,
            "1 while the revision is quarantined.",
            ["namespace", "model", "revision", "reason"],
            registry=self.registry,
        )
        self.leader = Gauge(Metric.LEADER, "1 while this process holds the Lease.", registry=self.registry)
        self.watch_lag = Gauge(
            Metric.WATCH_LAG,
            "Age of the oldest change that a watch has not told.",
            ["resource"],
            registry=self.registry,
        )
        Info(Metric.INFO.removesuffix("_info"), "Version of the controller.", registry=self.registry).info(
            {"version": version}
        )

    def count_write(self, kind: str, verb: str, done: bool) -> None:
        """Count one write to the API server: the gateway's meter."""
        self.writes.labels(kind, verb, "ok" if done else "failed").inc()
