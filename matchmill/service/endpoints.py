"""All endpoints: one table that routes, admits, checks, and becomes /openapi.json."""

from __future__ import annotations

from matchmill.service.endpoint import Endpoint
from matchmill.service.routes import events as event_calls
from matchmill.service.routes import keys as key_calls
from matchmill.service.routes import mailboxes as mailbox_calls
from matchmill.service.routes import queries as question_calls
from matchmill.service.routes import subscriptions
from matchmill.service.schemas import ANSWERS, IDENTIFIER, SCOPES, SEQ, Forms

__all__ = ["endpoints"]

_ONE = "/v1/subscriptions/{id}"
_EVENTS = "text/event-stream"
_LINES = "application/x-ndjson"


def _limit(most: int, default: int) -> dict[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def endpoints(forms: Forms) -> tuple[Endpoint, ...]:
    after_id = IDENTIFIER | {"minLength": 0, "pattern": r"^[^/\x00-\x1f\x7f]*$", "default": ""}
    return (
        Endpoint(
            "POST",
            "/v1/subscriptions",
            "Subscribe. The ticket is shown once; it is needed to read, renew and cancel.",
            subscriptions.subscribe,
            scopes=("subscribe",),
            body=forms.subscription,
            status=201,
            answer=ANSWERS["made"],
            problems=(409, 422),
        ),
        Endpoint(
            "POST",
            "/v1/subscriptions/batch",
            "Subscribe many at once; those that cannot be are told with their reason.",
            subscriptions.subscribe_many,
            scopes=("subscribe",),
            body=forms.subscriptions,
            answer=ANSWERS["made_many"],
        ),
        Endpoint(
            "GET",
            "/v1/subscriptions",
            "List the tenant's subscriptions by id; `next` goes into `after`.",
            subscriptions.show_all,
            scopes=("read",),
            query={"limit": _limit(1_000, 100), "after": after_id},
            answer=ANSWERS["listed"],
        ),
        Endpoint(
            "GET",
            _ONE,
            "Show one subscription.",
            subscriptions.show,
            scopes=("read",),
            by_ticket=True,
            answer=ANSWERS["subscription"],
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{_ONE}/renew",
            "Have a subscription last longer, from now on. One that has expired is gone.",
            subscriptions.renew,
            by_ticket=True,
            body=forms.renewal,
            body_may_be_absent=True,
            answer=ANSWERS["renewed"],
            problems=(404,),
        ),
        Endpoint(
            "DELETE",
            _ONE,
            "Cancel a subscription, with its mailbox.",
            subscriptions.cancel,
            scopes=("admin",),
            by_ticket=True,
            status=204,
            problems=(404,),
        ),
        Endpoint(
            "POST",
            "/v1/events",
            "Publish an event; a repeated event_id gets the first answer and does nothing.",
            event_calls.publish,
            scopes=("publish",),
            is_anonymous=True,
            body=forms.event,
            answer=ANSWERS["published"],
            problems=(422,),
        ),
        Endpoint(
            "POST",
            "/v1/events/batch",
            "Publish many events; those that cannot be are told with their reason.",
            event_calls.publish_many,
            scopes=("publish",),
            is_anonymous=True,
            body=forms.events,
            answer=ANSWERS["published_many"],
        ),
        Endpoint(
            "POST",
            "/v1/events/stream",
            "Publish events as JSON lines, however many; a line of result for each.",
            event_calls.publish_stream,
            scopes=("publish",),
            is_anonymous=True,
            body=forms.event,
            sends_lines=True,
            streams=_LINES,
        ),
        Endpoint(
            "POST",
            "/v1/test",
            "Which subscriptions an event satisfies; nothing is stored or delivered.",
            question_calls.test,
            scopes=("read",),
            body=forms.test,
            answer=ANSWERS["tested"],
            problems=(422,),
        ),
        Endpoint(
            "POST",
            "/v1/explain",
            "Why an event satisfies an expression or a subscription, or what is missing.",
            question_calls.explain,
            scopes=("read",),
            body=forms.explain,
            answer=ANSWERS["explained"],
            problems=(404, 422),
        ),
        Endpoint(
            "POST",
            "/v1/check",
            "Whether an expression can be read; if not, where the mistake is.",
            question_calls.check_expression,
            scopes=SCOPES,
            body=forms.check,
            answer=ANSWERS["checked"],
        ),
        Endpoint(
            "POST",
            "/v1/backtest",
            "How many of the latest events an expression would have matched.",
            question_calls.backtest,
            scopes=("read",),
            body=forms.backtest,
            answer=ANSWERS["backtested"],
            problems=(422,),
        ),
        Endpoint(
            "GET",
            f"{_ONE}/matches",
            "Read the mailbox after a seq; with `wait`, for so many seconds if it is empty.",
            mailbox_calls.matches,
            by_ticket=True,
            query={
                "after": SEQ | {"default": 0},
                "limit": _limit(1_000, 100),
                "wait": {"type": "integer", "minimum": 0, "maximum": 60, "default": 0},
            },
            answer=ANSWERS["matches"],
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{_ONE}/ack",
            "Matches up to a seq have arrived: they are never sent again.",
            mailbox_calls.acknowledge,
            by_ticket=True,
            body=forms.acknowledgement,
            status=204,
            problems=(404,),
        ),
        Endpoint(
            "GET",
            f"{_ONE}/stream",
            "The mailbox as server-sent events; Last-Event-ID says where to go on.",
            mailbox_calls.stream,
            by_ticket=True,
            streams=_EVENTS,
            problems=(404,),
        ),
        Endpoint(
            "GET",
            f"{_ONE}/dead-letters",
            "Matches that the webhook would not take.",
            mailbox_calls.dead_letters,
            by_ticket=True,
            answer=ANSWERS["dead_letters"],
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{_ONE}/dead-letters/retry",
            "Put dead letters back into the mailbox.",
            mailbox_calls.retry_dead_letters,
            by_ticket=True,
            answer=ANSWERS["retried"],
            problems=(404,),
        ),
        Endpoint(
            "GET",
            "/v1/live",
            "Matches of the tenant as they happen, as server-sent events; not durable.",
            mailbox_calls.live,
            scopes=("read",),
            streams=_EVENTS,
        ),
        Endpoint(
            "GET",
            "/v1/stats",
            "Rates, latencies, and the most expensive subscriptions.",
            question_calls.stats,
            scopes=("read",),
            answer=ANSWERS["stats"],
        ),
        Endpoint(
            "POST",
            "/v1/keys",
            "Make an API key of this tenant; its secret is shown once.",
            key_calls.add_key,
            scopes=("admin",),
            body=forms.key,
            status=201,
            answer=ANSWERS["key"],
        ),
        Endpoint(
            "GET",
            "/v1/keys",
            "List the tenant's keys, without their secrets.",
            key_calls.show_keys,
            scopes=("admin",),
            answer=ANSWERS["keys"],
        ),
        Endpoint(
            "DELETE",
            "/v1/keys/{key_id}",
            "Revoke a key.",
            key_calls.revoke_key,
            scopes=("admin",),
            status=204,
            problems=(404,),
        ),
    )
