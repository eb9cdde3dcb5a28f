"""Subscriptions about lists, and events that have some.

    patterns        JSON patterns: 1-3 of 300 tags, half with one of 5,000 names, most with a source
    contains        `contains any`, `all` or `none` of 2-4 tags, a kind, half with a price
    any             `contains any` of 2 tags, and a kind; `or` writes the same with `or`
    few             `contains any` of 2 of 12 tags, and a kind
    long            the subscriptions of `contains`, lists of 200 elements
    all, none       the subscriptions of `contains` with one of these alone
    ranges          any(scores) between bounds of four digits, and a kind
    anything_but    JSON patterns: a tag that is not one of 1-3, one of 2 kinds
    scalars         the subscriptions of `patterns`, events with one tag and one name, not in lists

Tags of all but `patterns` and `few` are drawn from 2,000 with frequencies that fall as 1 / rank. A
workload of a seed is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from matchmill.errors import InputError, did_you_mean, shown

__all__ = ["LIST_WORKLOADS", "ListWorkload", "list_workload"]

_N_TAGS, _N_UNIFORM, _N_FEW = 2000, 300, 12
_N_NAMES, _N_SOURCES, _N_KINDS = 5000, 50, 20

Expression = str | dict[str, Any]
Event = dict[str, Any]


class ListWorkload(NamedTuple):
    """Subscriptions by id, and events."""

    subscriptions: dict[str, Expression]
    events: list[Event]


def list_workload(name: str, n_subscriptions: int, n_events: int, seed: int = 1) -> ListWorkload:
    """Return a workload by its name."""
    if name not in LIST_WORKLOADS:
        hint = did_you_mean(name, LIST_WORKLOADS)
        raise InputError(f"no workload {shown(name)}; there are: {', '.join(LIST_WORKLOADS)}{hint}")
    expression, event = LIST_WORKLOADS[name]
    draw, draw_event = Random(f"{name} {seed}"), Random(f"events of {name} {seed}")
    return ListWorkload(
        {str(i): expression(draw) for i in range(n_subscriptions)},
        [event(draw_event) for _ in range(n_events)],
    )


def _tag(draw: Random) -> str:
    return f"tag{int(_N_TAGS ** draw.random()) - 1}"


def _tags(draw: Random, n: int) -> list[str]:
    return [_tag(draw) for _ in range(n)]


def _kind(draw: Random) -> str:
    return f"k{draw.randrange(_N_KINDS)}"


# -- subscriptions --------------------------------------------------------------------------------


def _pattern(draw: Random) -> Expression:
    pattern: dict[str, Any] = {
        "tags": [f"tag{n}" for n in draw.sample(range(_N_UNIFORM), draw.randint(1, 3))]
    }
    if draw.random() < 0.5:
        pattern["names"] = [f"n{draw.randrange(_N_NAMES)}" for _ in range(draw.randint(1, 3))]
    if draw.random() < 0.6:
        pattern["source"] = [f"s{draw.randrange(_N_SOURCES)}" for _ in range(draw.randint(1, 3))]
    return pattern


def _contains(draw: Random, mode: str = "") -> Expression:
    chosen = mode or draw.choices(("any", "all", "none"), (0.6, 0.25, 0.15))[0]
    tags = ", ".join(f"'{tag}'" for tag in _tags(draw, draw.randint(2, 4)))
    text = f"tags contains {chosen} ({tags}) and kind = '{_kind(draw)}'"
    return f"{text} and price > {draw.randrange(1000)}" if draw.random() < 0.5 else text


def _contains_any(draw: Random) -> Expression:
    first, second = _tags(draw, 2)
    return f"tags contains any ('{first}', '{second}') and kind = '{_kind(draw)}'"


def _contains_or(draw: Random) -> Expression:
    first, second = _tags(draw, 2)
    found = f"(tags contains '{first}' or tags contains '{second}')"
    return f"{found} and kind = '{_kind(draw)}'"


def _contains_few(draw: Random) -> Expression:
    first, second = draw.sample(range(_N_FEW), 2)
    return f"tags contains any ('tag{first}', 'tag{second}') and kind = '{_kind(draw)}'"


def _range(draw: Random) -> Expression:
    low = draw.randrange(10_000)
    return f"any(scores) between {low} and {low + draw.randrange(500)} and kind = '{_kind(draw)}'"


def _anything_but(draw: Random) -> Expression:
    excluded = _tags(draw, draw.randint(1, 3))
    return {"tags": [{"anything-but": excluded}], "kind": [_kind(draw), _kind(draw)]}


# -- events ---------------------------------------------------------------------------------------


def _pattern_event(draw: Random) -> Event:
    return {
        "tags": [f"tag{n}" for n in draw.sample(range(_N_UNIFORM), 8)],
        "names": [f"n{draw.randrange(_N_NAMES)}" for _ in range(4)],
        "source": f"s{draw.randrange(_N_SOURCES)}",
    }


def _scalar_event(draw: Random) -> Event:
    event = _pattern_event(draw)
    return event | {"tags": event["tags"][0], "names": event["names"][0]}


def _event(draw: Random, n_tags: int = 0) -> Event:
    tags = _tags(draw, n_tags or draw.randint(1, 20))
    return {"tags": tags, "kind": _kind(draw), "price": draw.random() * 1000}


def _few_event(draw: Random) -> Event:
    tags = [f"tag{n}" for n in draw.sample(range(_N_FEW), 3)]
    return {"tags": tags, "kind": _kind(draw)}


def _range_event(draw: Random) -> Event:
    scores = [draw.random() * 10_000 for _ in range(draw.randint(1, 10))]
    return {"scores": scores, "kind": _kind(draw)}


LIST_WORKLOADS: dict[str, tuple[Callable[[Random], Expression], Callable[[Random], Event]]] = {
    "patterns": (_pattern, _pattern_event),
    "contains": (_contains, _event),
    "any": (_contains_any, _event),
    "or": (_contains_or, _event),
    "few": (_contains_few, _few_event),
    "long": (_contains, lambda draw: _event(draw, 200)),
    "all": (lambda draw: _contains(draw, "all"), _event),
    "none": (lambda draw: _contains(draw, "none"), _event),
    "ranges": (_range, _range_event),
    "anything_but": (_anything_but, _event),
    "scalars": (_pattern, _scalar_event),
}
