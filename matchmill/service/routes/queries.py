"""Questions that change nothing: test, explain, check, backtest, stats."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from matchmill.engine.engine import Engine
from matchmill.engine.expression_input import read_expression
from matchmill.engine.insights import insights_of
from matchmill.errors import EventError, ExpressionError
from matchmill.operators.explain import explain_with_operators
from matchmill.service.endpoint import Call, answer
from matchmill.service.problems import Problem, problem_of
from matchmill.service.routes.subscriptions import no_such_subscription, read_text
from matchmill.settings import Settings

__all__ = ["backtest", "check_expression", "explain", "stats", "test"]

_SAMPLE = 100
_COSTLY = 10


async def test(call: Call) -> Response:
    service = call.service

    def matches() -> list[str]:
        matched = service.engines.of(call.tenant).match([call.body["event"]])
        if matched.rejected:
            raise EventError(matched.rejected[0])
        now, numbers = service.clock(), matched.numbers[0]
        live = service.read_now(lambda r: r.live(call.tenant, numbers, now))
        return sorted(one.id for one in live)

    return answer({"matches": await service.work(matches)})


async def explain(call: Call) -> Response:
    service, body = call.service, call.body
    if ("id" in body) == ("expression" in body):
        message = "give either the id of a subscription or an expression"
        raise Problem(400, "bad_request", message, field="id")
    text = body.get("expression")
    if text is None:
        now = service.clock()
        found = await service.read(lambda r: r.subscription(call.tenant, body["id"], now))
        if found is None:
            raise no_such_subscription()
        text = found.expression

    def explained() -> dict[str, Any]:
        read_text(service, text)
        explanation = explain_with_operators(read_expression(text), body["event"])
        return {
            "matches": explanation.truth is True,
            "tree": explanation.to_dict(),
            "text": str(explanation),
        }

    return answer(await service.work(explained))


async def check_expression(call: Call) -> Response:
    text = call.body["expression"]
    try:
        normalized = await call.service.work(lambda: read_text(call.service, text))
    except ExpressionError as error:
        return answer({"ok": False, "error": problem_of(error).to_dict()})
    return answer({"ok": True, "normalized": normalized})


async def backtest(call: Call) -> Response:
    service, text = call.service, call.body["expression"]
    last = call.body.get("last", 1_000)

    def tried() -> dict[str, Any]:
        read_text(service, text)
        events = service.read_now(lambda r: r.recent_events(call.tenant, last))
        with Engine(settings=Settings(background=False)) as engine:
            engine.subscribe("backtest", text)
            matches = engine.match_many([json.loads(event.body) for event in events])
        ids = [event.event_id for event, n in zip(events, matches.counts, strict=True) if n]
        return {"events": len(events), "matched": len(ids), "sample": ids[-_SAMPLE:]}

    return answer(await service.work(tried))


async def stats(call: Call) -> Response:
    service = call.service

    def figures() -> dict[str, Any]:
        engine = service.engines.of(call.tenant).engine
        found = insights_of(engine, _COSTLY)
        now = service.clock()
        numbers = [int(one.id) for one in found.costly]
        live = service.read_now(lambda r: r.live(call.tenant, numbers, now))
        ids = {one.number: one.id for one in live}
        costly = [
            {
                "id": ids[int(one.id)],
                "checked_per_event": round(one.checked_per_event, 6),
                "matched_per_event": round(one.matched_per_event, 6),
            }
            for one in found.costly
            if int(one.id) in ids
        ]
        return {
            "subscriptions": len(engine),
            **service.metrics.rates(call.tenant),
            "queued_events": service.publisher.n_queued,
            "streams": service.hub.n_streams,
            "costly": costly,
        }

    return answer(await service.work(figures))
