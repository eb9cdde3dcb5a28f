"""Insights: each finding against what the expressions and a plain count say."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill import Engine, Settings
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.read import read_events
from matchmill.engine.insights import Costly, Insights, TellsCosts, find_insights
from matchmill.language.normal_form import normalize
from tests.support.generators import cases


def insights(engine: Engine, events: list[dict[str, Any]] | None = None, top: int = 10) -> Insights:
    state = engine._store.state
    segments = [(segment.built, segment.table) for segment in state.snapshot.segments]
    sample = None if events is None else sample_of(engine, events)
    return find_insights(segments, state.subscriptions, sample, top)


def sample_of(engine: Engine, events: list[dict[str, Any]]) -> EventBatch:
    columns = read_events(events, engine.settings).columns()
    return encode_events(engine._store.state.dimensions, columns)


def small_segments(**options: Any) -> Engine:
    """An engine whose subscriptions are soon in several built segments."""
    return Engine(settings=Settings(fresh_clauses=8, merge_factor=4), **options)


# -- never and always -----------------------------------------------------------------------------


def test_never_and_always() -> None:
    engine = Engine()
    engine.subscribe_many(
        {
            "contradiction": "a = 1 and a = 2",
            "plain": "a = 1",
            "tautology": "a is null or a is not null",
            "nothing": "false",
        }
    )
    found = insights(engine)
    assert (found.n_never, found.never) == (2, ["contradiction", "nothing"])
    assert (found.n_always, found.always) == (1, ["tautology"])
    assert found.costly == []
    engine.subscribe("nothing", "a = 3", replace=True)
    engine.unsubscribe("tautology")
    found = insights(engine)
    assert (found.never, found.n_always, found.always) == (["contradiction"], 0, [])


def test_lists_are_cut_and_counts_are_not() -> None:
    engine = Engine()
    engine.subscribe_many({n: ("false", "true", f"a = {n // 6}")[n % 3] for n in range(60)})
    found = insights(engine, [{"a": n} for n in range(10)], top=2)
    assert (found.n_never, found.never) == (20, [0, 3])
    assert (found.n_always, found.always) == (20, [1, 4])
    assert len(found.costly) == 2
    # The twenty that always match are one group, and each a = … is there twice.
    assert found.n_duplicates == 19 + 10
    assert found.duplicates == [list(range(1, 60, 3)), [2, 5]]


def test_nested_subscriptions_are_told_apart() -> None:
    """With one clause allowed, each of these is nested."""
    engine = Engine(settings=Settings(max_clauses=1))
    engine.subscribe("x", "a = 1 and b = 2 or a = 3 and b = 4")
    engine.subscribe("y", "a = 1 and b = 4 or a = 3 and b = 2")
    engine.subscribe("z", "a = 1 or b = 2")
    events = [{"a": 1, "b": 4}] * 300
    found = insights(engine, events)
    assert (found.duplicates, found.n_duplicates, found.always) == ([], 0, [])


# -- duplicates -----------------------------------------------------------------------------------


def test_duplicates_up_to_the_order_of_clauses() -> None:
    engine = small_segments()
    engine.subscribe_many(
        {
            "p": "a = 1 and b > 2",
            "q": "b > 2 and a = 1 and a > 0",
            "r": "a = 1 and b > 2 or c = 3",
            "s": "c = 3 or b > 2 and a = 1",
            "t": "a = 1 and b >= 2",
            "u": "c in (3, 3)",
            "v": "a = 1 or d = 2 or a = 1",
            "w": "c = 3 or b > 2 and a = 1 and not a != 1",
            "never 1": "false",
            "never 2": "a < 1 and a > 1",
        }
    )
    found = insights(engine)
    assert found.duplicates == [["r", "s", "w"], ["p", "q"]]
    assert found.n_duplicates == 3


def test_duplicates_live_in_several_segments_and_dead_ones_do_not_count() -> None:
    engine = small_segments()
    for start in range(0, 60, 10):
        engine.subscribe_many(
            {n: f"a = {n % 20} and b = {n % 3}" for n in range(start, start + 10)}
        )
    assert insights(engine).duplicates == []
    for n in range(7):
        engine.subscribe(100 + n, f"b = {n % 3} and a = {n % 20}")
    assert len(engine._store.state.snapshot.segments) > 1
    assert insights(engine).duplicates == [[n, 100 + n] for n in range(7)]
    engine.unsubscribe_many([0, 101])
    engine.subscribe(2, "a = 77", replace=True)
    assert insights(engine).duplicates == [[n, 100 + n] for n in range(3, 7)]
    engine.compact()
    found = insights(engine)
    assert sorted(found.duplicates) == [[n, 100 + n] for n in range(3, 7)]
    assert found.n_duplicates == 4


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed: int) -> None:
    expressions, events = cases(seed, 60, 30, mixed=False)
    rng = Random(seed)
    engine = small_segments()
    chosen = {n: rng.choice(expressions) for n in range(150)}
    engine.subscribe_many(chosen)
    found = insights(engine, events, top=1000)
    groups: dict[object, list[int]] = {}
    never = []
    for n, expression in chosen.items():
        normal = normalize(expression, engine.settings.max_clauses, nested=True)
        if normal.kind == "never":
            never.append(n)
        else:
            key = frozenset(repr(clause) for clause in normal.clauses)
            groups.setdefault(key, []).append(n)
    expected = [group for group in groups.values() if len(group) > 1]
    assert sorted(found.duplicates) == sorted(expected)
    assert [len(g) for g in found.duplicates] == sorted(map(len, expected), reverse=True)
    assert found.n_duplicates == sum(len(g) - 1 for g in expected)
    assert found.never == never
    # A subscription with several clauses that hold is matched once.
    counts = dict.fromkeys(chosen, 0)
    for matched in engine.match_many(events):
        for n in matched:
            counts[int(n)] += 1
    exact = engine._subscriptions.is_exact.array
    for costly in found.costly:
        if exact[int(costly.id)]:
            assert costly.matched_per_event * len(events) == pytest.approx(counts[int(costly.id)])
    assert {n for n, c in counts.items() if c} <= {c.id for c in found.costly}


# -- costs ----------------------------------------------------------------------------------------


def wide_and_narrow() -> Engine:
    """Many subscriptions to one place, and a few that must be looked at for every event."""
    engine = small_segments()
    many: dict[str, str] = {f"narrow {n}": f"place = {n} and price > 1" for n in range(300)}
    many |= {"wide": "price > 1 and weight > 3", "wider": "price > 1 or weight > 1"}
    engine.subscribe_many(many)
    return engine


def test_costly_ones_come_first() -> None:
    engine = wide_and_narrow()
    assert all(isinstance(s.built, TellsCosts) for s in engine._store.state.snapshot.segments)
    rng = Random(1)
    events = [
        {"place": rng.randrange(300), "price": rng.randrange(4), "weight": rng.randrange(5)}
        for _ in range(200)
    ]
    found = insights(engine, events, top=3)
    assert {c.id for c in found.costly[:2]} == {"wide", "wider"}
    checked = [c.checked_per_event for c in found.costly]
    assert checked == sorted(checked, reverse=True)
    share = {c.id: c.matched_per_event for c in found.costly}
    truth = [set(matched) for matched in engine.match_many(events)]
    for name in ("wide", "wider"):
        assert share[name] == pytest.approx(sum(name in t for t in truth) / 200)
    # Two clauses may be looked at for one event, and the subscription matches once.
    assert found.costly[0].checked_per_event <= 2
    assert max(share.values()) <= 1


def test_among_equals_the_useless_come_first() -> None:
    engine = small_segments()
    engine.subscribe_many({n: f"not a = {n}" for n in range(20)})
    found = insights(engine, [{"a": 3}] * 10, top=20)
    by_checks: dict[float, list[Costly]] = {}
    for costly in found.costly:
        by_checks.setdefault(costly.checked_per_event, []).append(costly)
    for equals in by_checks.values():
        matched = [c.matched_per_event for c in equals]
        assert matched == sorted(matched)


@pytest.mark.parametrize("index", ["scan", "counting"])
def test_other_indexes_count_what_held(index: str) -> None:
    engine = small_segments(index=index)
    engine.subscribe_many({n: f"a > {n} or b = {n}" for n in range(20)})
    events = [{"a": n, "b": 2} for n in range(10)]
    found = insights(engine, events, top=3)
    assert found.costly == [
        Costly(2, pytest.approx(1.7), 1.0),
        Costly(0, 0.9, 0.9),
        Costly(1, 0.8, 0.8),
    ]


# -- edges ----------------------------------------------------------------------------------------


def test_an_empty_engine() -> None:
    assert insights(Engine()) == insights(Engine(), [{"a": 1}]) == ([], 0, [], 0, [], 0, [])


def test_an_empty_sample_and_nobody_left() -> None:
    engine = Engine()
    engine.subscribe("x", "a = 1")
    assert insights(engine, []).costly == []
    engine.unsubscribe("x")
    assert insights(engine, [{"a": 1}] * 300) == ([], 0, [], 0, [], 0, [])


def test_subscriptions_newer_than_the_segments() -> None:
    """A reader may hold older segments than the rows it is given."""
    engine = Engine()
    engine.subscribe_many({"a": "x = 1", "b": "x = 1 and y = 2", "c": "x = 1"})
    segments = [(s.built, s.table) for s in engine._store.state.snapshot.segments]
    sample = sample_of(engine, [{"x": 1}])
    engine.subscribe_many({"d": "x = 1", "e": "false"})
    engine.subscribe("b", "z = 5", replace=True)
    found = find_insights(segments, engine._subscriptions, sample)
    assert found.duplicates == [["a", "c"]]
    assert found.never == ["e"]
    assert [c.id for c in found.costly] == ["a", "c"]
    assert np.isclose(found.costly[0].matched_per_event, 1.0)
