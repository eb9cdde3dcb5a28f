"""What an endpoint is, and what its handler is called with.

The table in `endpoints.py` is the one declaration: it routes, says who may call, checks what is
sent, and becomes /openapi.json.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import Key, Subscription
from matchmill.service.database.writes import Writes
from matchmill.service.json_body import compact
from matchmill.service.problems import Problem
from matchmill.service.service import Service
from matchmill.service.validation import Schema

__all__ = ["SMALL", "Call", "Endpoint", "Item", "json_response", "json_text_response"]

T = TypeVar("T")

SMALL = 16_384  # bytes of JSON that may be read or written on the event loop: 0.3 milliseconds


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

    @property
    def is_large(self) -> bool:
        """Return whether the body is too large to be worked on in the event loop."""
        length = self.request.headers.get("content-length", "")
        return not length.isdigit() or int(length) > SMALL

    # What a request does off the event loop takes the turn of its tenant.

    async def read(self, question: Callable[[Reads], T]) -> T:
        """Read from the store."""
        return await self.service.read(question, self.tenant)

    async def write(self, work: Callable[[Writes], T], n_rows: int = 1) -> T:
        """Change the store; return when that is committed."""
        return await self.service.write(work, self.tenant, n_rows)

    async def work(self, task: Callable[[], T]) -> T:
        """Read a request, or write a response."""
        return await self.service.work(task, self.tenant)

    async def ask(self, task: Callable[[], T]) -> T:
        """Do something that may take seconds."""
        return await self.service.query(task, self.tenant)


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


def json_text_response(text: str) -> Response:
    """Return a response with a body that is JSON already."""
    return Response(text, 200, media_type="application/json")
