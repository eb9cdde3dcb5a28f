"""`mill` behind the engine: values of all types and expressions of all shapes, as text, in segments
that are built, merged, saved and opened; what the same engine with `scan` says is right."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchmill as mm
from matchmill.index.mill import Mill
from tests.support.mill_checks import KERNELS

Event = dict[str, Any]


def engine_of(index: str, texts: Iterable[str], **index_options: Any) -> mm.Engine:
    """All subscriptions in one segment of the index."""
    engine = mm.Engine(index=index, index_options=index_options)
    report = engine.subscribe_many(enumerate(texts))
    assert report.rejected == []
    engine.compact()
    assert [s.n_clauses for s in engine.stats().index] == [engine.stats().n_clauses]
    return engine


def check(texts: list[str], events: list[Event]) -> int:
    """All kernels, in batches and event by event; returns the number of matches."""
    expected = [set(ids) for ids in engine_of("scan", texts).match_many(events)]
    for kernel in KERNELS:
        engine = engine_of("mill", texts, kernel=kernel)
        assert [set(ids) for ids in engine.match_many(events)] == expected
        assert [engine.match(event) for event in events[:20]] == expected[:20]
    return sum(map(len, expected))


# -- values ---------------------------------------------------------------------------------------


def some_double(rng: Random) -> float:
    return rng.choice((rng.uniform(-1, 1), rng.uniform(-1e300, 1e300), float(rng.randrange(-9, 9))))


def some_number(rng: Random) -> int | float:
    near = rng.choice((0, 2**53, -(2**53), 2**63 - 9, -(2**63) + 9))
    return rng.choice((near + rng.randrange(-8, 9), float(near), some_double(rng)))


def some_text(rng: Random) -> str:
    return "".join(rng.choices("aAbéß日😀%_", k=rng.choice((0, 1, 2, 3, 9))))


def some_timestamp(rng: Random) -> dt.datetime:
    return dt.datetime(2013, 1, 1) + dt.timedelta(microseconds=rng.randrange(10**8) ** 2 // 10**6)


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    return repr(value)


MAKERS = {"d": some_double, "n": some_number, "s": some_text, "t": some_timestamp}


def some_predicate(rng: Random, name: str, values: list[Any]) -> str:
    a, b = sorted(rng.choices(values, k=2))
    match rng.randrange(7):
        case 0:
            return f"{name} = {literal(a)}"
        case 1:
            return f"{name} != {literal(a)}"
        case 2:
            several = ", ".join(map(literal, rng.choices(values, k=rng.choice((1, 3, 20)))))
            return f"{name} {rng.choice(('', 'not '))}in ({several})"
        case 3:
            return f"{name} {rng.choice(('', 'not '))}between {literal(a)} and {literal(b)}"
        case 4:
            return f"{name} is null or {name} > {literal(a)}"
        case 5:
            return f"{name} is {rng.choice(('', 'not '))}null"
        case _:
            return f"{name} {rng.choice(('<', '<=', '>', '>='))} {literal(a)}"


@pytest.mark.parametrize("names", ["d", "n", "s", "t", "dnst"])
def test_values_of_all_types(names: str) -> None:
    """Hundreds of different literals an attribute; events have them, their neighbours, others and
    values of other types."""
    rng = Random(names)
    values = {name: [MAKERS[name](rng) for _ in range(300)] for name in names}
    texts = [
        " and ".join(
            f"({some_predicate(rng, name, values[name])})"
            for name in sorted(rng.sample(names, rng.randint(1, len(names))))
        )
        for _ in range(400)
    ]
    events: list[Event] = [{}]
    for _ in range(80):
        event = {name: rng.choice((*values[name], MAKERS[name](rng), None)) for name in names}
        if rng.random() < 0.1:
            event[rng.choice(names)] = rng.choice((True, "x", 1, dt.date(2013, 1, 1), [1, 2]))
        events.append(event)
    n_matches = check(texts, events)
    assert n_matches > 400


# -- shapes ---------------------------------------------------------------------------------------


def test_only_is_null() -> None:
    rng = Random(1)
    names = [f"a{k}" for k in range(30)]
    texts = [
        " and ".join(f"{name} is null" for name in rng.sample(names, rng.choice((1, 2, 5, 30))))
        for _ in range(300)
    ]
    events = [{name: 1 for name in names if rng.random() < p} for p in (0, 0.1, 0.3, 0.9, 1)]
    assert check(texts, events) > 300


def test_no_positive_predicate() -> None:
    rng = Random(2)
    texts = [
        f"not (a{rng.randrange(9)} = {rng.randrange(50)} or b between {k} and {k + 10}"
        f" or c in ({k}, {k + 1}))"
        for k in range(200)
    ]
    texts += [f"a{k % 9} != {k} and (b is null or b != {k})" for k in range(200)]
    texts += [f"not a{k % 9} in ({k}, {k + 3})" for k in range(200)]
    events = [
        {name: rng.randrange(60) for name in ("b", "c", *(f"a{k}" for k in range(9)))}
        for _ in range(40)
    ]
    for event in events[::3]:
        del event["b"]
    assert check(texts, [{}, *events]) > 1000


def test_lists_of_5_000_literals() -> None:
    rng = Random(3)
    words = [f"w{k:05}" for k in range(12_000)]
    texts = [f"word in ({', '.join(map(literal, rng.sample(words, 5000)))})" for _ in range(3)]
    texts += [f"word not in ({', '.join(map(literal, rng.sample(words, 5000)))})" for _ in range(2)]
    texts += [f"word = {literal(word)} and n > 3" for word in rng.sample(words, 200)]
    events: list[Event] = [{"word": word, "n": 5} for word in rng.sample(words, 60)]
    assert check(texts, [*events, {"word": "v"}, {"word": "w00001x", "n": 1}, {}]) > 60 * 2


@pytest.mark.parametrize("n", [1, 70, 300])
def test_long_conjunctions(n: int) -> None:
    rng = Random(n)
    names = [f"a{k}" for k in range(n)]
    texts = [
        " and ".join(f"{name} >= {rng.choice((0, 0, 1))}" for name in rng.sample(names, k=n))
        for _ in range(10)
    ]
    texts += [f"{rng.choice(names)} = 1" for _ in range(40)]
    events = [dict.fromkeys(names, k) for k in (0, 1, 2)]
    events += [dict.fromkeys(names, 1) | {rng.choice(names): 0} for _ in range(40)]
    assert check(texts, events) > 50


def test_constants() -> None:
    assert (
        check(["true", "false", "a = 1 or true", "a is null or a is not null"], [{}, {"a": 1}]) > 5
    )


# -- segments -------------------------------------------------------------------------------------


def test_segments_saved_and_opened(tmp_path: Path) -> None:
    """Subscriptions come, change and go while segments are built and merged; a kernel that was
    chosen is part of the engine, not of the answers."""
    rng = Random(5)
    settings = mm.Settings(fresh_clauses=16, merge_factor=2)
    engines = [mm.Engine(index=name, settings=settings) for name in ("mill", "scan")]
    engines.append(mm.Engine(index="mill", settings=settings, index_options={"kernel": "many"}))
    events = [{"d": some_double(rng), "s": some_text(rng)} for _ in range(40)]
    values: dict[str, list[Any]] = {
        "d": [event["d"] for event in events],
        "s": [event["s"] for event in events],
    }
    live: set[int] = set()
    for step in range(31):
        rows = {
            rng.randrange(120): some_predicate(rng, name, values[name])
            for name in rng.choices("ds", k=rng.choice((1, 5, 40)))
        }
        gone = rng.sample(sorted(live - set(rows)), min(len(live - set(rows)), 3))
        for engine in engines:
            engine.subscribe_many(rows.items(), replace=True)
            for k in gone:
                engine.unsubscribe(k)
        live = (live | set(rows)) - set(gone)
        if step % 10 == 0:
            engines[0].save(tmp_path / f"engine{step}")
            engines[0].close()
            engines[0] = mm.Engine.open(tmp_path / f"engine{step}")
        answers = [[set(ids) for ids in engine.match_many(events)] for engine in engines]
        assert answers[0] == answers[1] == answers[2]
    assert {len(engine) for engine in engines} == {len(live)}


def test_a_chosen_kernel_is_saved(tmp_path: Path) -> None:
    engine = engine_of("mill", ["a = 1", "a = 2"], kernel="many")
    engine.save(tmp_path / "engine")
    with mm.Engine.open(tmp_path / "engine") as again:
        assert again.index_options == {"kernel": "many"}
        (segment,) = again._store.segmented.snapshot.segments
        assert isinstance(segment.built, Mill)
        assert segment.built.kernel == "many"


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_lists_of_100_000_values_that_must_all_be_there() -> None:
    """Each is within the limits of an expression; together they must not stop anything."""
    engine = mm.Engine()
    for k in range(2):
        values = range(100_000 * (k + 1), 100_000 * (k + 2))
        engine.subscribe(f"all of {k}", f"tags contains all ({', '.join(map(str, values))})")
    engine.subscribe_many((str(k), f"a = {k}") for k in range(5000))
    tags = list(range(100_000, 200_000))
    assert engine.match({"tags": tags, "a": 7}) == {"all of 0", "7"}
    assert engine.match({"tags": tags[1:], "a": 8}) == {"8"}
