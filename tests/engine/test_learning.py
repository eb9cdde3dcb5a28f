"""What the engine learns from events, and what it says of its subscriptions."""

from __future__ import annotations

import numpy as np
import pytest

import matchmill as mm
from matchmill.engine.insights import insights_of
from tests.support.generators import cases


def engine_of(n: int = 3000) -> mm.Engine:
    rng = np.random.default_rng(1)
    engine = mm.Engine()
    engine.subscribe_many(
        (i, f"kind = {i % 7} and size = {rng.integers(500)} and weight > {rng.integers(90)}")
        for i in range(n)
    )
    return engine


def events_of(n: int, kinds: int, seed: int = 2) -> list[dict[str, int]]:
    rng = np.random.default_rng(seed)
    columns = (rng.integers(kinds, size=n), rng.integers(500, size=n), rng.integers(100, size=n))
    return [
        {"kind": int(k), "size": int(s), "weight": int(w)} for k, s, w in zip(*columns, strict=True)
    ]


def test_learning_changes_no_answer() -> None:
    engine, events = engine_of(), events_of(500, 7)
    before = list(engine.match_many(events))
    assert any(before)
    engine.learn(events)
    engine.compact()
    assert list(engine.match_many(events)) == before
    assert [engine.match(event) for event in events] == before


def test_events_are_sampled_and_drift_is_noticed() -> None:
    engine = engine_of()
    assert engine.stats().drift is None
    engine.learn(events_of(2000, 7))
    assert engine.stats().n_sampled_events > 64
    assert engine.stats().drift == pytest.approx(0, abs=0.1)
    for seed in range(20):
        engine.match_many(events_of(2000, 1, seed))
    drifted = engine.stats().drift
    assert drifted is not None
    assert drifted > 0.15
    engine.compact()
    assert engine.stats().drift == pytest.approx(0, abs=0.1)


def test_single_events_are_sampled_too() -> None:
    engine = engine_of(10)
    for event in events_of(500, 7):
        engine.match(event)
    assert engine.stats().n_sampled_events >= 5


def test_costly_and_useless_subscriptions_are_named() -> None:
    engine = engine_of()
    engine.subscribe(900_001, "kind = 1 and kind = 2")
    engine.subscribe(900_002, "kind is null or kind is not null")
    engine.subscribe(900_003, "kind in (1, 2) and size > 7")
    engine.subscribe(900_004, "size > 7 and (kind = 2 or kind = 1)")
    engine.match_many(events_of(600, 7))
    insights = insights_of(engine._store, top=1000)
    assert insights.never == [900_001]
    assert insights.always == [900_002]
    assert [900_003, 900_004] in insights.duplicates
    assert 900_002 in [costly.id for costly in insights.costly]


@pytest.mark.parametrize("seed", range(3))
def test_any_subscriptions_and_events(seed: int) -> None:
    expressions, events = cases(seed, 200, 100)
    engine = mm.Engine()
    engine.subscribe_many(enumerate(expressions))
    before = list(engine.match_many(events))
    engine.learn(events)
    engine.compact()
    assert list(engine.match_many(events)) == before
    assert [engine.match(event) for event in events] == before
    insights_of(engine._store)
