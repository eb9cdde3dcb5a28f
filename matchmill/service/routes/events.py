"""Publish: one event, or many."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from matchmill.errors import EventError
from matchmill.service.database.rows import Published
from matchmill.service.endpoint import Call, Item, json_response
from matchmill.service.json_body import compact
from matchmill.service.many import SMALL_LIST
from matchmill.service.problems import Problem, problem_of
from matchmill.service.publisher import Incoming
from matchmill.service.validation import Schema, check

__all__ = ["publish", "publish_many"]


def _incoming(given: dict[str, Any]) -> Incoming:
    try:
        body = compact(given["event"])
    except (ValueError, RecursionError):
        raise EventError("the event has an infinite number, or is nested too deeply") from None
    event_id = given.get("event_id")
    return Incoming(event_id or _new_id(), given["event"], body, event_id is not None)


def _new_id() -> str:
    """Return a unique id; later ones are greater, which keeps the store's index dense."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(8)}"


async def _published(call: Call, events: Sequence[Incoming]) -> list[Published | Problem]:
    """Publish events; return for each what became of it."""
    started = time.perf_counter()
    outcomes = await asyncio.wrap_future(call.service.publisher.publish(call.tenant, events))
    results: list[Published | Problem] = []
    n_matches = n_published = 0
    for outcome in outcomes:
        if isinstance(outcome, Published) and outcome.is_conflict:
            results.append(_conflict(outcome.event_id))
        elif isinstance(outcome, Published):
            n_matches += 0 if outcome.is_repeated else outcome.n_matches
            n_published += not outcome.is_repeated
            results.append(outcome)
        elif isinstance(outcome, Problem):
            results.append(outcome)
        else:
            results.append(problem_of(EventError(outcome)))
    seconds = time.perf_counter() - started
    call.service.metrics.published(call.tenant, n_published, n_matches, seconds)
    return results


def _conflict(event_id: str) -> Problem:
    return Problem(
        409,
        "event_id_taken",
        f"there is another event with the event_id {event_id!r}",
        hint="the same event may be sent again, and another one needs another event_id",
        field="event_id",
    )


def _published_dict(published: Published) -> dict[str, Any]:
    return {"event_id": published.event_id, "n_matches": published.n_matches}


async def publish(call: Call) -> Response:
    """Publish one event."""
    given_id = call.body.get("event_id")
    try:
        prepare = partial(_incoming, call.body)
        incoming = await call.work(prepare) if call.is_large else prepare()
        (result,) = await _published(call, [incoming])
    except EventError as error:
        result = problem_of(error)
    if isinstance(result, Problem):
        raise result.rejecting("event", 0, given_id)
    return json_response(_published_dict(result))


async def publish_many(call: Call, items: Sequence[Item], first_row: int) -> list[dict[str, Any]]:
    """Publish many events; a bad one does not affect the others."""
    form: Schema = call.request.app.state.forms.event
    results: list[dict[str, Any]] = [{} for _ in items]
    rows: list[int] = []
    events: list[Incoming] = []

    def prepare() -> None:
        for k, item in enumerate(items):
            try:
                if isinstance(item, Problem):
                    raise item
                check(item, form)
                events.append(_incoming(item))
                rows.append(k)
            except Problem as problem:
                results[k] = _rejected(problem, first_row + k, item)
            except EventError as error:
                results[k] = _rejected(problem_of(error), first_row + k, item)

    if len(items) <= SMALL_LIST:
        prepare()
    else:
        await call.work(prepare)
    if events:
        for k, outcome in zip(rows, await _published(call, events), strict=True):
            if isinstance(outcome, Problem):
                results[k] = _rejected(outcome, first_row + k, items[k])
            else:
                results[k] = _published_dict(outcome)
    return results


def _rejected(problem: Problem, row: int, item: Item) -> dict[str, Any]:
    event_id = item.get("event_id") if isinstance(item, dict) else None
    return problem.rejecting("event", row, event_id).to_dict()
