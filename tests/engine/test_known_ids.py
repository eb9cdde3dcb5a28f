"""Ids as Python objects, made once."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.engine import known_ids, match_single
from matchmill.engine.known_ids import ObjectTable


def test_objects_are_made_once() -> None:
    table, asked = ObjectTable(), []

    def make(numbers: np.ndarray) -> list[Any]:
        asked.append(numbers.tolist())
        return [f"u{number}" for number in numbers.tolist()]

    assert table.list_of(np.array([2, 0, 2]), 3, make) == ["u2", "u0", "u2"]
    assert table.set_of(np.array([2, 1]), 3, make) == {"u1", "u2"}
    assert table.set_of(np.array([9, 2, 0]), 10, make) == {"u9", "u2", "u0"}  # there are more now
    assert table.set_of(np.array([1, 9]), 3, make) == {"u1", "u9"}
    assert asked == [[0, 2], [1], [9]]
    assert table.list_of(np.array([], np.int64), 10, make) == []


def test_not_too_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_ids, "_MOST_KNOWN", 10)
    table = ObjectTable()
    for start in range(0, 100, 5):
        numbers = np.arange(start, start + 5)
        assert table.list_of(numbers, 100, lambda n: n.tolist()) == numbers.tolist()
        assert sum(each is not None for each in table._objects) <= 20


@pytest.mark.parametrize("ids", [str, int])
def test_sets_while_subscriptions_come_and_go(ids: Any) -> None:
    engine = mm.Engine()
    for n in range(300):
        engine.subscribe(ids(n), f"a < {n} or b = {n % 3}")
        if n % 50 == 10:
            engine.subscribe(ids(n // 2), "c = 1", replace=True)
            engine.unsubscribe(ids(n // 3))
        if n % 90 == 10:
            engine.compact()
        for event in ({"a": n - 5}, {"b": 1}, {"c": 1, "a": n}):
            expected = (
                {one.id for one in engine.subscriptions() if mm.evaluate(one.expression, event)}
                if n % 20 == 0
                else None
            )
            found = engine.match(event)
            assert type(found) is set
            assert expected is None or found == expected
            assert found == engine.match_many([event] * 2)[1]


def test_a_result_is_the_callers_own() -> None:
    engine = mm.Engine({"a": "x > 0", "b": "x > 1"})
    engine.match({"x": 5}).add("c")
    engine.match_many([{"x": 5}])[0].clear()
    assert engine.match({"x": 5}) == {"a", "b"} == engine.match_many([{"x": 5}])[0]


def test_answers_are_kept_until_something_changes() -> None:
    engine = mm.Engine({"a": "x > 5", "b": "x > 5 and y is null"})
    kept = lambda: len(engine._single_events._answers or ())  # noqa: E731
    first = engine.match({"x": 7})
    assert (first, kept()) == ({"a", "b"}, 1)
    first.clear()  # a set of the caller's own
    assert engine.match({"x": 8.5, "z": 1}) == {"a", "b"}  # which is nothing new
    assert (engine.match({"x": 8, "y": 1}), kept()) == ({"a"}, 2)
    engine.subscribe("c", "x > 6")
    assert (engine.match({"x": 7}), kept()) == ({"a", "b", "c"}, 1)
    engine.unsubscribe("a")
    assert engine.match({"x": 7}) == {"b", "c"}
    engine.compact()
    assert engine.match({"x": 7}) == {"b", "c"}


def test_answers_that_need_the_event_are_not_kept() -> None:
    mm.operator(name="same_length")(lambda event, n: len(event["name"]) == n)
    engine = mm.Engine({"a": "x > 5 and same_length(3)", "b": "x > 5"})
    assert engine.match({"x": 7, "name": "Ada"}) == {"a", "b"}
    assert engine.match({"x": 7, "name": "Adam"}) == {"b"}
    mm.unregister_operator("same_length")


def test_answers_that_do_not_repeat_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_single, "_MOST_ANSWERS", 20)
    engine = mm.Engine({n: f"x > {n}" for n in range(200)})
    for _ in range(2):
        for x in range(150):
            assert engine.match({"x": x}) == set(range(x))
    assert len(engine._single_events._answers or ()) == 0
    engine.subscribe(200, "x > 200")
    for _ in range(100):
        assert engine.match({"x": 3}) == {0, 1, 2}
    for x in range(30):
        assert engine.match({"x": x}) == set(range(x))
    assert 0 < len(engine._single_events._answers or ()) <= 20


def test_answers_keep_no_old_subscriptions_in_memory() -> None:
    engine = mm.Engine({"a": "x > 5"})
    engine.match({"x": 7})
    old = weakref.ref(engine._store.state.subscriptions)
    engine.subscribe("b", "x > 5")
    gc.collect()
    assert old() is None
