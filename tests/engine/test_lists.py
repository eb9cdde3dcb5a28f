"""Lists through engines: updates, files, sessions of all kinds, against the oracle."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchmill as mm
from matchmill.lab.workloads.lists import list_workload

by_index = pytest.mark.parametrize("index", ["mill", "lists", "scan", "counting"])


def mixed(n: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Subscriptions with and without lists, and events with and without."""
    subscriptions: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for name in ("contains", "scalars", "anything_but", "ranges"):
        work = list_workload(name, n, 4)
        subscriptions |= {f"{name} {i}": e for i, e in work.subscriptions.items()}
        events += work.events
    subscriptions |= {f"plain {i}": f"kind = 'k{i % 20}' and price > {i}" for i in range(n)}
    return subscriptions, [*events, {}, {"tags": []}, {"tags": [None], "kind": "k1"}]


def check(engine: mm.Engine, subscriptions: dict[str, Any], events: list[dict[str, Any]]) -> None:
    for event, ids in zip(events, engine.match_many(events), strict=True):
        wanted = {i for i, e in subscriptions.items() if mm.evaluate(e, event) is True}
        assert set(ids) == wanted == engine.match(event)


@by_index
def test_updates_and_files(index: str, tmp_path: Path) -> None:
    """Subscribe, unsubscribe, compact, save, open, verify: the answers are the oracle's."""
    subscriptions, events = mixed(30)
    settings = mm.Settings(fresh_clauses=16, background=False)
    engine = mm.Engine(subscriptions, index=index, settings=settings)
    check(engine, subscriptions, events)
    for gone in Random(1).sample(sorted(subscriptions), 60):
        engine.unsubscribe(gone)
        del subscriptions[gone]
    more = list_workload("none", 20, 1).subscriptions
    for i, expression in more.items():
        engine.subscribe(f"late {i}", expression)
        subscriptions[f"late {i}"] = expression
    check(engine, subscriptions, events)
    engine.learn(events * 20)
    engine.compact()
    check(engine, subscriptions, events)
    engine.save(tmp_path / "e")
    for verify in (False, True):
        with mm.Engine.open(tmp_path / "e", read_only=True, verify=verify) as again:
            check(again, subscriptions, events)
            assert again.stats().n_subscriptions == len(subscriptions)
    with mm.Engine.open(tmp_path / "e", index="mill") as other:
        other.unsubscribe("late 1")
        del subscriptions["late 1"]
        check(other, subscriptions, events)


def test_expressions_as_events() -> None:
    engine = mm.Engine(
        {
            "some": "tags contains 'a' and kind = 'k1'",
            "none": "tags contains none ('a', 'b')",
            "field": {"tags": ["a"]},
            "plain": "kind = 'k1'",
        },
        settings=mm.Settings(fresh_clauses=1),
    )
    assert engine.match_expression("kind = 'k1'") == {"plain"}
    assert engine.match_expression("kind = 'k1' and tags = 'a'") == {"plain", "field"}
    assert engine.match_expression("tags = 'b'") == set()
    present = engine.match_expression("tags is not null and kind = 'k1'")
    assert present == {"some", "none", "field", "plain"}


def test_all_ways_to_write_it_cost_the_same() -> None:
    """`contains any` and `or` are the same clauses."""
    texts = ("tags contains any ('a', 'b')", "tags contains 'a' or tags contains 'b'")
    clauses = [mm.Engine({"1": text})._store.state.snapshot.segments[0].table for text in texts]
    for one, other in zip(*clauses, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "any(scores) not in (timestamp '2013-02-01 00:00:00', 3.0)",
        "any(scores) not in (date '2013-02-01', 'a') and price > 1",
    ],
)
def test_times_and_other_values_of_one_element_are_confirmed(text: str) -> None:
    """What such a condition means for an element stands on two dimensions: the index guesses."""
    events = [
        {"price": 2, "scores": scores}
        for scores in ([], [3.0], [5], ["x"], ["a"], ["2013-02-01"], [3.0, "2013-02-01"], 5)
    ]
    for subscriptions in ({"a": text}, {"a": text} | {f"b{i}": f"price = {i}" for i in range(20)}):
        check(mm.Engine(subscriptions), subscriptions, events)
