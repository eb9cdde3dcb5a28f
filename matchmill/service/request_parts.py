"""Reads the query and the body of a request, and checks both by the endpoint's schemas."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from matchmill.service.endpoint import SMALL, Call, Endpoint
from matchmill.service.json_body import from_body
from matchmill.service.many import LINES
from matchmill.service.problems import Problem
from matchmill.service.validation import Schema, check

__all__ = ["check_encoding", "is_lines", "n_announced", "read_body", "read_query"]

_JSON = "application/json"


def read_query(request: Request, endpoint: Endpoint) -> dict[str, Any]:
    """Return the parameters of the query, with the defaults of those that are not given."""
    given = request.query_params
    for name in given:
        if name not in endpoint.query:
            known = ", ".join(endpoint.query) or "none"
            message = f"{name[:100]!r} is not a parameter of this request; it has: {known}"
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


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_lines(request: Request, endpoint: Endpoint) -> bool:
    """Return whether the body is JSON lines, which are read as they arrive."""
    return endpoint.many is not None and _media_type(request) in LINES


def check_encoding(request: Request) -> None:
    """Raise Problem if the body is compressed: it would be read as if it were not."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        message = f"the body has the Content-Encoding {encoding[:100]!r}"
        hint = "send it as it is, without Content-Encoding"
        raise Problem(415, "unsupported_media_type", message, hint=hint)


def n_announced(request: Request, endpoint: Endpoint, limit: int) -> int:
    """Return how many bytes the body of a request may have."""
    if endpoint.body is None:
        return 0
    text = request.headers.get("content-length", "")
    if is_lines(request, endpoint) or not (text.isascii() and text.isdigit() and len(text) < 19):
        return limit  # it comes in pieces
    return min(int(text), limit)


async def read_body(call: Call, endpoint: Endpoint, limit: int, seconds: float) -> Any:
    """Return the checked body; a list is not checked if the endpoint takes many."""
    request = call.request
    if endpoint.body is None:
        return None
    media_type = _media_type(request)
    if media_type != _JSON:
        hint = f"send the header Content-Type: {_JSON}"
        if endpoint.many is not None:
            hint += f", or {LINES[0]} for JSON lines"
        message = "the header Content-Type is missing"
        if media_type:
            message = f"the body is of type {media_type[:100]!r}"
        raise Problem(415, "unsupported_media_type", message, hint=hint)
    try:
        async with asyncio.timeout(seconds):
            data = await _bytes(request, limit)
    except TimeoutError:
        raise _too_slow(seconds) from None
    value = from_body(data) if len(data) <= SMALL else await call.work(lambda: from_body(data))
    if endpoint.many is None or not isinstance(value, list):
        check(value, endpoint.body)
    return value


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


def _too_slow(seconds: float) -> Problem:
    message = f"the body did not arrive within {seconds:g} seconds"
    hint = "send smaller requests; the setting is request_seconds"
    return Problem(408, "too_slow", message, hint=hint)


def _too_large(limit: int) -> Problem:
    hint = f"send several requests, or JSON lines with Content-Type: {LINES[0]}"
    return Problem(413, "too_large", f"a body may have {limit:,} bytes", hint=hint)
