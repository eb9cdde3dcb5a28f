"""Who sends a request: a key of a tenant, the ticket of a subscription, or nobody.

Secrets come in headers, never in URLs. They are looked up by their keyed hash, so the time that a
lookup takes says nothing about a secret: nobody without the service's key can predict the hash of
a guess. What belongs to another tenant is not found, as if it did not exist.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

from starlette.requests import Request

from matchmill.service.database.rows import Key, Subscription
from matchmill.service.endpoint import Endpoint
from matchmill.service.problems import Problem
from matchmill.service.rate_limits import RateLimits
from matchmill.service.routes.subscriptions import no_such_subscription
from matchmill.service.secrets import TICKET_HEADER
from matchmill.service.service import Service

__all__ = ["Authentication", "Sender"]

_REMEMBERED_SECONDS = 1.0  # a revoked key lives on in other processes for so long
_MOST_REMEMBERED = 1_000
_LONGEST_SECRET = 500
_ALLOWS = {
    "subscribe": "subscribe",
    "publish": "publish events",
    "read": "read subscriptions or match events",
    "admin": "manage keys or other people's subscriptions",
}


class Sender(NamedTuple):
    """Who sends a request, and which subscription it is about."""

    tenant: int
    key: Key | None
    subscription: Subscription | None


class Authentication:
    """Finds the sender of a request; used on the event loop alone."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._keys: dict[bytes, tuple[Key, float]] = {}

    def forget_keys(self) -> None:
        """Forget remembered keys, after one was revoked."""
        self._keys.clear()

    async def find(self, request: Request, endpoint: Endpoint) -> Sender:
        """Return the sender of a request; Problem if they may not call this endpoint."""
        subscription_id = request.path_params.get("subscription_id")
        ticket = request.headers.get(TICKET_HEADER)
        authorization = request.headers.get("authorization")
        if endpoint.by_ticket and ticket is not None:
            # Where a subscription may be created, the ticket may be new: then a key is needed.
            if authorization is None or not endpoint.may_create:
                return await self._by_ticket(ticket, subscription_id, endpoint)
        if authorization is None and endpoint.is_anonymous:
            tenant = await self._anonymous()
            if tenant is not None:
                return Sender(tenant, None, None)
        if not endpoint.scopes:
            hint = "it was in the response to subscribing; an API key cannot take its place"
            raise _unauthorized(f"the header {TICKET_HEADER} is missing", hint)
        if authorization is None:
            expected = "Authorization: Bearer KEY"
            if endpoint.by_ticket:
                expected += f", or {TICKET_HEADER}: TICKET"
            raise _unauthorized("the request has no API key", f"send the header {expected}")
        key = await self._key(authorization)
        if not key.scopes & set(endpoint.scopes):
            raise _forbidden(key, endpoint)
        return Sender(key.tenant, key, await self._subscription(key, subscription_id, endpoint))

    async def _subscription(
        self, key: Key, subscription_id: str | None, endpoint: Endpoint
    ) -> Subscription | None:
        if subscription_id is None:
            return None
        now = 0 if endpoint.may_restore else self._service.clock()
        found = await self._service.read(
            lambda r: r.subscription(key.tenant, subscription_id, now), key.tenant
        )
        if found is None and not endpoint.may_create:
            raise no_such_subscription()
        return found

    async def _by_ticket(
        self, ticket: str, subscription_id: str | None, endpoint: Endpoint
    ) -> Sender:
        hashed = self._hashed(ticket)
        now = 0 if endpoint.may_restore else self._service.clock()
        if subscription_id is None:
            raise no_such_subscription()
        _admit(self._service.ticket_limits, hashed)
        found = await self._service.read(
            lambda r: r.by_ticket(subscription_id, hashed, now), _turn_of(hashed)
        )
        if found is None:
            raise no_such_subscription()
        return Sender(found.tenant, None, found)

    async def _key(self, authorization: str) -> Key:
        kind, _, secret = authorization.partition(" ")
        if kind.lower() != "bearer":
            raise _unauthorized(
                "the header Authorization has another form", "send Authorization: Bearer KEY"
            )
        hashed = self._hashed(secret.strip())
        _admit(self._service.limits, hashed)
        remembered = self._keys.get(hashed)
        if remembered is not None and monotonic() < remembered[1]:
            return remembered[0]
        found = await self._service.read(lambda r: r.key(hashed), _turn_of(hashed))
        if found is None:
            raise _unauthorized(
                "the key in the header Authorization is not known",
                "it may be revoked, or of another service; matchmill keys add makes one",
            )
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
        _admit(self._service.limits, "anonymous")
        return await self._service.read(lambda r: r.tenant(name))


def _turn_of(hashed: bytes) -> int:
    """Return whose turn the lookup of a secret takes: its tenant is not known yet.

    So whoever sends one secret again and again waits for themselves, and for no other sender.
    """
    return -1 - int.from_bytes(hashed[:6], "big")


def _admit(limits: RateLimits, who: object) -> None:
    """Raise Problem if there were too many requests with a secret, before it is looked up."""
    wait = limits.wait(who)
    if wait:
        raise Problem(
            429,
            "too_many_requests",
            f"more than {limits.per_second:,} requests per second",
            hint="send fewer requests, or many events in one request",
            retry_after=wait,
        )


def _unauthorized(detail: str, hint: str) -> Problem:
    return Problem(401, "unauthorized", detail, hint=hint)


def _forbidden(key: Key, endpoint: Endpoint) -> Problem:
    actions = " or ".join(_ALLOWS[scope] for scope in endpoint.scopes)
    needed = " or ".join(endpoint.scopes)
    return Problem(
        403,
        "forbidden",
        f"this key may not {actions}: it has no scope {needed}",
        hint=f"its scopes are: {', '.join(sorted(key.scopes))}",
    )
