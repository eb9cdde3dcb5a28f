"""All endpoints: one table that routes, admits, checks, and becomes /openapi.json."""

from __future__ import annotations

from matchmill.service.endpoint import Endpoint
from matchmill.service.routes import events, keys, mailboxes, queries, subscriptions
from matchmill.service.schemas import IDENTIFIER, RESPONSES, SCOPES, SEQ, Forms

__all__ = ["endpoints"]

_ONE = "/v1/subscriptions/{subscription_id}"
_EVENT_STREAM = "text/event-stream"


def _limit(most: int, default: int) -> dict[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def endpoints(forms: Forms) -> tuple[Endpoint, ...]:
    """Return the table; the limits of the forms are settings."""
    return (*_of_subscriptions(forms), *_of_mailboxes(forms), *_of_events(forms), *_of_keys(forms))


def _of_subscriptions(forms: Forms) -> tuple[Endpoint, ...]:
    cursor = IDENTIFIER | {"minLength": 0, "pattern": r"^[^/\x00-\x1f\x7f]*$", "default": ""}
    return (
        Endpoint(
            "POST",
            "/v1/subscriptions",
            "Subscribe. The ticket is shown once; it is needed to read matches and to renew.",
            subscriptions.subscribe,
            scopes=("subscribe",),
            body=forms.subscription,
            many=subscriptions.subscribe_many,
            status=201,
            response=RESPONSES["subscription"],
            problems=(409, 422),
        ),
        Endpoint(
            "GET",
            "/v1/subscriptions",
            "List the tenant's subscriptions by id; `next_cursor` is the next page's `cursor`.",
            subscriptions.list_subscriptions,
            scopes=("read",),
            query={"limit": _limit(1_000, 100), "cursor": cursor},
            response=RESPONSES["subscriptions"],
        ),
        Endpoint(
            "GET",
            _ONE,
            "Show one subscription.",
            subscriptions.show_subscription,
            scopes=("read",),
            by_ticket=True,
            response=RESPONSES["subscription"],
            problems=(404,),
        ),
        Endpoint(
            "PUT",
            _ONE,
            "Create a subscription, or replace one; its matches are kept. A caller who brings the"
            " ticket can repeat the request.",
            subscriptions.put_subscription,
            scopes=("subscribe", "admin"),
            by_ticket=True,
            may_create=True,
            body=forms.subscription,
            response=RESPONSES["subscription"],
            problems=(404, 409, 422),
        ),
        Endpoint(
            "PATCH",
            _ONE,
            "Change a subscription; `ttl_seconds` renews it, from now on, also for a"
            " while after it has expired.",
            subscriptions.update_subscription,
            scopes=("admin",),
            by_ticket=True,
            may_restore=True,
            body=forms.update,
            response=RESPONSES["subscription"],
            problems=(404, 409, 422),
        ),
        Endpoint(
            "DELETE",
            _ONE,
            "Unsubscribe; the mailbox is deleted, too.",
            subscriptions.unsubscribe,
            scopes=("admin",),
            by_ticket=True,
            status=204,
            problems=(404,),
        ),
    )


def _of_mailboxes(forms: Forms) -> tuple[Endpoint, ...]:
    return (
        Endpoint(
            "GET",
            f"{_ONE}/matches",
            "Read the matches after a seq; with `wait`, wait so many seconds for the first one."
            " With `Accept: text/event-stream`, follow them as server-sent events.",
            mailboxes.matches,
            by_ticket=True,
            query={
                "after": SEQ | {"default": 0},
                "limit": _limit(1_000, 100),
                "wait": {"type": "integer", "minimum": 0, "maximum": 60, "default": 0},
            },
            response=RESPONSES["matches"],
            streams=_EVENT_STREAM,
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{_ONE}/acknowledge",
            "Acknowledge the matches up to a seq: they are never sent again.",
            mailboxes.acknowledge,
            by_ticket=True,
            body=forms.acknowledgement,
            status=204,
            problems=(404,),
        ),
        Endpoint(
            "GET",
            f"{_ONE}/dead-letters",
            "List the matches after a seq that the webhook did not accept.",
            mailboxes.dead_letters,
            by_ticket=True,
            query={"after": SEQ | {"default": 0}, "limit": _limit(1_000, 1_000)},
            response=RESPONSES["dead_letters"],
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{_ONE}/dead-letters/retry",
            "Put dead letters back into the mailbox.",
            mailboxes.retry_dead_letters,
            by_ticket=True,
            response=RESPONSES["retried"],
            problems=(404,),
        ),
        Endpoint(
            "GET",
            "/v1/live",
            "Follow the tenant's matches as they happen, as server-sent events; not durable.",
            mailboxes.live,
            scopes=("read",),
            streams=_EVENT_STREAM,
        ),
    )


def _of_events(forms: Forms) -> tuple[Endpoint, ...]:
    return (
        Endpoint(
            "POST",
            "/v1/events",
            "Publish an event. A repeated event_id gets the first response and changes nothing;"
            " with another event it is rejected.",
            events.publish,
            scopes=("publish",),
            is_anonymous=True,
            body=forms.event,
            many=events.publish_many,
            response=RESPONSES["published"],
            problems=(409, 422),
        ),
        Endpoint(
            "POST",
            "/v1/match",
            "Find the subscriptions that an event satisfies; nothing is stored or delivered.",
            queries.match,
            scopes=("read",),
            body=forms.match,
            response=RESPONSES["match"],
            problems=(422,),
        ),
        Endpoint(
            "POST",
            "/v1/explain",
            "Explain why an event satisfies a subscription or an expression, or what is missing.",
            queries.explain,
            scopes=("read",),
            body=forms.explain,
            response=RESPONSES["explain"],
            problems=(404, 422),
        ),
        Endpoint(
            "POST",
            "/v1/check",
            "Check an expression: can it be read, where is the mistake, does it fit the events?",
            queries.check_expression,
            scopes=SCOPES,
            body=forms.check,
            response=RESPONSES["check"],
        ),
        Endpoint(
            "POST",
            "/v1/backtest",
            "Count how many of the latest events an expression would have matched.",
            queries.backtest,
            scopes=("read",),
            body=forms.backtest,
            response=RESPONSES["backtest"],
            problems=(422,),
        ),
        Endpoint(
            "GET",
            "/v1/stats",
            "Show rates, latencies, and the most expensive subscriptions.",
            queries.stats,
            scopes=("read",),
            response=RESPONSES["stats"],
        ),
    )


def _of_keys(forms: Forms) -> tuple[Endpoint, ...]:
    return (
        Endpoint(
            "POST",
            "/v1/keys",
            "Make an API key of this tenant; its secret is shown once.",
            keys.add_key,
            scopes=("admin",),
            body=forms.key,
            status=201,
            response=RESPONSES["key"],
        ),
        Endpoint(
            "GET",
            "/v1/keys",
            "List the tenant's keys, without their secrets.",
            keys.list_keys,
            scopes=("admin",),
            response=RESPONSES["keys"],
        ),
        Endpoint(
            "DELETE",
            "/v1/keys/{key_id}",
            "Revoke a key.",
            keys.revoke_key,
            scopes=("admin",),
            status=204,
            problems=(404,),
        ),
    )
