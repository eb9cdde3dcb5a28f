"""The HTTP side: an ASGI application made from the table of endpoints.

request ─► who sends it ─► rate limit ─► body: size, type, JSON, form ─► handler ─► answer
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, compile_path
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

import matchmill
from matchmill.errors import MatchmillError
from matchmill.service.access_log import AccessLog
from matchmill.service.authentication import Sender, Senders
from matchmill.service.endpoint import Call, Endpoint, answer
from matchmill.service.endpoints import endpoints
from matchmill.service.json_body import from_body
from matchmill.service.openapi import describe
from matchmill.service.problems import Problem, problem_of
from matchmill.service.schemas import Forms
from matchmill.service.service import Service
from matchmill.service.validation import Schema, check

__all__ = ["make_app"]

logger = logging.getLogger("matchmill.service")

PAGE = Path(__file__).parent / "web"


def make_app(service: Service) -> Starlette:
    """The application; it starts and stops the service with its own life."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    forms = Forms(service.settings)
    table = endpoints(forms)
    description = describe(table, matchmill.__version__)
    routes: list[BaseRoute] = [
        Route("/healthz", _named("/healthz", _healthy)),
        Route("/readyz", _named("/readyz", _ready)),
        Route("/metrics", _named("/metrics", _metrics)),
        Route("/openapi.json", _named("/openapi.json", lambda _: answer(description))),
        *map(_route, table),
        Mount("/v1", _no_such_call(table)),
        Mount("/", StaticFiles(directory=PAGE, html=True)),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(AccessLog, metrics=service.metrics)],
        exception_handlers={
            Problem: _problem,
            ClientDisconnect: _gone,
            MatchmillError: _library_error,
            HTTPException: _http_error,
            Exception: _bug,
        },
    )
    app.state.service = service
    app.state.forms = forms
    app.state.senders = Senders(service)
    return app


def _route(endpoint: Endpoint) -> Route:
    route = Route(endpoint.path, _dispatch(endpoint), methods=[endpoint.method])
    if route.methods is not None:
        route.methods.discard("HEAD")  # a stream without its body would have no end
    return route


def _no_such_call(table: tuple[Endpoint, ...]) -> ASGIApp:
    """What no endpoint takes: another verb, or nothing known at all."""
    patterns = [(compile_path(one.path)[0], one.method) for one in table]

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        verbs = [method for pattern, method in patterns if pattern.match(scope["path"])]
        if verbs:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(verbs))})
        raise HTTPException(404)

    return refuse


# -- without a key --------------------------------------------------------------------------------


def _named(name: str, respond: Callable[[Request], Response]) -> Any:
    async def named(request: Request) -> Response:
        request.scope["matchmill.route"] = name
        return respond(request)

    return named


def _healthy(_: Request) -> Response:
    return answer({"status": "alive"})


def _ready(request: Request) -> Response:
    service: Service = request.app.state.service
    if service.failure is not None:
        hint = "the log of the service says why"
        raise Problem(503, "failed", "the engines cannot be made", hint=hint)
    if not service.is_ready or service.hub.is_stopping:
        raise _not_ready()
    return answer({"status": "ready"})


def _not_ready() -> Problem:
    hint = "subscriptions are being read; ask again"
    return Problem(503, "not_ready", "the service is not ready", hint=hint, retry_after=1)


def _metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    gauges = {
        "matchmill_ready": float(service.is_ready),
        "matchmill_subscriptions": service.engines.n_subscriptions(),
        "matchmill_queued_events": service.publisher.n_queued,
        "matchmill_streams": service.hub.n_streams,
        "matchmill_transactions": service.writer.n_transactions,
        "matchmill_transaction_works": service.writer.n_works,
    }
    text = service.metrics.text(gauges)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


# -- with one -------------------------------------------------------------------------------------


def _dispatch(endpoint: Endpoint) -> Any:
    async def dispatch(request: Request) -> Response:
        request.scope["matchmill.route"] = f"{endpoint.method} {endpoint.path}"
        service: Service = request.app.state.service
        if not service.is_ready:
            raise _not_ready()
        sender = await request.app.state.senders.find(request, endpoint)
        _admit(service, request, sender)
        query = _query(request, endpoint)
        body = await _body(request, endpoint, service.settings.max_body_bytes)
        call = Call(service, request, sender.tenant, sender.key, sender.subscription, query, body)
        return await endpoint.handler(call)

    return dispatch


def _admit(service: Service, request: Request, sender: Sender) -> None:
    """Note who it is, and let them wait who ask too often."""
    who = sender.key.key_id if sender.key is not None else "anonymous"
    if sender.key is None and sender.subscription is not None:
        who = f"subscription {sender.subscription.number}"
    request.scope["matchmill.sender"] = who
    wait = service.limits.wait(who)
    if wait:
        settings = service.settings
        raise Problem(
            429,
            "too_many_requests",
            f"more than {settings.requests_per_second:,} requests a second",
            hint="send less often, or many events in one request",
            retry_after=wait,
        )


def _query(request: Request, endpoint: Endpoint) -> dict[str, Any]:
    given = request.query_params
    for name in given:
        if name not in endpoint.query:
            known = ", ".join(endpoint.query) or "none"
            message = f"the parameter {name[:100]!r} is not known here; there are: {known}"
            raise Problem(400, "bad_request", message, field=name[:100])
    values = {}
    for name, schema in endpoint.query.items():
        texts = given.getlist(name)
        if len(texts) > 1:
            message = f"the parameter {name} is given twice"
            raise Problem(400, "bad_request", message, field=name)
        values[name] = _value(name, texts[0], schema) if texts else schema["default"]
    return values


def _value(name: str, text: str, schema: Schema) -> Any:
    value: Any = text
    if schema["type"] == "integer":
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise Problem(400, "bad_request", f"{name} must be a whole number", field=name)
        value = int(text)
    check(value, schema, name)
    return value


async def _body(request: Request, endpoint: Endpoint, limit: int) -> Any:
    if endpoint.body is None:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = ("application/x-ndjson", "application/jsonl") if endpoint.sends_lines else _JSON
    if endpoint.body_may_be_absent and not kind and not _has_body(request):
        return None
    if kind not in wanted:
        hint = f"send it with Content-Type: {wanted[0]}"
        message = f"the body is of type {kind[:100]!r}" if kind else "the type of the body is open"
        raise Problem(415, "unsupported_media_type", message, hint=hint)
    if endpoint.sends_lines:
        return None  # the handler reads it
    value = from_body(await _bytes(request, limit))
    check(value, endpoint.body)
    return value


_JSON = ("application/json",)


def _has_body(request: Request) -> bool:
    headers = request.headers
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def _bytes(request: Request, limit: int) -> bytes:
    pieces = []
    n_bytes = 0
    announced = request.headers.get("content-length", "0")
    if not announced.isdigit() or int(announced) > limit:
        raise _too_large(limit)
    async for piece in request.stream():
        n_bytes += len(piece)
        if n_bytes > limit:
            raise _too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(limit: int) -> Problem:
    hint = "send it in several requests, or as a stream to /v1/events/stream"
    return Problem(413, "too_large", f"a body may have {limit:,} bytes", hint=hint)


# -- errors ---------------------------------------------------------------------------------------


def _problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    headers = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return answer({"error": problem.to_dict()}, problem.status, headers)


def _gone(request: Request, _: Exception) -> Response:
    """Nobody will read this, but the log has its line."""
    return _problem(request, Problem(400, "gone", "the sender went away before the end"))


def _library_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MatchmillError)
    problem = problem_of(error)
    if problem.status >= 500:
        logger.error("a request failed: %s", error)
    return _problem(request, problem)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: ("not_found", "there is nothing here"), 405: ("bad_method", "not by this verb")}
    code, message = codes.get(error.status_code, ("bad_request", "this cannot be answered"))
    hint = "/openapi.json lists what there is"
    response = _problem(request, Problem(error.status_code, code, message, hint=hint))
    response.headers.update(error.headers or {})
    return response


def _bug(request: Request, _: Exception) -> Response:
    hint = "this is a bug in matchmill; the log of the service has more, please report it"
    return _problem(request, Problem(500, "bug", "something went wrong inside", hint=hint))
