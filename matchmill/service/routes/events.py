"""Publish: one event, many, or a stream of them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from matchmill.errors import EventError, MatchmillError
from matchmill.service.database.interface import Published
from matchmill.service.endpoint import Call, answer
from matchmill.service.json_body import compact, from_body
from matchmill.service.problems import Problem, problem_of
from matchmill.service.publisher import Incoming
from matchmill.service.validation import Schema, check

__all__ = ["publish", "publish_many", "publish_stream"]

_LINES_AT_ONCE = 1_000


def _incoming(given: dict[str, Any]) -> Incoming:
    try:
        body = compact(given["event"])
    except (ValueError, RecursionError):
        raise EventError("the event has an infinite number, or is nested too deeply") from None
    name = given.get("event_id")
    return Incoming(name or _new_id(), given["event"], body, name is not None)


def _new_id() -> str:
    """A name that nobody else has; later ones are greater, which keeps the store's index dense."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(8)}"


async def _published(call: Call, events: Sequence[Incoming]) -> list[dict[str, Any]]:
    """Results in the form that an answer has, errors included."""
    started = time.perf_counter()
    outcomes = await asyncio.wrap_future(call.service.publisher.publish(call.tenant, events))
    results: list[dict[str, Any]] = []
    n_matches = n_published = 0
    for incoming, outcome in zip(events, outcomes, strict=True):
        if isinstance(outcome, Published):
            n_matches += len(outcome.receivers)
            n_published += not outcome.is_repeated
            results.append({"event_id": outcome.event_id, "matched": outcome.matched})
        else:
            error = problem_of(EventError(outcome)).to_dict()
            results.append({"event_id": incoming.event_id, "error": error})
    seconds = time.perf_counter() - started
    call.service.metrics.published(call.tenant, n_published, n_matches, seconds)
    return results


async def publish(call: Call) -> Response:
    (result,) = await _published(call, [_incoming(call.body)])
    if "error" in result:
        return answer({"error": result["error"]}, 422)
    return answer(result)


async def _results(call: Call, given: Sequence[dict[str, Any] | Problem]) -> list[dict[str, Any]]:
    """For each of many events what became of it; bad ones do not hurt the others."""
    form: Schema = call.request.app.state.forms.event
    results: list[dict[str, Any]] = []
    places: list[int] = []
    events: list[Incoming] = []
    for k, one in enumerate(given):
        results.append({})
        try:
            if isinstance(one, Problem):
                raise one
            check(one, form)
            events.append(_incoming(one))
            places.append(k)
        except Problem as problem:
            results[k] = {"error": problem.to_dict()}
        except EventError as error:
            results[k] = {"error": problem_of(error).to_dict()}
    if events:
        for k, result in zip(places, await _published(call, events), strict=True):
            results[k] = result
    return results


async def publish_many(call: Call) -> Response:
    return answer({"results": await _results(call, call.body["events"])})


async def publish_stream(call: Call) -> Response:
    return _Duplex(call)


class _Duplex(Response):
    """Reads lines and answers lines, in step: a sender who does not read is not read from."""

    def __init__(self, call: Call) -> None:
        super().__init__(media_type="application/x-ndjson")
        self._call = call
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):  # what has come until then is published
            await self._answer(send)

    async def _answer(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        is_started = False
        limit = self._call.service.settings.max_body_bytes
        async for lines in _line_groups(self._call.request, limit):
            results = await self._results(lines)
            if not is_started:
                await send(start)
                is_started = True
            text = "".join(compact(result) + "\n" for result in results)
            body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
            await send(body)
        if not is_started:
            await send(start)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _results(self, lines: list[bytes | Problem]) -> list[dict[str, Any]]:
        try:
            return await _results(self._call, [_parsed(line) for line in lines])
        except Problem as problem:  # the answer has begun, so it is told line by line
            told = problem.to_dict()
        except MatchmillError as error:
            told = problem_of(error).to_dict()
        return [{"error": told} for _ in lines]


def _parsed(line: bytes | Problem) -> dict[str, Any] | Problem:
    if isinstance(line, Problem):
        return line
    try:
        value = from_body(line)
    except Problem as problem:
        return problem
    if not isinstance(value, dict):
        return Problem(400, "bad_request", "a line must be an object", hint='{"event": {…}}')
    return value


async def _line_groups(request: Request, limit: int) -> AsyncIterator[list[bytes | Problem]]:
    """The lines of a body as they arrive, some at a time; empty ones are left out."""
    rest = b""
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        full: list[bytes | Problem] = [line for line in lines if line.strip()]
        for first in range(0, len(full), _LINES_AT_ONCE):
            yield full[first : first + _LINES_AT_ONCE]
        if len(rest) > limit:
            yield [Problem(413, "too_large", f"a line may have {limit:,} bytes")]
            return  # nobody knows where the next line begins
    if rest.strip():
        yield [rest]
