"""Subscribe, list, renew, cancel."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

from starlette.responses import Response

from matchmill.engine.expression_input import normal_form, read_expression
from matchmill.errors import ExpressionError, InputError, MatchmillError
from matchmill.service.database.interface import SECOND, NewSubscription, Writing
from matchmill.service.endpoint import Call, answer
from matchmill.service.json_body import iso
from matchmill.service.outbound import check_url
from matchmill.service.problems import Problem, problem_of
from matchmill.service.responses import listed_dict, subscription_dict
from matchmill.service.service import Service
from matchmill.service.validation import Schema, check
from matchmill.settings import Settings

__all__ = [
    "cancel",
    "no_such_subscription",
    "read_text",
    "renew",
    "show",
    "show_all",
    "subscribe",
    "subscribe_many",
]


class _Made(NamedTuple):
    """A subscription to store, and what its owner is told once."""

    new: NewSubscription
    told: dict[str, Any]


def read_text(service: Service, text: str) -> str:
    """An expression as it is understood; ExpressionError if it is not."""
    settings = Settings(max_expression_length=service.settings.max_expression_length)
    parsed = read_expression(text, settings)
    normal_form(text, parsed, settings)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(
            "the expression holds half of a character", text=text, position=error.start
        ) from None
    return str(parsed)


def _prepared(service: Service, given: dict[str, Any]) -> _Made:
    read_text(service, given["expression"])
    url = given["webhook"]["url"] if "webhook" in given else None
    if url is not None:
        try:
            check_url(url)
        except InputError as error:
            raise Problem(400, "bad_request", str(error), field="webhook.url") from None
    seconds = given.get("valid_seconds", service.settings.default_valid_seconds)
    ticket, nonce = secrets.token_urlsafe(32), secrets.token_bytes(16)
    new = NewSubscription(
        given.get("id") or secrets.token_hex(12),
        given["expression"],
        service.secret_key.hashed(ticket),
        service.clock() + seconds * SECOND,
        given.get("max_per_minute"),
        url,
        nonce,
    )
    told = {"id": new.id, "ticket": ticket, "expires_at": iso(new.expires_at)}
    if url is not None:
        told["webhook_secret"] = service.secret_key.webhook_secret(nonce)
    return _Made(new, told)


async def subscribe(call: Call) -> Response:
    service = call.service
    made = await service.work(lambda: _prepared(service, call.body))
    now, limit = service.clock(), service.settings.max_subscriptions
    await service.write(lambda w: w.subscribe(call.tenant, made.new, now, limit))
    return answer(made.told, 201)


async def subscribe_many(call: Call) -> Response:
    service, given = call.service, call.body["subscriptions"]
    form = call.request.app.state.forms.subscription
    prepared = await service.work(lambda: [_prepared_or_not(service, form, one) for one in given])
    now, limit = service.clock(), service.settings.max_subscriptions

    def store(transaction: Writing) -> list[dict[str, Any]]:
        results = []
        for one in prepared:
            if isinstance(one, _Made):
                try:
                    transaction.subscribe(call.tenant, one.new, now, limit)
                    results.append(one.told)
                except MatchmillError as error:
                    results.append({"id": one.new.id, "error": problem_of(error).to_dict()})
            else:
                results.append(one)
        return results

    results = await service.write(store)
    n_rejected = sum("error" in result for result in results)
    n_accepted = len(results) - n_rejected
    return answer({"results": results, "accepted": n_accepted, "rejected": n_rejected})


def _prepared_or_not(
    service: Service, form: Schema, given: dict[str, Any]
) -> _Made | dict[str, Any]:
    try:
        check(given, form)
        return _prepared(service, given)
    except Problem as problem:
        refused = problem
    except MatchmillError as error:
        refused = problem_of(error)
    told: dict[str, Any] = {"error": refused.to_dict()}
    if isinstance(given.get("id"), str):
        told["id"] = given["id"][:200]
    return told


async def show_all(call: Call) -> Response:
    service, limit, after = call.service, call.query["limit"], call.query["after"]
    now = service.clock()
    rows = await service.read(lambda r: r.subscriptions(call.tenant, after, limit + 1, now))
    told: dict[str, Any] = {"subscriptions": [listed_dict(row) for row in rows[:limit]]}
    if len(rows) > limit:
        told["next"] = rows[limit - 1].id
    return answer(told)


async def show(call: Call) -> Response:
    number = call.about.number
    n_dead_letters = await call.service.read(lambda r: r.n_dead_letters(number))
    return answer(subscription_dict(call.about, n_dead_letters))


async def renew(call: Call) -> Response:
    service, number = call.service, call.about.number
    seconds = (call.body or {}).get("valid_seconds", service.settings.default_valid_seconds)
    now = service.clock()
    expires_at = now + seconds * SECOND
    if not await service.write(lambda w: w.renew(number, expires_at, now)):
        raise no_such_subscription()
    return answer({"expires_at": iso(expires_at)})


async def cancel(call: Call) -> Response:
    number = call.about.number
    if not await call.service.write(lambda w: w.cancel(number)):
        raise no_such_subscription()
    call.service.told(number)
    return Response(status_code=204)


def no_such_subscription() -> Problem:
    return Problem(
        404,
        "not_found",
        "there is no such subscription, or the ticket is not its own",
        hint="subscriptions end when they are cancelled or their time is over",
    )
