"""The two questions that are asked about a revision: cumulative counters per pod, as instant vectors.

No rate() and no increase(): both extrapolate; whole counts are subtracted by the reader instead. `max by (pod, …)`
folds the copies that two scrape jobs make of one pod; a sum would count every request twice.
"""

from cuvil_core.contract import ServingMetric


def requests(namespace: str, model: str, revision: str) -> str:
    """Ask for requests by pod and outcome.

    max by (pod, outcome) (cuvil_requests_total{namespace="vision",model="resnet18",revision="3f2a…"})
    """
    return f"max by (pod, outcome) ({ServingMetric.REQUESTS}{_of(namespace, model, revision)})"


def durations(namespace: str, model: str, revision: str) -> str:
    """Ask for answered requests by pod and bucket; the reader picks the bucket of the threshold.

    The bound is not matched in the query: `le` is text, and `0.8`, `0.80` and `8e-01` are one bound in three spellings.
    """
    return f"max by (pod, le) ({ServingMetric.DURATION_BUCKET}{_of(namespace, model, revision)})"


def quoted(value: str) -> str:
    """Give a PromQL string literal."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _of(namespace: str, model: str, revision: str) -> str:
    return f"{{namespace={quoted(namespace)},model={quoted(model)},revision={quoted(revision)}}}"
