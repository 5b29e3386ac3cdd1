"""Judgement of one gate from its evidence: Pass, Fail, NotEnough or Hold.

    Hold       the source gave nothing that can be counted: no word about the canary
    Fail       "the true share is at most the limit" is refuted (decide.bound)
    NotEnough  fewer requests than 1/limit, or more breaches than the limit without a refutation yet
    Pass       enough requests, and the share of breaches is at most the limit

1/limit is the count at which a canary exactly at its limit shows its first breach on average: 200 requests for 0.5 %.
"""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from math import ceil

from cuvil_operator.api import GateStatus
from cuvil_operator.conventions import Gate, Reason
from cuvil_operator.decide import bound
from cuvil_operator.decide.evidence import Evidence
from cuvil_operator.promql import Reading, SourceState

LEAST_WITHOUT_LIMIT = 1000
"""Requests that a gate with limit 0 must see, where 1/limit has no value."""


class Verdict(StrEnum):
    """What one look allows the rollout to do."""

    PASS = "Pass"
    FAIL = "Fail"
    NOT_ENOUGH = "NotEnough"
    HOLD = "Hold"


HOLD_REASONS = {
    SourceState.NO_DATA: Reason.NO_DATA,
    SourceState.UNREACHABLE: Reason.SOURCE_UNREACHABLE,
    SourceState.TIMEOUT: Reason.SOURCE_TIMEOUT,
    SourceState.SERVER_ERROR: Reason.SOURCE_ERROR,
    SourceState.BAD_QUERY: Reason.BAD_QUERY,
    SourceState.MALFORMED: Reason.SOURCE_MALFORMED,
    SourceState.NOT_A_NUMBER: Reason.NOT_A_NUMBER,
    SourceState.UNUSABLE: Reason.UNUSABLE_SERIES,
}

BREACH_REASONS = {Gate.ERROR_RATE: Reason.ERROR_RATE_BREACHED, Gate.LATENCY: Reason.LATENCY_BREACHED}


def reason_of(text: str) -> Reason:
    """Read a reason back from status; one of another version counts as undecided."""
    return Reason(text) if text in set(Reason) else Reason.UNDECIDED


def least_requests(limit: Decimal) -> int:
    """Give the requests without which a gate says NotEnough."""
    return ceil(1 / limit) if limit > 0 else LEAST_WITHOUT_LIMIT


def judge(
    gate: Gate,
    evidence: Evidence,
    reading: Reading,
    limit: Decimal,
    alpha: Decimal,
    threshold: timedelta | None = None,
) -> GateStatus:
    """Give the gate's status; limit: share of breaches allowed; alpha: chance of a false Fail over the rollout."""
    verdict, reason, message = _verdict(gate, evidence, reading, limit, alpha)
    return GateStatus(
        name=gate.value,
        verdict=verdict.value,
        requests=evidence.requests,
        breaches=evidence.breaches,
        limit=f"{limit.normalize():f}",
        bound=f"{bound.lower_bound(evidence.breaches, evidence.requests, float(alpha)):.6f}",
        confidence=f"{alpha.normalize():f}",
        threshold=None if threshold is None else f"{threshold.total_seconds():g}s",
        query=reading.query,
        reason=reason.value,
        message=message,
        counters=evidence.counters,
    )


def _verdict(
    gate: Gate, evidence: Evidence, reading: Reading, limit: Decimal, alpha: Decimal
) -> tuple[Verdict, Reason, str]:
    requests, breaches = evidence.requests, evidence.breaches
    counted = f"{breaches} of {requests} requests {_WORDS[gate]}, {_percent(limit)} allowed"
    if bound.refuted(breaches, requests, float(limit), float(alpha)):
        return Verdict.FAIL, BREACH_REASONS[gate], f"{counted}: the limit is refuted"
    if reading.state is not SourceState.OK:
        return Verdict.HOLD, HOLD_REASONS[reading.state], reading.message or f"no usable samples for {gate.value}"
    if requests < least_requests(limit):
        return Verdict.NOT_ENOUGH, Reason.NOT_ENOUGH_REQUESTS, f"{counted}; {least_requests(limit)} requests are needed"
    if breaches > limit * requests:
        return Verdict.NOT_ENOUGH, Reason.UNDECIDED, f"{counted}: above the limit, not yet refuted"
    return Verdict.PASS, Reason.WITHIN_OBJECTIVES, counted


_WORDS = {Gate.ERROR_RATE: "failed", Gate.LATENCY: "were too slow"}


def _percent(share: Decimal) -> str:
    return f"{(share * 100).normalize():f}%"
