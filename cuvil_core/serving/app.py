"""The routes: HTTP in, HTTP out. Everything slow happens in the engine's threads."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from cuvil_core.contract import RequestOutcome, ServingSettings
from cuvil_core.errors import CuvilError, InputError, SizeError
from cuvil_core.runtime import CuvilModule
from cuvil_core.serving import protocol
from cuvil_core.serving.engine import Engine, QueueFullError, nonfinite
from cuvil_core.serving.logs import say
from cuvil_core.serving.metrics import Metrics
from cuvil_core.serving.packing import TooLargeError, UnknownCodingError, coding_for, coding_of, deflate, inflate
from cuvil_core.version import VERSION

JSON_LENGTH = "Inference-Header-Content-Length"
BODY_LIMIT = 256 << 20
"""Bytes of a request after decompression."""
BODY_SECONDS = 60.0
"""A body that takes longer to arrive is given up."""
EXTENSIONS = ["binary_tensor_data", "model_configuration"]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NonFiniteError(CuvilError):
    """An output holds NaN or Inf and the settings refuse such answers."""


class Service:
    """One model behind its routes. `module` is None until it is admitted."""

    def __init__(self, settings: ServingSettings, engine: Engine, metrics: Metrics) -> None:
        """The module comes later, by `admit`."""
        self.settings, self.engine, self.metrics = settings, engine, metrics
        self.module: CuvilModule | None = None
        self.draining = False
        self.body_limit = BODY_LIMIT
        self.under_way = 0
        """Inference requests whose headers are read and that are not answered."""

    def admit(self, module: CuvilModule) -> None:
        """Become ready."""
        self.module = module

    @property
    def ready(self) -> bool:
        """Ready for requests: loaded, warm, and not on the way out."""
        return self.module is not None and not self.draining

    def application(self, body_limit: int = BODY_LIMIT) -> web.Application:
        """Give the aiohttp application; its runner must leave packed bodies packed (`auto_decompress=False`)."""
        self.body_limit = body_limit
        app = web.Application(client_max_size=body_limit, middlewares=[self._last_words])
        for path, handler in (
            ("/v2/health/live", self._live),
            ("/v2/health/ready", self._ready),
            ("/v2", self._server),
            ("/v2/", self._server),
            ("/metrics", self._metrics),
        ):
            app.router.add_get(path, handler)
        for base in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            app.router.add_get(base, self._metadata)
            app.router.add_get(base + "/config", self._config)
            app.router.add_get(base + "/ready", self._model_ready)
            app.router.add_post(base + "/infer", self._infer)
        return app

    @web.middleware
    async def _last_words(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer unknown paths in the protocol's form; while draining, tell clients to let the connection go."""
        try:
            response = await handler(request)
        except web.HTTPException as fault:
            response = _failure(fault.status, f"{request.method} {request.path}: {fault.reason}")
        if self.draining:
            response.force_close()
        return response

    async def _live(self, request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def _ready(self, request: web.Request) -> web.Response:
        return web.json_response({"ready": self.ready}, status=200 if self.ready else 503)

    async def _server(self, request: web.Request) -> web.Response:
        return web.json_response({"name": "cuvil", "version": VERSION, "extensions": EXTENSIONS})

    async def _metrics(self, request: web.Request) -> web.Response:
        body, kind = self.metrics.exposition()
        return web.Response(body=body, headers={"Content-Type": kind})

    async def _model_ready(self, request: web.Request) -> web.Response:
        if (stranger := self._stranger(request)) is not None:
            return stranger
        return web.json_response({"name": self.settings.model, "ready": self.ready}, status=200 if self.ready else 503)

    async def _metadata(self, request: web.Request) -> web.Response:
        return self._about(request, lambda it: protocol.metadata(self.settings.model, self.settings.revision, *it))

    async def _config(self, request: web.Request) -> web.Response:
        return self._about(request, lambda it: protocol.config(self.settings.model, *it))

    def _about(self, request: web.Request, describe: Callable[[Any], dict[str, Any]]) -> web.Response:
        if (stranger := self._stranger(request)) is not None:
            return stranger
        if self.module is None:
            return _failure(503, f"model {self.settings.model!r} is still loading; try again")
        signature = self.module.signature
        return web.json_response(describe((signature.inputs, signature.outputs)))

    def _stranger(self, request: web.Request) -> web.Response | None:
        """Give the answer for a model or version that is not served here."""
        model, wanted = request.match_info["model"], request.match_info.get("version", self.settings.revision)
        if model != self.settings.model:
            return _failure(404, f"there is no model {model!r} here, only {self.settings.model!r}")
        if wanted != self.settings.revision:
            return _failure(404, f"model {model!r} has no version {wanted!r} here, only {self.settings.revision!r}")
        return None

    async def _infer(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        self.under_way += 1
        try:
            response, outcome = await self._answer(request)
        finally:
            self.under_way -= 1
        self.metrics.count(outcome, time.perf_counter() - started)
        return response

    async def _answer(self, request: web.Request) -> tuple[web.Response, RequestOutcome]:
        """Answer, and say how it ended; nothing but a cancelled connection escapes."""
        if (stranger := self._stranger(request)) is not None:
            return stranger, RequestOutcome.CLIENT_ERROR
        if self.module is None:
            return _failure(503, f"model {self.settings.model!r} is still loading; try again"), RequestOutcome.REJECTED
        try:
            coding = coding_of(request.headers.get("Content-Encoding", ""))
            if (request.content_length or 0) > self.body_limit:
                raise TooLargeError
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
            return await self._compute(self.module, request, body, coding), RequestOutcome.OK
        except QueueFullError:
            sentence = f"{self.settings.queue} requests wait already; try again later or on another replica"
            return _failure(429, sentence, {"Retry-After": "1"}), RequestOutcome.REJECTED
        except Exception as fault:
            if (response := self._clients_fault(fault)) is not None:
                return response, RequestOutcome.CLIENT_ERROR
            return self._own_fault(fault), RequestOutcome.ERROR

    def _clients_fault(self, fault: Exception) -> web.Response | None:
        """Give the answer to a fault of the request: its content, and sizes that follow from it, never count as errors.

        Otherwise one client could spoil a revision's error rate and so have it rolled back.
        """
        match fault:
            case InputError():
                return _failure(400, str(fault))
            case TooLargeError() | web.HTTPRequestEntityTooLarge():
                return _failure(413, f"the body is larger than the allowed {self.body_limit} bytes; send smaller ones")
            case SizeError() if not self._sizes_are_promised:
                return _failure(413, str(fault))
            case MemoryError() if not self._sizes_are_promised:
                return _failure(413, "the request takes more memory than this server has; send smaller inputs")
            case UnknownCodingError():
                return _failure(415, str(fault))
            case TimeoutError():
                return _failure(408, f"the body did not arrive within {BODY_SECONDS:g} s")
            case web.HTTPException() | ConnectionError() | web.RequestPayloadError():
                return _failure(400, f"the body cannot be read: {fault}")
        return None

    @property
    def _sizes_are_promised(self) -> bool:
        """Whether every extent has an upper bound: then a size that is taken and fits no memory is this server's fault.

        Counted so, a version whose pods have too little memory is rolled back.
        """
        return self.module is not None and all(most is not None for _, most in self.module.symbols.values())

    def _own_fault(self, fault: Exception) -> web.Response:
        if isinstance(fault, CuvilError):
            say(logging.ERROR, str(fault), reason=fault.reason, model=self.settings.model)
            return _failure(500, str(fault))
        say(logging.ERROR, "an inference request failed", fault=fault, model=self.settings.model)
        return _failure(500, "the server failed on this request; its log says why")

    async def _compute(
        self, module: CuvilModule, request: web.Request, body: bytes, packed: str | None
    ) -> web.Response:
        json_length, coding = request.headers.get(JSON_LENGTH), coding_for(request.headers.get("Accept-Encoding", ""))

        def work() -> tuple[bytes, int | None]:
            asked = protocol.read_request(inflate(body, packed, self.body_limit), json_length)
            outputs = module.run(asked.inputs)
            strange = nonfinite(outputs)
            if strange is not None:
                self.metrics.nonfinite.inc()
                if self.settings.reject_non_finite:
                    raise NonFiniteError(f"output {strange!r} holds NaN or Inf, which this model's settings refuse")
            answer = protocol.write_answer(self.settings.model, self.settings.revision, asked, outputs)
            return deflate(answer.body, coding), answer.json_length

        content, ends = await self.engine.submit(work)
        headers = {"Content-Type": "application/json" if ends is None else "application/octet-stream"}
        if ends is not None:
            headers[JSON_LENGTH] = str(ends)
        if coding is not None:
            headers["Content-Encoding"] = coding
        return web.Response(body=content, headers=headers)


def _failure(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, text=json.dumps({"error": sentence}), content_type="application/json", headers=headers
    )
