"""Batches encoded by row, compared with the same batches by columns."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.single import by_row
from matchmill.encoding.single.by_row import encode_by_row, pays_by_row
from matchmill.engine.match_many import Matcher

EXPRESSIONS = {
    "a": "a1 = 3 and a2 > 1.5",
    "b": "a1 in (1, 2, 'x') or b.c = 'x'",
    "c": "a3 like '%x%' and not a4",
    "d": "a5 contains any (1, 'x')",
    "e": "a6 is null and a7 > date '2013-01-31'",
}
VALUES: list[Any] = [
    *(
        0,
        1,
        3,
        True,
        False,
        None,
        1.5,
        -0.0,
        math.nan,
        math.inf,
        2**60,
        2**70,
        "x",
        "axb",
        "\ud800",
    ),
    *([1, "x"], [], [None], {"c": "x"}, {"c": [1]}, b"x", object()),
]


def matcher_of(engine: mm.Engine) -> Matcher:
    store = engine._store
    return Matcher(
        store.state, store.sample, engine._operators, engine.settings, engine._single_events
    )


def pairs_of(batch: EventBatch) -> list[list[tuple[int, int]]]:
    return [
        sorted(zip(one.dimensions.tolist(), one.keys.tolist(), strict=True))
        for one in (batch.slice(i, i + 1) for i in range(batch.n_events))
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_pairs_and_rejections_as_by_columns(seed: int) -> None:
    draw = random.Random(seed)
    matcher = matcher_of(mm.Engine(EXPRESSIONS))
    names = [*(f"a{n}" for n in range(1, 8)), "b", "b.c", "other"]
    events: list[Any] = [
        {name: draw.choice(VALUES) for name in draw.sample(names, draw.randrange(6))}
        for _ in range(150)
    ]
    events[7:9] = [5, mm.EventError("not read")]
    found = DictEvents(events)
    encoder = matcher.single_events.encoder(matcher.state.dimensions)
    batch, rejected = encode_by_row(encoder, found, matcher._encoded_by_column)
    expected, reasons = matcher._encoded_by_column(found)
    assert pairs_of(batch) == pairs_of(expected)
    assert rejected == reasons
    assert {7, 8} <= set(rejected)


def test_no_events() -> None:
    matcher = matcher_of(mm.Engine(EXPRESSIONS))
    encoder = matcher.single_events.encoder(matcher.state.dimensions)
    batch, rejected = encode_by_row(encoder, DictEvents([]), matcher._encoded_by_column)
    assert (batch.n_events, len(batch.keys), rejected) == (0, 0, {})


def test_when_it_pays() -> None:
    plans = mm.Engine(EXPRESSIONS)._store.state.dimensions.plans
    tabular = [{"a1": n, "a2": 1.5} for n in range(200)]
    sparse = [{f"a{n}": 1, f"b{n}": 2} for n in range(200)]
    texts = [{"a3": f"x{n}"} for n in range(50)]
    assert not pays_by_row(plans, DictEvents(tabular))
    assert pays_by_row(plans, DictEvents(tabular[:50]))
    assert pays_by_row(plans, DictEvents(sparse))
    assert not pays_by_row(plans, DictEvents(texts))  # patterns are for many texts at once
    assert pays_by_row(plans, DictEvents(texts[:4]))
    logs = [{f"b{n}": 1, "a3": f"x{n}"} for n in range(5000)]
    assert not pays_by_row(plans, DictEvents(logs))  # also where most other names differ
    assert pays_by_row(plans, DictEvents(logs[:200]))
    everywhere = mm.Engine({"s": "any attribute ilike '%x%'"})._store.state.dimensions.plans
    assert not pays_by_row(everywhere, DictEvents(logs[:200]))


def test_matches_do_not_depend_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(4)
    engine = mm.Engine({n: f"a{n % 40} = {n % 7} and a{n % 31} < 5" for n in range(300)})
    events = [{f"a{draw.randrange(40)}": draw.randrange(7) for _ in range(5)} for _ in range(100)]
    found = list(engine.match_many(events))
    assert found == [engine.match(event) for event in events]
    monkeypatch.setattr(by_row, "pays_by_row", lambda *_: False)
    monkeypatch.setattr("matchmill.engine.match_many.pays_by_row", lambda *_: False)
    assert found == list(engine.match_many(events))
    assert any(found)
    assert np.array_equal(engine.match_many(events).counts, [len(ids) for ids in found])
