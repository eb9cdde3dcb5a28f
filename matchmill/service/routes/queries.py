"""Queries, which change nothing: match, explain, check, backtest, stats."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.responses import Response

from matchmill.engine.check import check_one
from matchmill.engine.engine import Engine
from matchmill.engine.insights import insights_of
from matchmill.engine.seen_events import see_events
from matchmill.errors import EventError, ExpressionError
from matchmill.language.attribute_types import typed_event
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.language.expression import Expression
from matchmill.language.pattern_cost import pattern_steps
from matchmill.operators.explain import explain_with_operators
from matchmill.service.database.reads import Reads, n_within
from matchmill.service.database.rows import StoredEvent
from matchmill.service.endpoint import Call, json_response
from matchmill.service.expressions import checked_expression
from matchmill.service.json_body import compact
from matchmill.service.problems import Problem, problem_of, rejected_record
from matchmill.service.routes.subscriptions import no_such_subscription
from matchmill.service.service import Service

__all__ = ["backtest", "check_expression", "explain", "match", "stats"]

_MOST_EVENT_IDS = 100
_EVENTS_AT_ONCE = 1_000  # in memory
_SLICE_SECONDS = 0.1  # of a backtest
_EVENTS_OF_MOST_WORK = 10  # that a check looks at, if their patterns are as costly as allowed
_N_COSTLY = 10


async def match(call: Call) -> Response:
    """Find the subscriptions that an event satisfies."""
    service = call.service

    def matched_ids() -> list[str]:
        matched = service.engines.of(call.tenant).match([call.body["event"]])
        if matched.rejected:
            raise EventError(matched.rejected[0])
        now, numbers = service.clock(), matched.numbers[0]
        live = service.read_now(lambda r: r.live(call.tenant, numbers, now))
        return sorted(one.id for one in live)

    ids = await call.ask(matched_ids)
    return json_response({"matches": [{"subscription_id": id} for id in ids]})


async def explain(call: Call) -> Response:
    """Explain what one event lacks for one expression."""
    service, body = call.service, call.body
    if ("subscription_id" in body) == ("expression" in body):
        message = "give either a subscription_id or an expression"
        raise Problem(400, "bad_request", message, field="subscription_id")
    expression = body.get("expression")
    if expression is None:
        now, id = service.clock(), body["subscription_id"]
        found = await call.read(lambda r: r.subscription(call.tenant, id, now))
        if found is None:
            raise no_such_subscription()
        expression = found.expression
    dialect = body.get("dialect", MATCHMILL) if "expression" in body else MATCHMILL

    def explained() -> dict[str, Any]:
        checked = checked_expression(expression, service.settings, dialect)
        event = typed_event(body["event"], service.settings.attribute_types())
        explanation = explain_with_operators(checked.parsed, event, service.settings)
        return {
            "matched": explanation.matched,
            "n_missing": explanation.n_missing,
            "text": str(explanation),
            "tree": explanation.to_dict(),
        }

    return json_response(await call.ask(explained))


async def check_expression(call: Call) -> Response:
    """Check whether an expression can be read, and whether it makes sense for events."""
    service, expression = call.service, call.body["expression"]
    dialect = call.body.get("dialect", MATCHMILL)

    def found() -> dict[str, Any]:
        checked = checked_expression(expression, service.settings, dialect)
        types = service.settings.attribute_types()
        seen = see_events(_events_to_check(call, checked.parsed), service.settings, types=types)
        warnings = check_one(str(checked.parsed), checked.normal, seen, service.settings)
        return {
            "rejected": [
                {"kind": "event", "row": one.row, "id": None, "reason": one.reason}
                for one in seen.rejected[:_MOST_EVENT_IDS]
            ],
            "warnings": [
                {"kind": one.kind, "message": one.message, "suggestion": one.suggestion}
                for one in warnings
            ],
            "n_events": seen.n_events,
            "normalized": str(checked.parsed),
        }

    try:
        return json_response(await call.ask(found))
    except ExpressionError as error:
        problem = problem_of(error)
        record = rejected_record(problem, "subscription", 0, None)
        record |= {"detail": problem.detail, "code": problem.code, "hint": problem.hint}
        if problem.position is not None:
            record["position"] = problem.position
        return json_response({"rejected": [record], "warnings": [], "n_events": 0})


def _events_to_check(call: Call, expression: Expression) -> list[dict[str, Any]]:
    """Return the events of a request, or the latest ones if the key may read them.

    There are only as many as fit into a page, and as the patterns can be tried on in seconds.
    """
    settings = call.service.settings
    work = _EVENTS_OF_MOST_WORK * settings.max_pattern_work
    most = min(settings.max_page_size, work // max(1, pattern_steps(expression)))
    given: list[dict[str, Any]] | None = call.body.get("events")
    if given is not None:
        return given[: n_within(map(_size, given), most)]
    if call.key is None or not call.key.scopes & {"read", "admin"}:
        return []
    recent = call.service.read_now(
        lambda r: r.recent_events(call.tenant, _EVENTS_AT_ONCE, max_bytes=most)
    )
    return [json.loads(event.body) for event in recent]


def _size(event: dict[str, Any]) -> int:
    try:
        return len(compact(event))
    except (ValueError, RecursionError):
        raise EventError("an event has an infinite number, or is nested too deeply") from None


async def backtest(call: Call) -> Response:
    """Count the latest events that an expression would have matched."""
    service, expression = call.service, call.body["expression"]
    last, dialect = call.body.get("last", 1_000), call.body.get("dialect", MATCHMILL)
    checked = await call.work(lambda: checked_expression(expression, service.settings, dialect))

    def tried() -> dict[str, Any]:
        n_events = n_matches = 0
        ids: list[str] = []
        types = service.settings.attribute_types()
        settings = replace(service.settings.engine_settings(), background=False)
        with Engine(types=types, settings=settings) as engine:
            engine.subscribe("backtest", checked.parsed)
            for events in _slices(service, call.tenant, last):
                counts = engine.match_many([json.loads(event.body) for event in events]).counts
                found = [one.event_id for one, n in zip(events, counts, strict=True) if n]
                n_events += len(events)
                n_matches += len(found)
                ids = (found + ids)[-_MOST_EVENT_IDS:]
        return {"n_events": n_events, "n_matches": n_matches, "event_ids": ids}

    return json_response(await call.ask(tried))


def _slices(service: Service, tenant: int, n_events: int) -> Iterator[list[StoredEvent]]:
    """Yield the latest events, the latest first; fewer if matching them takes too long.

    A single event may take a second, so a slice has as many as took a part of that before.
    """
    deadline = time.monotonic() + service.settings.query_seconds
    n_slice = 1
    for events in _recent(service, tenant, n_events):
        while events:
            if (started := time.monotonic()) >= deadline:
                return
            yield events[-n_slice:]
            del events[-n_slice:]
            seconds = max(time.monotonic() - started, 1e-6)  # until the next one was asked for
            n_slice = max(1, min(2 * n_slice, int(n_slice * _SLICE_SECONDS / seconds)))


def _recent(service: Service, tenant: int, n_events: int) -> Iterator[list[StoredEvent]]:
    """Yield the latest events in parts, the latest first."""
    before, most = 2**63 - 1, service.settings.max_page_size
    while n_events > 0:
        n_asked = min(n_events, _EVENTS_AT_ONCE)
        question = partial(
            Reads.recent_events, tenant=tenant, limit=n_asked, before=before, max_bytes=most
        )
        events = service.read_now(question)
        if not events:
            return
        before = events[0].seq
        n_events -= len(events)
        yield events


async def stats(call: Call) -> Response:
    """Show figures of the tenant's engine, and of the service."""
    service = call.service

    def figures() -> dict[str, Any]:
        with service.engines.of(call.tenant).using() as engine:
            engine_stats = engine.stats()
            found = insights_of(engine._store, _N_COSTLY)
        now, load = service.clock(), service.load_of(call.tenant)
        numbers = [int(one.id) for one in found.costly]
        live = service.read_now(lambda r: r.live(call.tenant, numbers, now))
        ids = {one.number: one.id for one in live}
        costly = [
            {
                "subscription_id": ids[int(one.id)],
                "checked_per_event": round(one.checked_per_event, 6),
                "matched_per_event": round(one.matched_per_event, 6),
            }
            for one in found.costly
            if int(one.id) in ids
        ]
        return {
            "n_subscriptions": engine_stats.n_subscriptions,
            "n_clauses": engine_stats.n_clauses,
            "n_attributes": engine_stats.n_attributes,
            "n_deleted": engine_stats.n_deleted,
            "n_bytes": engine_stats.n_bytes,
            **service.metrics.rates(call.tenant),
            "n_queued_events": load["publish"]["n_queued"],
            "n_streams": load["streams"]["n_open"],
            "load": load,
            "costly": costly,
        }

    return json_response(await call.ask(figures))
