"""What an endpoint is, and what its handler is called with.

The table in `endpoints.py` is the one declaration: it routes, says who may call, checks what is
sent, and becomes /openapi.json.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from matchmill.service.database.interface import Key, Subscription
from matchmill.service.json_body import compact
from matchmill.service.service import Service
from matchmill.service.validation import Schema

__all__ = ["Call", "Endpoint", "answer"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request whose sender is known and whose parts are checked.

    With a path of one subscription, `subscription` is there: the ticket's, or the key's tenant's.
    """

    service: Service
    request: Request
    tenant: int
    key: Key | None
    subscription: Subscription | None
    query: dict[str, Any]
    body: Any

    @property
    def about(self) -> Subscription:
        assert self.subscription is not None
        return self.subscription


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    summary: str
    handler: Handler
    scopes: tuple[str, ...] = ()  # a key with one of these may call
    by_ticket: bool = False  # the subscription's ticket may call
    is_anonymous: bool = False  # and who has neither, where a setting says so
    body: Schema | None = None
    body_may_be_absent: bool = False
    sends_lines: bool = False  # the body is JSON lines, and is read piece by piece
    query: dict[str, Schema] = field(default_factory=dict)
    status: int = 200
    answer: Schema | None = None
    streams: str = ""  # the media type of an answer that goes on and on
    problems: tuple[int, ...] = ()  # besides those that anyone may get


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(compact(value), status, headers, "application/json")
