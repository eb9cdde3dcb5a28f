"""Queries, which change nothing: match, explain, check, backtest, stats."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from matchmill.engine.engine import Engine
from matchmill.engine.insights import insights_of
from matchmill.errors import EventError, ExpressionError
from matchmill.operators.explain import explain_with_operators
from matchmill.service.endpoint import Call, json_response
from matchmill.service.expressions import checked_expression
from matchmill.service.problems import Problem, problem_of, rejected_record
from matchmill.service.routes.subscriptions import no_such_subscription
from matchmill.settings import Settings

__all__ = ["backtest", "check_expression", "explain", "match", "stats"]

_MOST_EVENT_IDS = 100
_N_COSTLY = 10
_WARNINGS = {
    "never": "no event can match: the conditions contradict each other",
    "always": "every event matches: the conditions are always true",
}


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

    ids = await service.work(matched_ids)
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
        found = await service.read(lambda r: r.subscription(call.tenant, id, now))
        if found is None:
            raise no_such_subscription()
        expression = found.expression

    def explained() -> dict[str, Any]:
        checked = checked_expression(expression, service.settings)
        explanation = explain_with_operators(checked.parsed, body["event"])
        return {
            "matched": explanation.matched,
            "n_missing": explanation.n_missing,
            "text": str(explanation),
            "tree": explanation.to_dict(),
        }

    return json_response(await service.work(explained))


async def check_expression(call: Call) -> Response:
    """Check whether an expression can be read, and whether it makes sense."""
    service, expression = call.service, call.body["expression"]
    try:
        checked = await service.work(lambda: checked_expression(expression, service.settings))
    except ExpressionError as error:
        problem = problem_of(error)
        record = rejected_record(problem, "subscription", 0, None)
        record |= {"detail": problem.detail, "code": problem.code, "hint": problem.hint}
        if problem.position is not None:
            record["position"] = problem.position
        return json_response({"rejected": [record], "warnings": []})
    warnings = []
    if checked.normal.kind in _WARNINGS:
        kind = checked.normal.kind
        warnings.append({"kind": kind, "message": _WARNINGS[kind]})
    return json_response({"rejected": [], "warnings": warnings, "normalized": str(checked.parsed)})


async def backtest(call: Call) -> Response:
    """Count the latest events that an expression would have matched."""
    service, expression = call.service, call.body["expression"]
    last = call.body.get("last", 1_000)

    def tried() -> dict[str, Any]:
        checked = checked_expression(expression, service.settings)
        events = service.read_now(lambda r: r.recent_events(call.tenant, last))
        with Engine(settings=Settings(background=False)) as engine:
            engine.subscribe("backtest", checked.parsed)
            matches = engine.match_many([json.loads(event.body) for event in events])
        ids = [event.event_id for event, n in zip(events, matches.counts, strict=True) if n]
        return {
            "n_events": len(events),
            "n_matches": len(ids),
            "event_ids": ids[-_MOST_EVENT_IDS:],
        }

    return json_response(await service.work(tried))


async def stats(call: Call) -> Response:
    """Show figures of the tenant's engine, and of the service."""
    service = call.service

    def figures() -> dict[str, Any]:
        with service.engines.of(call.tenant).using() as engine:
            engine_stats = engine.stats()
            found = insights_of(engine, _N_COSTLY)
        now = service.clock()
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
            "n_queued_events": service.publisher.n_queued,
            "n_streams": service.hub.n_streams,
            "costly": costly,
        }

    return json_response(await service.work(figures))
