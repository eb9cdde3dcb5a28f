"""Subscribe, list, show, replace, update, unsubscribe."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from matchmill.errors import InputError, MatchmillError
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.service.database.reads import Reads, n_within
from matchmill.service.database.rows import SECOND, NewSubscription, Subscription
from matchmill.service.database.writes import Writes
from matchmill.service.endpoint import Call, Item, json_response, json_text_response
from matchmill.service.expressions import checked_expression
from matchmill.service.json_body import compact
from matchmill.service.outbound import check_url
from matchmill.service.problems import Problem, problem_of
from matchmill.service.responses import listed_dict, subscription_dict
from matchmill.service.secrets import TICKET_HEADER
from matchmill.service.service import Service
from matchmill.service.validation import check

__all__ = [
    "list_subscriptions",
    "no_such_subscription",
    "put_subscription",
    "show_subscription",
    "subscribe",
    "subscribe_many",
    "unsubscribe",
    "update_subscription",
]

_AT_ONCE = 50  # subscriptions in one part of a transaction
_ROWS_OF_ONE = 20  # that take as long as subscribing: it is several statements

_TICKET = re.compile(r"[\w-]{43,200}", re.ASCII)  # as many random bits as ours have


class _Prepared(NamedTuple):
    """A subscription to store, with the ticket that its owner is shown once."""

    new: NewSubscription
    ticket: str


def _prepared(service: Service, given: dict[str, Any], ticket: str | None = None) -> _Prepared:
    checked = checked_expression(
        given["expression"], service.settings, given.get("dialect", MATCHMILL)
    )
    ticket = ticket or secrets.token_urlsafe(32)
    new = NewSubscription(
        given.get("subscription_id") or secrets.token_hex(12),
        checked.text,
        service.secret_key.hashed(ticket),
        _expires_at(service, given.get("ttl_seconds")),
        given.get("max_per_minute"),
        _webhook_url(given.get("webhook")),
        secrets.token_bytes(16),
    )
    return _Prepared(new, ticket)


def _expires_at(service: Service, ttl_seconds: int | None) -> int:
    seconds = service.settings.default_ttl_seconds if ttl_seconds is None else ttl_seconds
    return service.clock() + seconds * SECOND


def _webhook_url(webhook: dict[str, str] | None) -> str | None:
    if webhook is None:
        return None
    try:
        check_url(webhook["url"])
    except InputError as error:
        raise Problem(400, "bad_request", str(error), field="webhook.url") from None
    return webhook["url"]


def _shown(service: Service, reading: Reads, number: int) -> dict[str, Any] | None:
    """Return a subscription as a response has it; None if it is gone."""
    row = reading.subscription_numbered(number, service.clock())
    return None if row is None else subscription_dict(row, reading.n_dead_letters(number))


def _with_secrets(service: Service, shown: dict[str, Any], prepared: _Prepared) -> dict[str, Any]:
    shown["ticket"] = prepared.ticket
    if prepared.new.webhook_url is not None:
        shown["webhook_secret"] = service.secret_key.webhook_secret(prepared.new.webhook_nonce)
    return shown


# -- subscribe ------------------------------------------------------------------------------------


def _stored(service: Service, tenant: int, one: _Prepared, writing: Writes) -> dict[str, Any]:
    now, limit = service.clock(), service.settings.max_subscriptions
    number = writing.subscribe(tenant, one.new, now, limit)
    row = Subscription(
        number,
        tenant,
        one.new.id,
        one.new.expression,
        now,
        one.new.expires_at,
        one.new.max_per_minute,
        one.new.webhook_url,
        one.new.webhook_nonce,
        0,
        0,
    )
    return _with_secrets(service, subscription_dict(row, 0), one)


async def subscribe(call: Call) -> Response:
    """Store one subscription."""
    service = call.service
    try:
        prepared = await call.work(lambda: _prepared(service, call.body))
        shown = await call.write(lambda w: _stored(service, call.tenant, prepared, w))
    except (Problem, MatchmillError) as error:
        problem = error if isinstance(error, Problem) else problem_of(error)
        if problem.status < 500:
            problem.rejecting("subscription", 0, call.body.get("subscription_id"))
        raise problem from error
    return json_response(shown, 201)


async def subscribe_many(call: Call, items: Sequence[Item], first_row: int) -> list[dict[str, Any]]:
    """Store many subscriptions; a bad one does not affect the others."""
    service = call.service
    form = call.request.app.state.forms.subscription

    def prepared(item: Item) -> _Prepared | Problem:
        try:
            if isinstance(item, Problem):
                return item
            check(item, form)
            return _prepared(service, item)
        except Problem as problem:
            return problem
        except MatchmillError as error:
            return problem_of(error)

    def store(first: int, some: Sequence[_Prepared | Problem], writing: Writes) -> list[Any]:
        results = []
        for k, one in enumerate(some, first):
            item = items[k]
            if isinstance(one, _Prepared):
                try:
                    results.append(_stored(service, call.tenant, one, writing))
                    continue
                except MatchmillError as error:
                    one = problem_of(error)
            id = item.get("subscription_id") if isinstance(item, dict) else None
            results.append(one.rejecting("subscription", first_row + k, id).to_dict())
        return results

    # In parts, so that others are served in between.
    results: list[dict[str, Any]] = []
    for first in range(0, len(items), _AT_ONCE):
        some = items[first : first + _AT_ONCE]
        ready = await call.work(partial(_each, prepared, some))
        work = partial(store, first, ready)
        results += await call.write(work, _ROWS_OF_ONE * len(ready))
    return results


def _each(
    prepared: Callable[[Item], _Prepared | Problem], items: Sequence[Item]
) -> list[_Prepared | Problem]:
    return [prepared(item) for item in items]


# -- replace and update ---------------------------------------------------------------------------


async def put_subscription(call: Call) -> Response:
    """Create a subscription, or replace one.

    Who replaces one has its ticket, or a key with the scope admin. A ticket in the header becomes
    the ticket of the subscription, so that a request can be repeated if no response arrived.
    """
    service, id = call.service, call.request.path_params["subscription_id"]
    if call.body.setdefault("subscription_id", id) != id:
        message = "subscription_id is not the id in the path"
        raise Problem(400, "bad_request", message, field="subscription_id")
    check({"subscription_id": id, "expression": "-"}, call.request.app.state.forms.subscription)
    ticket = call.request.headers.get(TICKET_HEADER)
    if ticket is not None and not _TICKET.fullmatch(ticket):
        message = "a ticket has 43 to 200 letters, digits, - and _"
        hint = "make it of 32 random bytes, in URL-safe base64"
        raise Problem(400, "bad_request", message, hint=hint, field=TICKET_HEADER)
    prepared = await call.work(lambda: _prepared(service, call.body, ticket))
    is_admin = call.key is not None and "admin" in call.key.scopes

    def store(writing: Writes) -> tuple[int | None, dict[str, Any]] | Problem:
        now, new = service.clock(), prepared.new
        by_ticket = None
        if ticket is not None:
            by_ticket = writing.by_ticket(id, service.secret_key.hashed(ticket), now)
        old = writing.subscription(call.tenant, id, now)
        if by_ticket is not None and (old is None or by_ticket.number != old.number):
            hint = "make a new ticket of 32 random bytes, in URL-safe base64"
            return Problem(409, "ticket_taken", "another subscription has this ticket", hint=hint)
        if old is None:
            if call.key is None:  # the ticket's subscription has just ended
                return no_such_subscription()
            return None, _stored(service, call.tenant, prepared, writing)
        if by_ticket is None and not is_admin:
            return _may_not_replace()
        if ticket is None:
            new = new._replace(ticket_hash=None)
        if new.webhook_url == old.webhook_url and old.webhook_nonce is not None:
            new = new._replace(webhook_nonce=bytes(old.webhook_nonce))
        writing.replace(old.number, new, now)
        shown = _shown(service, writing, old.number)
        assert shown is not None
        shown = _with_secrets(service, shown, prepared._replace(new=new))
        if ticket is None:
            del shown["ticket"]  # the old one stays
        return old.number, shown

    outcome = await call.write(store)
    if isinstance(outcome, Problem):
        raise outcome
    replaced, shown = outcome
    if replaced is None:
        return json_response(shown, 201)
    service.subscription_changed(replaced)  # who reads with the old ticket is to notice
    service.webhooks.wake()
    return json_response(shown)


def _may_not_replace() -> Problem:
    return Problem(
        403,
        "forbidden",
        "this key may not replace a subscription without its ticket",
        hint=f"send the ticket in the header {TICKET_HEADER}, or a key with the scope admin",
    )


async def update_subscription(call: Call) -> Response:
    """Change some fields of a subscription."""
    service, given, number = call.service, call.body, call.about.number
    if not given:
        hint = 'such as {"ttl_seconds": 3600}; null is the default'
        raise Problem(400, "bad_request", "there is no field to change", hint=hint)
    changes: dict[str, Any] = {}
    if "dialect" in given and "expression" not in given:
        problem = "a dialect is that of an expression, which is missing"
        raise Problem(400, "bad_request", problem, field="dialect")
    if "expression" in given:
        dialect = given.get("dialect", MATCHMILL)
        checked = await call.work(
            lambda: checked_expression(given["expression"], service.settings, dialect)
        )
        changes["expression"] = checked.text
    if "ttl_seconds" in given:
        changes["expires_at"] = _expires_at(service, given["ttl_seconds"])
    if "max_per_minute" in given:
        changes["max_per_minute"] = given["max_per_minute"]
    if "webhook" in given:
        changes["webhook_url"] = _webhook_url(given["webhook"])

    def store(writing: Writes) -> dict[str, Any] | None:
        now = service.clock()
        limit = service.settings.max_subscriptions if "expires_at" in changes else None
        old = writing.subscription_numbered(number, now if limit is None else 0)
        if old is None:
            return None
        nonce = None if old.webhook_nonce is None else bytes(old.webhook_nonce)
        if "webhook_url" in changes and changes["webhook_url"] != old.webhook_url:
            nonce = secrets.token_bytes(16)
        new = NewSubscription(
            old.id,
            old.expression,
            None,
            old.expires_at,
            old.max_per_minute,
            old.webhook_url,
            nonce or b"",
        )._replace(**changes)
        writing.replace(number, new, now, limit)
        shown = _shown(service, writing, number)
        assert shown is not None
        if changes.get("webhook_url") is not None:
            shown["webhook_secret"] = service.secret_key.webhook_secret(new.webhook_nonce)
        return shown

    shown = await call.write(store)
    if shown is None:
        raise no_such_subscription()
    service.subscription_changed(number)
    service.webhooks.wake()
    return json_response(shown)


# -- list, show, unsubscribe ----------------------------------------------------------------------


async def list_subscriptions(call: Call) -> Response:
    """List the subscriptions of the tenant, a page at a time."""
    service, limit, cursor = call.service, call.query["limit"], call.query["cursor"]
    now = service.clock()
    rows = await call.read(lambda r: r.subscriptions(call.tenant, cursor, limit + 1, now))
    sizes = (len(row.expression) for row in rows[:limit])
    n_shown = n_within(sizes, service.settings.max_page_size)
    page: dict[str, Any] = {"subscriptions": [listed_dict(row) for row in rows[:n_shown]]}
    if len(rows) > n_shown:
        page["next_cursor"] = rows[n_shown - 1].id
    return json_text_response(await call.work(lambda: compact(page)))


async def show_subscription(call: Call) -> Response:
    """Show one subscription."""
    number = call.about.number
    n_dead_letters = await call.read(lambda r: r.n_dead_letters(number))
    is_owner = call.key is None or "admin" in call.key.scopes
    return json_response(subscription_dict(call.about, n_dead_letters, is_owner=is_owner))


async def unsubscribe(call: Call) -> Response:
    """Remove a subscription, with its mailbox."""
    number = call.about.number
    if not await call.write(lambda w: w.unsubscribe(number)):
        raise no_such_subscription()
    call.service.subscription_changed(number)
    return Response(status_code=204)


def no_such_subscription() -> Problem:
    """Return the problem of a subscription that is not there, or whose ticket is another."""
    return Problem(
        404,
        "not_found",
        "there is no such subscription, or the ticket is not its own",
        hint="a subscription ends when it expires or is unsubscribed",
    )
