"""Many bodies in one request: a JSON list, or JSON lines that are answered as they arrive.

A list is answered as a whole, after all of it was read:

    [{…}, {…}, …]  ─►  {"results": [{…}, {…}, …], "n_accepted": 1, "n_rejected": 1}

Lines are answered line by line, while more are read. In both cases the result of an item is what
a request of its own would have been answered with: its response, or its problem.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from matchmill.errors import MatchmillError
from matchmill.service.endpoint import Call, Item, ManyHandler, json_response, json_text_response
from matchmill.service.json_body import compact, from_body
from matchmill.service.problems import Problem, problem_of

__all__ = ["LINES", "SMALL_LIST", "LinesResponse", "list_response"]

T = TypeVar("T")

SMALL_LIST = 16  # items that may be checked on the event loop

LINES = ("application/x-ndjson", "application/jsonl")
_LINES_AT_ONCE = 1_000


async def list_response(call: Call, many: ManyHandler, values: list[Any], limit: int) -> Response:
    """Return the results of a list of bodies."""
    if not values:
        raise Problem(400, "bad_request", "the list must not be empty")
    if len(values) > limit:
        message = f"a list may have {limit:,} items, and this one has {len(values):,}"
        hint = f"send several lists, or JSON lines with Content-Type: {LINES[0]}"
        raise Problem(400, "bad_request", message, hint=hint)
    results = await many(call, [_item(value) for value in values], 0)
    n_rejected = sum("code" in result for result in results)
    n_accepted = len(results) - n_rejected
    shown = {"results": results, "n_accepted": n_accepted, "n_rejected": n_rejected}
    if len(results) <= SMALL_LIST:
        return json_response(shown)
    return json_text_response(await call.work(lambda: compact(shown)))


def _item(value: Any) -> Item:
    if isinstance(value, dict):
        return value
    return Problem(400, "bad_request", "an item must be an object")


class LinesResponse(Response):
    """Reads lines and answers lines in step: a sender who does not read is not read from."""

    def __init__(self, call: Call, many: ManyHandler) -> None:
        super().__init__(media_type=LINES[0])
        self._call = call
        self._many = many
        self._n_lines = 0
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the lines until the sender has sent the last one, or is gone."""
        service = self._call.service
        held = service.bytes.holding(self._call.tenant, service.settings.max_body_bytes)
        with held, suppress(ClientDisconnect):  # what has arrived until then is done
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
            text = await self._off_loop(len(results), partial(_lines_of, results))
            body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
            await send(body)
        if not is_started:
            await send(start)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _off_loop(self, n_lines: int, task: Callable[[], T]) -> T:
        return task() if n_lines <= SMALL_LIST else await self._call.work(task)

    async def _results(self, lines: list[bytes | Problem]) -> list[dict[str, Any]]:
        first = self._n_lines
        self._n_lines += len(lines)
        try:
            items = await self._off_loop(len(lines), lambda: [_parsed(line) for line in lines])
            return await self._many(self._call, items, first)
        except Problem as error:  # the response has begun, so each line gets the problem
            problem = error
        except MatchmillError as error:
            problem = problem_of(error)
        return [problem.to_dict() for _ in lines]


def _lines_of(results: list[dict[str, Any]]) -> str:
    return "".join(compact(result) + "\n" for result in results)


def _parsed(line: bytes | Problem) -> Item:
    if isinstance(line, Problem):
        return line
    try:
        return _item(from_body(line))
    except Problem as problem:
        return problem


async def _line_groups(request: Request, limit: int) -> AsyncIterator[list[bytes | Problem]]:
    """Yield the lines of a body as they arrive, some at a time, without empty ones."""
    rest = b""
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        full: list[bytes | Problem] = [line for line in lines if line.strip()]
        for first in range(0, len(full), _LINES_AT_ONCE):
            yield full[first : first + _LINES_AT_ONCE]
        if len(rest) > limit:
            yield [Problem(413, "too_large", f"a line may have {limit:,} bytes")]
            return  # where the next line begins is not known
    if rest.strip():
        yield [rest]
