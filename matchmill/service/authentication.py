"""Who sends a request: a key of a tenant, the ticket of a subscription, or nobody.

Secrets come in headers, never in URLs. They are looked up by their keyed hash, and the time that
takes says nothing about a secret: nobody without the key can tell which hash a guess will have.
What belongs to another tenant is not found, as if it were not there.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

from starlette.requests import Request

from matchmill.service.database.interface import Key, Subscription
from matchmill.service.endpoint import Endpoint
from matchmill.service.problems import Problem
from matchmill.service.routes.subscriptions import no_such_subscription
from matchmill.service.service import Service

__all__ = ["TICKET_HEADER", "Sender", "Senders"]

TICKET_HEADER = "Matchmill-Ticket"
_REMEMBERED_SECONDS = 1.0  # so long may a key live on in other processes, when it is revoked
_MOST_REMEMBERED = 1_000
_LONGEST_SECRET = 500


class Sender(NamedTuple):
    tenant: int
    key: Key | None
    subscription: Subscription | None


class Senders:
    """Used on the event loop alone."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._keys: dict[bytes, tuple[Key, float]] = {}

    def forget_keys(self) -> None:
        self._keys.clear()

    async def find(self, request: Request, endpoint: Endpoint) -> Sender:
        """The sender of a request, who may call this endpoint; Problem if not."""
        identifier = request.path_params.get("id")
        ticket = request.headers.get(TICKET_HEADER)
        if endpoint.by_ticket and ticket is not None:
            return await self._by_ticket(ticket, identifier)
        authorization = request.headers.get("authorization")
        if authorization is None and endpoint.is_anonymous:
            tenant = await self._anonymous()
            if tenant is not None:
                return Sender(tenant, None, None)
        if not endpoint.scopes:
            raise _unauthorized(f"send the subscription's ticket in the header {TICKET_HEADER}")
        if authorization is None:
            ways = "an API key as `Authorization: Bearer KEY`"
            if endpoint.by_ticket:
                ways += f", or the subscription's ticket in the header {TICKET_HEADER}"
            raise _unauthorized(f"send {ways}")
        key = await self._key(authorization)
        if not key.scopes & set(endpoint.scopes):
            raise Problem(
                403,
                "forbidden",
                f"this key has no scope {' or '.join(endpoint.scopes)}",
                hint=f"its scopes are: {', '.join(sorted(key.scopes))}",
            )
        found = None
        if identifier is not None:
            now = self._service.clock()
            found = await self._service.read(lambda r: r.subscription(key.tenant, identifier, now))
            if found is None:
                raise no_such_subscription()
        return Sender(key.tenant, key, found)

    async def _by_ticket(self, ticket: str, identifier: str | None) -> Sender:
        hashed, now = self._hashed(ticket), self._service.clock()
        if identifier is None:
            raise no_such_subscription()
        found = await self._service.read(lambda r: r.by_ticket(identifier, hashed, now))
        if found is None:
            raise no_such_subscription()
        return Sender(found.tenant, None, found)

    async def _key(self, authorization: str) -> Key:
        kind, _, secret = authorization.partition(" ")
        if kind.lower() != "bearer":
            raise _unauthorized("the form is `Authorization: Bearer KEY`")
        hashed = self._hashed(secret.strip())
        remembered = self._keys.get(hashed)
        if remembered is not None and monotonic() < remembered[1]:
            return remembered[0]
        found = await self._service.read(lambda r: r.key(hashed))
        if found is None:
            raise _unauthorized("this key is not known: it may be revoked")
        if len(self._keys) >= _MOST_REMEMBERED:
            self._keys.clear()
        self._keys[hashed] = (found, monotonic() + _REMEMBERED_SECONDS)
        return found

    def _hashed(self, secret: str) -> bytes:
        return self._service.secret_key.hashed(secret[:_LONGEST_SECRET])

    async def _anonymous(self) -> int | None:
        name = self._service.settings.anonymous_tenant
        if not name:
            return None
        return await self._service.read(lambda r: r.tenant(name))


def _unauthorized(hint: str) -> Problem:
    return Problem(401, "unauthorized", "who sends this is not known", hint=hint)
