"""Rows of `script/bench data`: wide and sparse events, many matches, few subscriptions."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import matchmill as mm
from benchmarks.support.data_rows import TURNS, Measured, Size, as_list, one_by_one, row

# -- wide and sparse events -----------------------------------------------------------------------


def equalities(n: int, n_attributes: int, values: list[Any], seed: int = 1) -> mm.Engine:
    """Return subscriptions with three equalities each."""
    draw = random.Random(seed)
    texts = {}
    for i in range(n):
        names = draw.sample(range(n_attributes), 3)
        texts[i] = " and ".join(f"a{name} = {draw.choice(values)!r}" for name in names)
    return mm.Engine(texts)


def events_with(n: int, n_attributes: int, n_each: int, values: list[Any]) -> list[dict[str, Any]]:
    """Return events that have some of the attributes each."""
    draw = random.Random(2)
    names = [f"a{i}" for i in range(n_attributes)]
    return [{name: draw.choice(values) for name in draw.sample(names, n_each)} for _ in range(n)]


@row("2,000 sparse attributes, 20 per event, 10k subscriptions: list of dicts", 15)
def sparse_list(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(10_000), 2000, values)
    events = events_with(TURNS * size.n_events, 2000, 20, values)
    return as_list(engine, events)


@row("the same, one by one", 15)
def sparse_single(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(10_000), 2000, values)
    events = events_with(TURNS * size.n_events, 2000, 20, values)
    return one_by_one(engine, events)


@row("200 attributes per event, 1k subscriptions: list of dicts", 15)
def wide_list(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 200, values)
    events = events_with(TURNS * size.n_events, 200, 200, values)
    return as_list(engine, events)


@row("the same, one by one", 15)
def wide_single(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 200, values)
    events = events_with(TURNS * size.n_events, 200, 200, values)
    return one_by_one(engine, events)


@row("200 attributes per event, 20 of them asked for: list of dicts", 15)
def wide_unasked_list(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 20, values)
    events = events_with(TURNS * size.n_events, 200, 200, values)
    return as_list(engine, events)


@row("the same, one by one", 15)
def wide_unasked_single(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 20, values)
    events = events_with(TURNS * size.n_events, 200, 200, values)
    return one_by_one(engine, events)


@row("200,000 attributes, 50 per event, 100k subscriptions: list of dicts", 30)
def world_list(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(100_000), 200_000, values)
    events = events_with(TURNS * size.n_events, 200_000, 50, values)
    return as_list(engine, events)


@row("the same, one by one", 30)
def world_single(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(100_000), 200_000, values)
    events = events_with(TURNS * size.n_events, 200_000, 50, values)
    return one_by_one(engine, events)


@row("Arrow table of 1,000 columns, 10 of them asked for")
def wide_arrow(size: Size) -> Measured:
    import pyarrow as pa

    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 10, values)
    draw = random.Random(3)
    n = min(size.n_events, 2000)
    table = pa.table({f"a{i}": draw.choices(values, k=n) for i in range(1000)})
    return partial(engine.match_many, table, threads=1), n


# -- what comes out -------------------------------------------------------------------------------


def _matching(
    size: Size, ids: Callable[[int], Any], bound: int = 1
) -> tuple[mm.Engine, list[dict[str, Any]]]:
    """Return events with 500 matches each; with a large bound hardly two have the same."""
    n = 50_000
    engine = mm.Engine({ids(i): f"a = {i % 100} and b < {100 + i}" for i in range(n)})
    draw = random.Random(12)
    events = [
        {"a": i % 100, "b": draw.randrange(bound), "c": i}
        for i in range(TURNS * max(100, size.n_events // 10))
    ]
    return engine, events


@row("500 matches per event: one by one, ids are texts", 25)
def many_matches_text(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: f"subscription-{i}")
    return one_by_one(engine, events)


@row("500 matches per event: one by one, ids are numbers", 25)
def many_matches_number(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: i)
    return one_by_one(engine, events)


@row("475 matches per event, which are not the same twice: one by one, ids are texts", 25)
def many_other_matches_text(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: f"subscription-{i}", 5000)
    return one_by_one(engine, events)


@row("475 matches per event, which are not the same twice: one by one, ids are numbers", 25)
def many_other_matches_number(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: i, 5000)
    return one_by_one(engine, events)


@row("500 matches per event: a list of dicts, then its sets", 25)
def many_matches_list(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: f"subscription-{i}")
    n = len(events) // TURNS
    return lambda: list(engine.match_many(events[:n], threads=1)), n


# -- fixed costs ----------------------------------------------------------------------------------


def _tiny(n: int) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        draw = random.Random(4)
        texts = {i: f"origin = 'A{draw.randrange(20)}' and delay > {i}.5" for i in range(n)}
        engine = mm.Engine(texts)
        events = [
            {"origin": f"A{draw.randrange(20)}", "delay": draw.random() * 100, "carrier": "UA"}
            for _ in range(TURNS * size.n_events)
        ]
        return one_by_one(engine, events)

    return prepare


row("1 subscription, one dict at a time", 1.5)(_tiny(1))
row("10 subscriptions, one dict at a time", 2)(_tiny(10))
row("100 subscriptions, one dict at a time", 4)(_tiny(100))


@row("100 subscriptions on 8 numbers, answers that do not repeat, one dict at a time", 4)
def tiny_doubles(size: Size) -> Measured:
    draw = random.Random(13)
    names = [f"x{k}" for k in range(8)]

    def condition() -> str:
        some = draw.sample(names, 3)
        return " and ".join(f"{name} > {draw.random():.4f}" for name in some)

    engine = mm.Engine({i: condition() for i in range(100)})
    n = TURNS * size.n_events
    return one_by_one(engine, [{name: draw.random() for name in names} for _ in range(n)])
