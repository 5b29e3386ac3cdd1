"""Two questions to Prometheus about one revision → Samples."""

import asyncio
from datetime import datetime, timedelta

from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus
from cuvil_operator.facts import ModelKey, Samples
from cuvil_operator.gateways.protocols import Clock, PrometheusGateway, QueryAnswer, QueryFailure
from cuvil_operator.promql import Reading, SourceState, queries, results

MARGIN = timedelta(seconds=1)
"""A look is made up to half a second early; asking is allowed a little earlier than that."""


def is_due(status: CuvilModelStatus, spec: CuvilModelSpec, now: datetime) -> bool:
    """True where a decision at `now` may rest on new samples: a canary, no rollback, an interval after the last look.

    Other turns do not ask, so a Prometheus that hangs cannot slow down pods, weights or a rollback.
    """
    if status.canary is None or (status.rollback is not None and status.rollback.finished_at is None):
        return False
    last = status.analysis
    if last is None or last.revision != status.canary.revision:
        return True
    return now - last.at >= spec.rollout.analysis.interval - MARGIN


async def read_samples(
    prometheus: PrometheusGateway, clock: Clock, key: ModelKey, revision: str, spec: CuvilModelSpec
) -> Samples:
    """Ask both at once; a source that fails is a Reading that says so, never an error.

    Half an interval is all the time they get: a source that hangs must not make the next look late.
    """
    limit = spec.rollout.analysis.interval.total_seconds() / 2
    errors, latency = await asyncio.gather(
        prometheus.query(queries.requests(key.namespace, key.name, revision), limit),
        prometheus.query(queries.durations(key.namespace, key.name, revision), limit),
    )
    threshold = spec.slo.latency.threshold
    return Samples(_errors(errors, clock), _latency(latency, threshold, clock))


def _errors(answer: QueryAnswer | QueryFailure, clock: Clock) -> Reading:
    if isinstance(answer, QueryFailure):
        return _failed(answer, clock)
    return results.errors(answer.query, answer.series, clock.now())


def _latency(answer: QueryAnswer | QueryFailure, threshold: timedelta, clock: Clock) -> Reading:
    if isinstance(answer, QueryFailure):
        return _failed(answer, clock)
    return results.latency(answer.query, answer.series, threshold, clock.now())


def _failed(answer: QueryFailure, clock: Clock) -> Reading:
    return results.failed(answer.query, SourceState(answer.fault.value), answer.message, clock.now())
