"""The HTTP side: an ASGI application made from the table of endpoints.

request ─► rate limit ─► sender ─► body: memory, size, time, type, JSON, form ─► handler
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, compile_path
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

import matchmill
from matchmill.errors import MatchmillError
from matchmill.service.access_log import AccessLog
from matchmill.service.authentication import Authentication, Sender
from matchmill.service.endpoint import Call, Endpoint, json_response
from matchmill.service.endpoints import endpoints
from matchmill.service.json_body import compact
from matchmill.service.many import LinesResponse, list_response
from matchmill.service.openapi import describe
from matchmill.service.problems import Problem, problem_of
from matchmill.service.request_parts import (
    check_encoding,
    is_lines,
    n_announced,
    read_body,
    read_query,
)
from matchmill.service.schemas import Forms
from matchmill.service.service import Service

__all__ = ["make_app"]

logger = logging.getLogger("matchmill.service")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
WEB = Path(__file__).parent / "web"


def make_app(service: Service) -> Starlette:
    """Make the ASGI application of a service.

    The application starts the service with its lifespan, and stops it.

    Parameters
    ----------
    service
        A service that was not started.

    Returns
    -------
    Starlette
        The application, for uvicorn or any other ASGI server.

    Examples
    --------
    >>> from matchmill.service import Service, make_app
    >>> app = make_app(Service("alerts"))  # doctest: +SKIP
    """

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
        Route("/readyz", _ready),
        Route("/metrics", _named("/metrics", _metrics)),
        Route("/openapi.json", _named("/openapi.json", lambda _: json_response(description))),
        *map(_route, table),
        Mount("/v1", _no_such_endpoint(table)),
        Mount("/", StaticFiles(directory=WEB, html=True)),
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
    app.state.authentication = Authentication(service)
    return app


def _route(endpoint: Endpoint) -> Route:
    route = Route(endpoint.path, _dispatch(endpoint), methods=[endpoint.method])
    if route.methods is not None:
        route.methods.discard("HEAD")  # a stream without its body would have no end
    return route


def _no_such_endpoint(table: tuple[Endpoint, ...]) -> ASGIApp:
    """Answer what no endpoint takes: another method, or an unknown path."""
    patterns = [(compile_path(one.path)[0], one.method) for one in table]

    async def reject(scope: Scope, receive: Receive, send: Send) -> None:
        methods = [method for pattern, method in patterns if pattern.match(scope["path"])]
        if methods:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
        raise HTTPException(404)

    return reject


# -- without a key --------------------------------------------------------------------------------


def _named(name: str, respond: Callable[[Request], Response]) -> Any:
    async def named(request: Request) -> Response:
        request.scope["matchmill.route"] = name
        return respond(request)

    return named


def _healthy(_: Request) -> Response:
    return json_response({"status": "alive"})


async def _ready(request: Request) -> Response:
    request.scope["matchmill.route"] = "/readyz"
    service: Service = request.app.state.service
    checks = await service.health.checks()
    shown = {name: "ready" if error is None else error for name, error in checks.items()}
    if service.failure is not None:
        hint = "the log of the service has the reason"
        problem = Problem(503, "failed", "the engines cannot be loaded", hint=hint)
    elif not service.is_ready or service.hub.is_stopping:
        problem = _not_ready()
    elif any(checks.values()):
        names = ", ".join(name for name, error in checks.items() if error)
        hint = "the log of the service has the reason; it works again when that has gone"
        problem = Problem(503, "not_ready", f"not ready: {names}", hint=hint, retry_after=1)
    else:
        return json_response({"status": "ready", "checks": shown})
    response = _problem(request, problem)
    response.body = compact(problem.to_dict() | {"checks": shown}).encode()
    response.headers["Content-Length"] = str(len(response.body))
    return response


def _not_ready() -> Problem:
    hint = "subscriptions are being loaded; ask again"
    return Problem(503, "not_ready", "the service is not ready", hint=hint, retry_after=1)


def _metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


# -- with one -------------------------------------------------------------------------------------


def _dispatch(endpoint: Endpoint) -> Any:
    async def dispatch(request: Request) -> Response:
        request.scope["matchmill.route"] = f"{endpoint.method} {endpoint.path}"
        service: Service = request.app.state.service
        if not service.is_ready:
            raise _not_ready()
        if any(map(_CONTROL.search, request.path_params.values())):
            raise HTTPException(404)  # no id has such a character, and not every store can have it
        sender = await request.app.state.authentication.find(request, endpoint)
        _note_sender(request, sender)
        query = read_query(request, endpoint)
        call = Call(service, request, sender.tenant, sender.key, sender.subscription, query)
        check_encoding(request)
        if endpoint.many is not None and is_lines(request, endpoint):
            return LinesResponse(call, endpoint.many)
        n_bytes = n_announced(request, endpoint, service.settings.max_body_bytes)
        with service.bytes.holding(sender.tenant, n_bytes):
            return await _answered(call, endpoint)

    return dispatch


async def _answered(call: Call, endpoint: Endpoint) -> Response:
    settings = call.service.settings
    body = await read_body(call, endpoint, settings.max_body_bytes, settings.request_seconds)
    if endpoint.many is not None and isinstance(body, list):
        return await list_response(call, endpoint.many, body, settings.max_batch_items)
    return await endpoint.handler(replace(call, body=body))


def _note_sender(request: Request, sender: Sender) -> None:
    """Note the sender for the log."""
    name = sender.key.key_id if sender.key is not None else "anonymous"
    if sender.key is None and sender.subscription is not None:
        name = f"subscription {sender.subscription.number}"
    request.scope["matchmill.sender"] = name


# -- errors ---------------------------------------------------------------------------------------


def _problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    headers = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = compact(problem.to_dict())
    return Response(body, problem.status, headers, "application/problem+json")


def _gone(request: Request, _: Exception) -> Response:
    """Answer a sender who is gone: nobody reads this, but the log has its line."""
    return _problem(request, Problem(400, "gone", "the sender closed the connection too early"))


def _library_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MatchmillError)
    problem = problem_of(error)
    if problem.status >= 500:
        logger.error("a request failed: %s", error)
    return _problem(request, problem)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {
        404: ("not_found", "there is no such path"),
        405: ("bad_method", "this path does not have this method"),
    }
    code, detail = codes.get(error.status_code, ("bad_request", "this cannot be answered"))
    hint = "/openapi.json lists all paths and methods"
    response = _problem(request, Problem(error.status_code, code, detail, hint=hint))
    response.headers.update(error.headers or {})
    return response


def _bug(request: Request, _: Exception) -> Response:
    hint = "this is a bug in matchmill; the log of the service has more, please report it"
    return _problem(request, Problem(500, "bug", "the service failed", hint=hint))
