"""What Prometheus may answer, and what is made of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from cuvil_operator.promql import PodCounts, SourceState, queries, results

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
T = timedelta(milliseconds=800)


@dataclass(frozen=True)
class One:
    """One series."""

    value: str
    labels: dict[str, str] = field(default_factory=dict)


def outcome(pod: str, name: str, value: str) -> One:
    """Give a counter of one outcome."""
    return One(value, {"pod": pod, "outcome": name})


def bucket(pod: str, le: str, value: str) -> One:
    """Give one bucket."""
    return One(value, {"pod": pod, "le": le})


ERRORS = {
    "an empty vector: never scraped, unknown metric, gone": ([], SourceState.NO_DATA, ()),
    "one series": ([outcome("a", "ok", "7")], SourceState.OK, (PodCounts("a", 7, 0),)),
    "all outcomes; the caller's own faults do not count": (
        [outcome("a", name, str(n)) for name, n in [("ok", 90), ("error", 6), ("rejected", 4), ("client_error", 50)]],
        SourceState.OK,
        (PodCounts("a", 100, 10),),
    ),
    "several pods": (
        [outcome("b", "ok", "3"), outcome("a", "ok", "1"), outcome("a", "error", "1")],
        SourceState.OK,
        (PodCounts("a", 2, 1), PodCounts("b", 3, 0)),
    ),
    "zero requests": ([outcome("a", "ok", "0")], SourceState.OK, (PodCounts("a", 0, 0),)),
    "a number in exponent form": ([outcome("a", "ok", "1e+06")], SourceState.OK, (PodCounts("a", 1_000_000, 0),)),
    "NaN": ([outcome("a", "ok", "NaN")], SourceState.NOT_A_NUMBER, ()),
    "+Inf": ([outcome("a", "ok", "+Inf")], SourceState.NOT_A_NUMBER, ()),
    "-Inf": ([outcome("a", "ok", "-Inf")], SourceState.NOT_A_NUMBER, ()),
    "negative": ([outcome("a", "ok", "-1")], SourceState.NOT_A_NUMBER, ()),
    "a fraction: somebody's rate()": ([outcome("a", "ok", "0.5")], SourceState.NOT_A_NUMBER, ()),
    "too large to count one by one": ([outcome("a", "ok", "1e300")], SourceState.NOT_A_NUMBER, ()),
    "no number at all": ([outcome("a", "ok", "many")], SourceState.MALFORMED, ()),
    "an empty value": ([outcome("a", "ok", "")], SourceState.MALFORMED, ()),
    "no pod label": ([One("1", {"outcome": "ok"})], SourceState.UNUSABLE, ()),
    "no outcome label": ([One("1", {"pod": "a"})], SourceState.UNUSABLE, ()),
    "the same series twice": ([outcome("a", "ok", "1"), outcome("a", "ok", "2")], SourceState.UNUSABLE, ()),
    "one bad series among good ones spoils the reading": (
        [outcome("a", "ok", "1"), outcome("b", "ok", "NaN")],
        SourceState.NOT_A_NUMBER,
        (),
    ),
}


@pytest.mark.parametrize("sentence", ERRORS)
def test_reading_of_requests(sentence: str) -> None:
    """A vector is counted whole or not at all."""
    series, state, pods = ERRORS[sentence]
    told = results.errors("q", series, NOON)
    assert (told.state, told.pods, told.query) == (state, pods, "q")
    assert (told.message == "") is (state is SourceState.OK)


LATENCY = {
    "an empty vector": ([], SourceState.NO_DATA, ()),
    "a quarter slower": (
        [bucket("a", "0.5", "10"), bucket("a", "0.8", "75"), bucket("a", "+Inf", "100")],
        SourceState.OK,
        (PodCounts("a", 100, 25),),
    ),
    "the bound in another spelling": (
        [bucket("a", "8e-01", "75"), bucket("a", "+Inf", "100")],
        SourceState.OK,
        (PodCounts("a", 100, 25),),
    ),
    "no bucket at the threshold": ([bucket("a", "0.5", "1"), bucket("a", "+Inf", "2")], SourceState.UNUSABLE, ()),
    "no +Inf bucket": ([bucket("a", "0.8", "1")], SourceState.UNUSABLE, ()),
    "buckets that fall": ([bucket("a", "0.8", "5"), bucket("a", "+Inf", "2")], SourceState.UNUSABLE, ()),
    "a bound that is no number": ([bucket("a", "fast", "1"), bucket("a", "+Inf", "2")], SourceState.UNUSABLE, ()),
    "a bound that is NaN": ([bucket("a", "NaN", "1"), bucket("a", "+Inf", "2")], SourceState.UNUSABLE, ()),
    "NaN in a bucket": ([bucket("a", "0.8", "NaN"), bucket("a", "+Inf", "2")], SourceState.NOT_A_NUMBER, ()),
}


@pytest.mark.parametrize("sentence", LATENCY)
def test_reading_of_durations(sentence: str) -> None:
    """p95 > T is counted as requests above T: no quantile is interpolated."""
    series, state, pods = LATENCY[sentence]
    told = results.latency("q", series, T, NOON)
    assert (told.state, told.pods) == (state, pods)


def test_queries_ask_for_counters_of_one_revision() -> None:
    """No rate, no sum over copies of a pod; names with quotes cannot break out."""
    assert queries.requests("vision", "m", "abc") == (
        'max by (pod, outcome) (cuvil_requests_total{namespace="vision",model="m",revision="abc"})'
    )
    assert queries.durations("vision", "m", "abc") == (
        'max by (pod, le) (cuvil_request_duration_seconds_bucket{namespace="vision",model="m",revision="abc"})'
    )
    assert queries.quoted('a"b\\c\n') == '"a\\"b\\\\c\\n"'


def test_a_query_without_an_answer() -> None:
    """A failure of the source keeps the query, for the dossier."""
    told = results.failed("q", SourceState.TIMEOUT, "slow", NOON)
    assert (told.query, told.state, told.pods) == ("q", SourceState.TIMEOUT, ())
