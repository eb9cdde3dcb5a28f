"""What an endpoint is, and what its handler is called with.

The table in `endpoints.py` is the one declaration: it routes, says who may call, checks what is
sent, and becomes /openapi.json.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from matchmill.service.database.rows import Key, Subscription
from matchmill.service.json_body import compact
from matchmill.service.problems import Problem
from matchmill.service.service import Service
from matchmill.service.validation import Schema

__all__ = ["Call", "Endpoint", "Item", "json_response"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request whose sender is known and whose parts are checked.

    If the path names a subscription, `subscription` is it: found by the ticket, or among those of
    the key's tenant. Only PUT is called without one, to create it.
    """

    service: Service
    request: Request
    tenant: int
    key: Key | None
    subscription: Subscription | None
    query: dict[str, Any]
    body: Any = None

    @property
    def about(self) -> Subscription:
        """Return the subscription that the path names."""
        assert self.subscription is not None
        return self.subscription


Handler = Callable[[Call], Awaitable[Response]]
Item = dict[str, Any] | Problem  # one of many bodies, or why it cannot be read
ManyHandler = Callable[[Call, Sequence[Item], int], Awaitable[list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path.

    `many` answers a list, or JSON lines, of bodies: it gets some of them and the row of the first,
    and returns for each what a request of its own would have been answered with.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    scopes: tuple[str, ...] = ()  # a key with one of these may call
    by_ticket: bool = False  # the subscription's ticket may call
    is_anonymous: bool = False  # anyone may call, if a setting allows it
    may_create: bool = False  # the subscription in the path need not exist
    may_restore: bool = False  # the subscription in the path may have expired
    body: Schema | None = None
    many: ManyHandler | None = None
    query: dict[str, Schema] = field(default_factory=dict)
    status: int = 200
    response: Schema | None = None
    streams: str = ""  # the media type of a response that does not end
    problems: tuple[int, ...] = ()  # besides those that every endpoint has


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(compact(value), status, media_type="application/json")
