"""Two questions to Prometheus about one revision → Samples."""

import asyncio
from datetime import timedelta

from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.facts import ModelKey, Samples
from cuvil_operator.gateways.protocols import Clock, PrometheusGateway, QueryAnswer, QueryFailure
from cuvil_operator.promql import Reading, SourceState, queries, results


async def read_samples(
    prometheus: PrometheusGateway, clock: Clock, key: ModelKey, revision: str, spec: CuvilModelSpec
) -> Samples:
    """Ask both at once; a source that fails is a Reading that says so, never an error."""
    errors, latency = await asyncio.gather(
        prometheus.query(queries.requests(key.namespace, key.name, revision)),
        prometheus.query(queries.durations(key.namespace, key.name, revision)),
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
