"""The Prometheus gateway: every answer, good or bad, is a value; nothing is repeated; nothing hangs."""

import asyncio
import json
import socket
import threading
import time

import pytest

from cuvil_operator.errors import SettingsError
from cuvil_operator.gateways import prometheus_api
from cuvil_operator.gateways.prometheus_api import ApiPrometheus
from cuvil_operator.gateways.protocols import QueryAnswer, QueryFailure, SourceFault
from scripted_http import Answer, ScriptedServer, scripted_server


def vector(*series: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": list(series)}}).encode()


def ask(script: ScriptedServer, timeout: float | None = None) -> QueryAnswer | QueryFailure:
    return asyncio.run(ApiPrometheus(script.url, 2.0).query('up{pod="a"}', timeout))


def test_a_vector_is_read_as_it_is() -> None:
    """Labels and the value's text come through unchanged, also NaN and +Inf."""
    with scripted_server() as script:
        script.answer = Answer(
            body=vector(
                {"metric": {"pod": "a"}, "value": [1700000000.5, "12"]},
                {"metric": {"pod": "b"}, "value": [1700000000.5, "NaN"]},
                {"metric": {"pod": "c"}, "value": [1700000000.5, "+Inf"]},
            )
        )
        answer = ask(script, timeout=1.5)
    assert isinstance(answer, QueryAnswer)
    assert [(one.labels["pod"], one.value, one.time) for one in answer.series] == [
        ("a", "12", 1700000000.5),
        ("b", "NaN", 1700000000.5),
        ("c", "+Inf", 1700000000.5),
    ]
    assert script.asked[0].path == "/api/v1/query?query=up%7Bpod%3D%22a%22%7D&timeout=1500ms"


def test_an_empty_vector_is_an_answer() -> None:
    """No series is no failure: what it means is decided elsewhere."""
    with scripted_server() as script:
        script.answer = Answer(body=vector())
        answer = ask(script)
    assert isinstance(answer, QueryAnswer) and answer.series == ()


FAULTS = {
    "500 is the server's fault": (Answer(500, b"boom"), SourceFault.SERVER_ERROR),
    "503 is the server's fault": (Answer(503, b"{}"), SourceFault.SERVER_ERROR),
    "429 passes": (Answer(429, b"slow down"), SourceFault.SERVER_ERROR),
    "400 is a bad query": (Answer(400, b'{"status":"error","error":"parse error"}'), SourceFault.BAD_QUERY),
    "401 does not mend itself": (Answer(401, b"who are you"), SourceFault.BAD_QUERY),
    "404 is a wrong address": (Answer(404, b"not found"), SourceFault.BAD_QUERY),
    "a redirect is not followed": (Answer(302, b"", {"Location": "http://127.0.0.1:9/"}), SourceFault.BAD_QUERY),
    "no JSON": (Answer(200, b"<html>"), SourceFault.MALFORMED),
    "an empty body": (Answer(200, b""), SourceFault.MALFORMED),
    "JSON of another shape": (Answer(200, b'{"data": {}}'), SourceFault.MALFORMED),
    "a list": (Answer(200, b"[]"), SourceFault.MALFORMED),
    "null": (Answer(200, b"null"), SourceFault.MALFORMED),
    "a scalar result": (Answer(200, b'{"data":{"result":[1700000000,"1"]}}'), SourceFault.MALFORMED),
    "a range result": (Answer(200, b'{"data":{"result":[{"metric":{},"values":[]}]}}'), SourceFault.MALFORMED),
    "a number as value": (Answer(200, vector({"metric": {}, "value": [1, 2]})), SourceFault.MALFORMED),
    "a text as time": (Answer(200, vector({"metric": {}, "value": ["now", "1"]})), SourceFault.MALFORMED),
}


@pytest.mark.parametrize(("answer", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_a_bad_answer_is_a_typed_failure(answer: Answer, fault: SourceFault) -> None:
    """Each bad answer has its fault, is asked for once, and gives one sentence."""
    with scripted_server() as script:
        script.answer = answer
        said = ask(script)
        assert len(script.asked) == 1
    assert isinstance(said, QueryFailure) and said.fault is fault
    assert said.message and "\n" not in said.message


def test_a_refusal_is_quoted() -> None:
    """The server's own words on a bad query reach the reader."""
    with scripted_server() as script:
        script.answer = Answer(400, b'{"status":"error","error":"unknown function"}')
        said = ask(script)
    assert isinstance(said, QueryFailure) and "unknown function" in said.message


def test_a_server_that_is_silent_times_out() -> None:
    """A hanging server costs the timeout, not more."""
    with scripted_server() as script:
        script.answer = Answer(hang=threading.Event())
        started = time.monotonic()
        said = ask(script, timeout=0.2)
        assert script.answer.hang is not None
        script.answer.hang.set()
    assert isinstance(said, QueryFailure) and said.fault is SourceFault.TIMEOUT
    assert time.monotonic() - started < 2


def test_a_server_that_is_away_is_unreachable() -> None:
    """A refused connection is its own fault and names no address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://user:secret@127.0.0.1:{taken.getsockname()[1]}"
        said = asyncio.run(ApiPrometheus(url, 2.0).query("up"))
    assert isinstance(said, QueryFailure) and said.fault is SourceFault.UNREACHABLE
    assert "secret" not in said.message


def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer beyond the bound is malformed, and not read to its end."""
    monkeypatch.setattr(prometheus_api, "MOST_BYTES", 1000)
    with scripted_server() as script:
        script.answer = Answer(body=b" " * 200_000)
        said = ask(script)
    assert isinstance(said, QueryFailure) and said.fault is SourceFault.MALFORMED


@pytest.mark.parametrize("url", ["", "prometheus:9090", "ftp://p:9090", "http://", "http://p:notaport", "http://p:0"])
def test_an_address_that_is_none_is_refused_at_the_start(url: str) -> None:
    """A malformed address is one sentence with the cure, before any query."""
    with pytest.raises(SettingsError, match="give something like http"):
        ApiPrometheus(url, 2.0)
