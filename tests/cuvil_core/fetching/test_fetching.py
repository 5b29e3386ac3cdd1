"""Fetching and pushing against real servers on loopback: right bytes, or the right error and no file."""

import base64
import json
import os
import socket
from hashlib import sha256
from pathlib import Path

import pytest

import handmade
import web_server
from cuvil_core.errors import ArtifactError, DigestError, InfrastructureError, InputError, MissingError, SizeError
from cuvil_core.fetching import fetch, pull_artifact, push_artifact, push_model, resolve
from cuvil_core.fetching import fetch as fetch_function
from cuvil_core.fetching.credentials import Credentials, for_registry
from cuvil_core.fetching.reference import parse, parse_repository

DATA = os.urandom(3_000_000)
DIGEST = sha256(DATA).hexdigest()
LIMIT = 4_000_000


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Retries do not wait; no credentials of the machine are read."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker"))
    for name in ("CUVIL_ALLOWED_HOSTS", "CUVIL_CREDENTIALS_DIR", "CUVIL_REGISTRY_CREDENTIALS_DIR", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def page(handler: web_server.Handler) -> None:
    """Pages by path."""
    match handler.path.split("?")[0]:
        case "/ok.onnx":
            web_server.answer(handler, 200, DATA)
        case "/moved":
            web_server.answer(handler, 302, Location="/ok.onnx")
        case "/loop":
            web_server.answer(handler, 302, Location="/loop")
        case "/away":
            web_server.answer(handler, 302, Location="ftp://127.0.0.1/x")
        case "/short":
            web_server.answer(handler, 200, DATA[:100], Content_Length=str(len(DATA)))
            handler.close_connection = True
        case "/busy":
            web_server.answer(handler, 503)
        case "/secret":
            web_server.answer(handler, 200 if handler.headers.get("Authorization") == "Bearer t0ken" else 401, DATA)
        case "/chunked":
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for _ in range(6):
                handler.wfile.write(b"f4240\r\n" + bytes(1_000_000) + b"\r\n")
            handler.wfile.write(b"0\r\n\r\n")
        case _:
            web_server.answer(handler, 404)


def test_download(tmp_path: Path) -> None:
    """The bytes come, with and without digest, over a redirect too; resolve gives digest, size and format."""
    with web_server.serving(page) as host:
        for path in ("ok.onnx", "moved"):
            got = fetch(f"http://{host}/{path}", tmp_path / "m", max_bytes=LIMIT, sha256=DIGEST)
            assert (got.sha256, got.size, got.path.read_bytes()) == (DIGEST, len(DATA), DATA)
        found = resolve(f"http://{host}/ok.onnx", max_bytes=LIMIT)
        assert (found.sha256, found.size, found.format) == (DIGEST, len(DATA), "onnx")
    assert [one.name for one in tmp_path.iterdir()] == ["m"]


FAULTS = {
    "missing": ("/none", MissingError, "answers 404"),
    "loop": ("/loop", MissingError, "redirected more than"),
    "unsafe redirect": ("/away", MissingError, "not as safe"),
    "truncated": ("/short", InfrastructureError, "cannot be read|ended after"),
    "busy": ("/busy", InfrastructureError, "answers 503"),
    "secret": ("/secret", MissingError, "pass credentials"),
    "unannounced size": ("/chunked", SizeError, "larger than the allowed"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_download_faults(tmp_path: Path, case: str) -> None:
    """Each fault of a server is its own error, and leaves no file."""
    path, error, sentence = FAULTS[case]
    with web_server.serving(page) as host, pytest.raises(error, match=sentence):
        fetch(f"http://{host}{path}", tmp_path / "m", max_bytes=LIMIT)
    assert not list(tmp_path.iterdir())


def test_digest_and_size_bounds(tmp_path: Path) -> None:
    """Another digest is a DigestError, an announced size over the bound a SizeError; neither leaves a file."""
    with web_server.serving(page) as host:
        with pytest.raises(DigestError, match="wanted 0000"):
            fetch(f"http://{host}/ok.onnx", tmp_path / "m", max_bytes=LIMIT, sha256="00" * 32)
        with pytest.raises(SizeError):
            fetch(f"http://{host}/ok.onnx", tmp_path / "m", max_bytes=10)
    assert not list(tmp_path.iterdir())


def test_transient_failures_are_tried_again(tmp_path: Path) -> None:
    """Two 503 and a cut connection before the answer do not fail the download."""
    tries = []

    def moody(handler: web_server.Handler) -> None:
        tries.append(handler.path)
        if len(tries) <= 2:
            web_server.answer(handler, 503)
        elif len(tries) == 3:
            page_at(handler, "/short")
        else:
            page_at(handler, "/ok.onnx")

    def page_at(handler: web_server.Handler, path: str) -> None:
        handler.path = path
        page(handler)

    with web_server.serving(moody) as host:
        assert fetch(f"http://{host}/x", tmp_path / "m", max_bytes=LIMIT).sha256 == DIGEST


def test_unreachable_server(tmp_path: Path) -> None:
    """A closed port is an InfrastructureError that names the URL without its query."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InfrastructureError, match=f"127.0.0.1:{port}/x cannot be read") as caught:
        fetch(f"http://127.0.0.1:{port}/x?key=hidden", tmp_path / "m", max_bytes=1)
    assert "hidden" not in str(caught.value)


def test_credentials_come_from_files_and_stay_with_their_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token file opens the page; a redirect to another host does not carry it; a URI with a user is refused."""
    (tmp_path / "token").write_text("t0ken\n")
    monkeypatch.setenv("CUVIL_CREDENTIALS_DIR", str(tmp_path))
    heard: list[str | None] = []

    def listen(handler: web_server.Handler) -> None:
        heard.append(handler.headers.get("Authorization"))
        web_server.answer(handler, 200, DATA)

    with web_server.serving(page) as host, web_server.serving(listen) as other:
        assert fetch(f"http://{host}/secret", tmp_path / "m", max_bytes=LIMIT).sha256 == DIGEST

        def lead(handler: web_server.Handler) -> None:
            web_server.answer(handler, 307, Location=f"http://{other}/x")

        with web_server.serving(lead) as leader:
            fetch(f"http://{leader}/", tmp_path / "m", max_bytes=LIMIT)
        with pytest.raises(InputError, match="put credentials into a Secret") as caught:
            fetch(f"http://me:word@{host}/secret", tmp_path / "m", max_bytes=LIMIT)
    assert heard == [None]
    assert "word" not in str(caught.value)
    assert "word" not in repr(Credentials("me", "word", "t"))


def test_allowed_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only hosts of the list are asked, also behind a redirect; patterns match."""
    with web_server.serving(page) as host:
        monkeypatch.setenv("CUVIL_ALLOWED_HOSTS", "models.example.com, *.example.org")
        with pytest.raises(MissingError, match="not among the allowed hosts"):
            fetch(f"http://{host}/ok.onnx", tmp_path / "m", max_bytes=LIMIT)
        monkeypatch.setenv("CUVIL_ALLOWED_HOSTS", "127.0.*")
        assert fetch(f"http://{host}/ok.onnx", tmp_path / "m", max_bytes=LIMIT).size == len(DATA)

        def lead(handler: web_server.Handler) -> None:
            web_server.answer(handler, 302, Location="http://localhost:1/x")

        with web_server.serving(lead) as leader, pytest.raises(MissingError, match="host localhost"):
            fetch(f"http://{leader}/", tmp_path / "m", max_bytes=LIMIT)


def test_files(tmp_path: Path) -> None:
    """A file URI is copied, spaces and all; a missing file or a folder is missing, what is no URI a wrong input."""
    (tmp_path / "a model.onnx").write_bytes(DATA)
    got = fetch(f"file://{tmp_path}/a%20model.onnx", tmp_path / "out" / "m", max_bytes=LIMIT)
    assert got.path.read_bytes() == DATA
    for uri in (f"file://{tmp_path}/none", f"file://{tmp_path}"):
        with pytest.raises(MissingError):
            fetch(uri, tmp_path / "never", max_bytes=LIMIT)
    for uri in ("file://elsewhere/x", "s3://b/k", "model.onnx"):
        with pytest.raises(InputError, match=r"write file:///path|use one of file"):
            fetch(uri, tmp_path / "never", max_bytes=LIMIT)
    assert not (tmp_path / "never").exists()


NO_URL = {
    "http://[::1": "names no host or port",
    "http://localhost:99999/m": "a port up to 65535",
    "http://localhost:port/m": "names no host or port",
    "http:///m": "names no host",
    "http://h.io/a model.onnx": "percent-encoded",
    "http://h.io/modèle.onnx": "percent-encoded",
    "": "has no scheme",
    "https://me:word@h.io/m": "user's name",
    "https://me:w/word@h.io/m": "names no host or port",
    "https://me:w?word@h.io/m": "names no host or port",
    "oci://me:word@h.io/m": "user's name",
    "oci://h.io:99999/m": "a port up to 65535",
    "s3://me:word@bucket/m": "user's name",
    "file://me:word@h.io/m": "user's name",
    "me:word@h.io/m": "has no scheme",
}


@pytest.mark.parametrize("uri", NO_URL)
def test_what_is_no_url_is_the_callers_mistake(tmp_path: Path, uri: str) -> None:
    """It is refused before anything is asked, and no password is told."""
    for call in (lambda: fetch(uri, tmp_path / "m", max_bytes=LIMIT), lambda: resolve(uri, max_bytes=LIMIT)):
        with pytest.raises(InputError, match=NO_URL[uri]) as caught:
            call()
        assert "word" not in str(caught.value)


@pytest.mark.parametrize("place", ["http://[::1", "http://localhost:99999/", "http://localhost:port/"])
def test_a_redirect_to_no_url(tmp_path: Path, place: str) -> None:
    """A server that leads to what is no URL makes the URI wrong."""

    def lead(handler: web_server.Handler) -> None:
        web_server.answer(handler, 302, Location=place)

    with web_server.serving(lead) as host, pytest.raises(MissingError, match="no URL; correct the URI"):
        fetch(f"http://{host}/", tmp_path / "m", max_bytes=LIMIT)


def test_a_destination_that_is_no_file(tmp_path: Path) -> None:
    """A pipe is not replaced by what is fetched."""
    os.mkfifo(tmp_path / "pipe")
    with web_server.serving(page) as host, pytest.raises(InputError, match="name a plain file"):
        fetch(f"http://{host}/ok.onnx", tmp_path / "pipe", max_bytes=LIMIT)
    assert not (tmp_path / "pipe").is_file()


def test_full_disk_is_infrastructure() -> None:
    """A destination that refuses bytes is an InfrastructureError."""
    with web_server.serving(page) as host, pytest.raises(InfrastructureError, match="cannot write"):
        fetch(f"http://{host}/ok.onnx", Path("/proc/cuvil/m"), max_bytes=LIMIT)


def test_artifact_round_trip_through_a_registry(tmp_path: Path) -> None:
    """A pushed artifact is pulled by its reference; its config is the manifest; pushing again gives the same name."""
    path = tmp_path / "a.cuvil"
    path.write_bytes(handmade.artifact())
    registry = web_server.MemoryRegistry()
    with web_server.serving(registry.page) as host:
        stored = push_artifact(path, f"{host}/a/b:v1")
        path.rename(tmp_path / "other.cuvil")
        assert push_artifact(tmp_path / "other.cuvil", f"{host}/a/b") == stored
        got = pull_artifact(stored.reference, tmp_path / "p", sha256=stored.sha256, max_bytes=LIMIT)
        assert (tmp_path / "p").read_bytes() == handmade.artifact() and got.size == stored.size
        assert pull_artifact(f"oci://{host}/a/b:v1", tmp_path / "q", sha256=None, max_bytes=LIMIT) == got
    manifest = json.loads(registry.manifests["v1"])
    assert manifest["artifactType"] == "application/vnd.cuvil.artifact.v1"
    assert manifest["layers"][0]["mediaType"] == "application/vnd.cuvil.artifact.v1+octets"
    assert b'"handmade"' in registry.blobs[manifest["config"]["digest"]]
    assert sum(line.startswith("PUT /v2/a/b/manifests") for line in registry.seen) == 3
    assert sum(line.startswith("POST") for line in registry.seen) == 2


def test_registry_faults(tmp_path: Path) -> None:
    """Altered blobs and manifests, wrong digests, missing tags, oversize and indexes each have their error."""
    path = tmp_path / "a.cuvil"
    path.write_bytes(handmade.artifact())
    registry = web_server.MemoryRegistry()
    with web_server.serving(registry.page) as host:
        stored = push_artifact(path, f"{host}/a/b")
        with pytest.raises(DigestError, match="wanted sha256:00"):
            pull_artifact(stored.reference, tmp_path / "p", sha256="00" * 32, max_bytes=LIMIT)
        with pytest.raises(SizeError):
            pull_artifact(stored.reference, tmp_path / "p", sha256=None, max_bytes=100)
        with pytest.raises(MissingError, match="answers 404"):
            pull_artifact(f"{host}/a/b:nope", tmp_path / "p", sha256=None, max_bytes=LIMIT)
        registry.manifests["index"] = b'{"manifests": []}'
        with pytest.raises(MissingError, match="an index"):
            pull_artifact(f"{host}/a/b:index", tmp_path / "p", sha256=None, max_bytes=LIMIT)
        blob = f"sha256:{stored.sha256}"
        registry.blobs[blob] = registry.blobs[blob][:-1] + b"!"
        with pytest.raises(DigestError):
            pull_artifact(stored.reference, tmp_path / "p", sha256=None, max_bytes=LIMIT)
        del registry.blobs[blob]
        with pytest.raises(MissingError):
            pull_artifact(stored.reference, tmp_path / "p", sha256=None, max_bytes=LIMIT)
        own = stored.reference.partition("@")[2]
        registry.manifests[own] = registry.manifests[own] + b" "
        with pytest.raises(DigestError, match="registry is broken"):
            pull_artifact(stored.reference, tmp_path / "p", sha256=None, max_bytes=LIMIT)
        path.write_bytes(b"no artifact")
        with pytest.raises(ArtifactError):
            push_artifact(path, f"{host}/a/b")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("basic", [False, True])
def test_registry_with_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, basic: bool) -> None:
    """Token and basic authentication with the mounted docker config; without it the registry says no."""
    path = tmp_path / "a.cuvil"
    path.write_bytes(handmade.artifact())
    registry = web_server.MemoryRegistry(password="hush", basic=basic)
    with web_server.serving(registry.page) as host:
        with pytest.raises(MissingError, match="answers 401") as caught:
            push_artifact(path, f"{host}/a/b")
        assert "hush" not in str(caught.value)
        auth = base64.b64encode(b"robot:hush").decode()
        (tmp_path / ".dockerconfigjson").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        monkeypatch.setenv("CUVIL_REGISTRY_CREDENTIALS_DIR", str(tmp_path))
        stored = push_artifact(path, f"{host}/a/b")
        pull_artifact(stored.reference, tmp_path / "p", sha256=stored.sha256, max_bytes=LIMIT)
    assert (tmp_path / "p").read_bytes() == handmade.artifact()


def test_docker_config_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and password, the auth text and the hub's URL keys are understood; nonsense is an InputError without it."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"auths": {"https://h.io/v1/": {"username": "u", "password": "p"}}}))
    assert for_registry("h.io") == Credentials("u", "p")
    assert for_registry("other.io") == Credentials()
    for broken in ('{"auths": {"h.io": {"auth": "!!"}}}', "{", '{"auths": {"h.io": 3}}'):
        config.write_text(broken)
        with pytest.raises(InputError, match="no docker config file"):
            for_registry("h.io")


def test_models_in_a_registry(tmp_path: Path) -> None:
    """A pushed model resolves to the file's own digest without download, and is fetched by it."""
    (tmp_path / "m.onnx").write_bytes(DATA)
    registry = web_server.MemoryRegistry()
    with web_server.serving(registry.page) as host:
        reference = push_model(tmp_path / "m.onnx", f"{host}/a/m:1")
        registry.seen.clear()
        found = resolve(f"oci://{reference}", max_bytes=LIMIT)
        assert (found.sha256, found.size, found.format) == (DIGEST, len(DATA), "onnx")
        assert not any(line.startswith("GET /v2/a/m/blobs") for line in registry.seen)
        got = fetch_function(f"oci://{host}/a/m:1", tmp_path / "got", max_bytes=LIMIT, sha256=DIGEST)
        assert got.path.read_bytes() == DATA
        with pytest.raises(DigestError):
            resolve(f"oci://{reference}", max_bytes=LIMIT, sha256="00" * 32)
        with pytest.raises(SizeError):
            resolve(f"oci://{reference}", max_bytes=5)


def test_references() -> None:
    """Hosts with ports, deep repositories, tags and digests are read; everything else is refused."""
    digest = "sha256:" + "a" * 64
    assert str(parse("oci://reg.io:5000/a/b-c/d:v1")) == "reg.io:5000/a/b-c/d:v1"
    assert str(parse(f"reg.io/a:tag@{digest}")) == f"reg.io/a@{digest}"
    assert parse("localhost:5000/a").name == "latest"
    for bad in (
        "",
        "a",
        "reg.io/",
        "reg.io/A",
        "reg.io/a@sha256:12",
        "reg.io/../a",
        "reg.io/a b",
        "u@h/a",
        "h/a:" + "x" * 200,
    ):
        with pytest.raises(InputError, match="no reference"):
            parse(bad)
        with pytest.raises(InputError, match=r"write HOST/REPOSITORY or HOST/REPOSITORY:TAG"):
            parse_repository(bad)


def test_references_tell_no_password() -> None:
    """A user's name in a reference is refused without being told; a port beyond the last is named."""
    for bad in ("me:word@h.io/a", "oci://me:wo/word@h.io/a", f"me:word@h.io/a@sha256:{'a' * 64}"):
        for read in (parse, parse_repository):
            with pytest.raises(InputError, match=r"credentials|no repository") as caught:
                read(bad)
            assert "word" not in str(caught.value)
    with pytest.raises(InputError, match="beyond 65535"):
        parse("h.io:65536/a")
    assert parse("[::1]:5000/a").host == "[::1]:5000"


def test_plain_http_only_where_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS unless the caller, the environment, or this machine's own address says otherwise."""
    where = parse("reg.io:5000/a")
    assert where.base(False) == "https://reg.io:5000/v2/a"
    assert where.base(True).startswith("http:")
    monkeypatch.setenv("CUVIL_INSECURE_REGISTRIES", "x, reg.io:5000")
    assert where.base(False).startswith("http:")
    assert parse("localhost:5000/a").base(False).startswith("http:")
    assert parse("127.0.0.1:5000/a").base(False).startswith("http:")
