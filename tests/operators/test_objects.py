"""Event values that are objects: conditions cannot tell, operators get them untouched."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import matchmill as mm
from tests.support.generators import cases


class Image:
    """As image libraries have them: no record, no list, not even equal to itself."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("images are not compared")

    def __len__(self) -> int:
        raise TypeError("an image has no length")


@dataclass
class Reading:
    celsius: float


OBJECTS: dict[str, Any] = {
    "bytes": b"\x89PNG",
    "array": np.zeros((2, 3), np.uint8),
    "image": Image(np.zeros((4, 4))),
    "model": lambda x: x > 0.5,
    "set": {1, 2},
    "time": dt.time(1),
    "class": Image,
    "frame": pd.DataFrame({"a": [1]}),
}

CONDITIONS = [
    *("x = 1", "x != 1", "x < 'a'", "x in (1, 'a')", "x not in (1)", "x between 1 and 2", "x"),
    *("x not between 1 and 2", "x like '%'", "x not ilike 'a'", "x rlike ''", "not x"),
    *("x in cidr '::/0'", "x contains 1", "x contains none (1)", "any(x) = 1", "not any(x) = 1"),
    *("x = true", "x > date '2013-01-31'", "x <= timestamp '2013-01-31'", "x contains all (1)"),
]


@pytest.fixture
def seen() -> list[Any]:
    values: list[Any] = []

    @mm.operator
    def look(event: Any, name: str) -> bool:
        values.append(event[name])
        return True

    return values


@pytest.mark.parametrize("value", OBJECTS.values(), ids=OBJECTS)
def test_conditions_are_unknown_and_operators_get_it(value: Any, seen: list[Any]) -> None:
    event = {"x": value, "n": 1}
    for text in CONDITIONS:
        assert mm.evaluate(text, event) is None, text
        assert mm.explain(text, event).truth is None, text
    engine = mm.Engine({text: text for text in CONDITIONS})
    engine.subscribe_many({f"not {text}": f"not ({text})" for text in CONDITIONS})
    engine.subscribe_many({"null": "x is null", "there": "x is not null", "n": "n = 1 or x = 2"})
    engine.subscribe("asks", "look('x') and n = 1")
    assert engine.match(event) == {"there", "n", "asks"}
    assert seen.pop() is value
    for events in ([event], [event] * 5, [{"n": 0}, *[event] * 9, {"y": b""}]):
        found = list(engine.match_many(events))
        assert found.count({"there", "n", "asks"}) == sum("x" in one for one in events)
        assert all(one is value for one in seen)
    assert "an object of type" in str(mm.explain("x = 1", event))


def test_objects_in_lists_and_records(seen: list[Any]) -> None:
    image = Image(np.eye(2))
    event = {"frames": [1, image, [b"x"]], "inner": {"photo": image}, "all": [{"p": image}]}
    engine = mm.Engine(
        {
            "one": "frames contains 1",
            "none": "frames contains none (2) and any(all.p) = 1",
            "no 2": "frames contains none (2)",
            "no element": "not any(all.p) = 1",
            "photo": "inner.photo is not null and inner is null",
        }
    )
    engine.subscribe_many({name: f"look('{name}')" for name in ("frames", "inner.photo", "all.p")})
    found = {"one", "no 2", "no element", "photo", "frames", "inner.photo", "all.p"}
    assert engine.match(event) == found
    assert list(engine.match_many([event] * 3)) == [found] * 3
    assert {type(value) for value in seen} == {tuple, Image}
    for value in seen:
        assert value is image or value[-1] is image or value == (1, image, b"x")


def test_records_and_arrays_come_whole_as_well(seen: list[Any]) -> None:
    reading, vector = Reading(21.5), np.array([1.0, 2.0])
    event = {"r": reading, "v": vector}
    engine = mm.Engine({"warm": "r.celsius > 20 and v contains 2 and look('r') and look('v')"})
    assert engine.match(event) == {"warm"}
    assert list(engine.match_many([event, event])) == [{"warm"}] * 2
    assert all(value is reading or value is vector for value in seen)
    assert len(seen) == 6
    assert mm.evaluate("attribute('v', ?x) and ?x > 1", event) is True
    odd = {"v": np.array([np.nan, 2.0]), "l": [b"", 3], "o": np.eye(2)}
    assert mm.evaluate("attribute('v', ?x) and attribute('l', ?y) and ?x < ?y", odd) is True
    assert mm.evaluate("attribute('l', 3) and not attribute('l', 4)", odd) is True
    assert mm.evaluate("attribute('o', ?x)", odd) is None


def test_an_image_library(seen: list[Any]) -> None:
    images = pytest.importorskip("PIL.Image")
    image = images.new("L", (4, 3))
    assert mm.Engine({"a": "look('x') and x is not null"}).match({"x": image}) == {"a"}
    assert seen == [image]
    assert seen[0] is image


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"a", None, b"b"]),
        pa.array([b"a", None, b"b"], pa.large_binary()),
        pa.array([b"a", None, b"b"], pa.binary(1)),
        pa.array([b"a", None, b"b"], pa.binary_view()),
        pa.array([b"a", None, b"b"]).dictionary_encode(),
        pa.array([dt.time(1), None, dt.time(2)]),
        pa.array([1, None, 3], pa.time64("ns")),
        pa.array([dt.timedelta(1), None, dt.timedelta(2)]),
        pa.array([pa.scalar((1, 2, 3), pa.month_day_nano_interval()), None, None]),
        pa.array([[(1, 2)], None, []], pa.map_(pa.int64(), pa.int64())),
        pa.UnionArray.from_dense(
            pa.array([0, 1, 0], pa.int8()),
            pa.array([0, 0, 1], pa.int32()),
            [pa.array([1, 2]), pa.array([None, "x"])],
        ),
    ],
    ids=lambda array: str(array.type)[:20],
)
def test_columns_of_tables(array: pa.Array, seen: list[Any]) -> None:
    engine = mm.Engine({"there": "x is not null", "asks": "look('x')", "null": "x is null"})
    engine.subscribe_many({text: text for text in CONDITIONS})
    table = pa.table({"x": array, "n": range(3), "s": pa.StructArray.from_arrays([array], ["x"])})
    is_there = (
        [value is not None for value in array.cast(pa.int64()).to_pylist()]
        if (pa.types.is_time64(array.type))
        else [value is not None for value in array.to_pylist()]
    )
    with pytest.warns(UserWarning, match="'x': only operators look at values"):
        found = list(engine.match_many(table))
    assert found == [{"there", "asks"} if ok else {"null"} for ok in is_there]
    assert len(seen) == sum(is_there)
    assert all(type(value) is not tuple or len(value) == 3 for value in seen)
    inner = mm.Engine({"inner": "look('s.x') and s.x is not null"})
    with pytest.warns(UserWarning, match=r"'s.x': only operators"):
        assert list(inner.match_many(table)) == [{"inner"} if ok else set() for ok in is_there]


@pytest.mark.parametrize("seed", range(3))
def test_single_events_batches_and_the_oracle_agree(seed: int) -> None:
    expressions, events = cases(seed, 60, 60, objects=True)
    engine = mm.Engine(dict(enumerate(expressions)))
    expected = [
        {n for n, one in enumerate(expressions) if mm.evaluate(one, event) is True}
        for event in events
    ]
    assert list(engine.match_many(events)) == expected
    assert [engine.match(event) for event in events] == expected
    rng = Random(seed)
    for event in rng.sample(events, 10):
        for n in rng.sample(range(60), 10):
            assert mm.explain(expressions[n], event).truth == mm.evaluate(expressions[n], event)


def test_what_cannot_be_compared_reaches_operators_untouched() -> None:
    seen: list[object] = []
    mm.operator(name="sees")(lambda event: seen.append(event["x"]) or True)
    engine = mm.Engine({"a": "sees()", "b": "x = 1", "c": "attribute('y', ?y) and ?y < x"})
    values = [2**63, float("inf"), "\ud800", np.datetime64("10000-01-01")]
    for value in values:
        assert engine.match({"x": value, "y": 1}) == {"a"}
        assert list(engine.match_many([{"x": value, "y": 1}])) == [{"a"}]
    assert seen == [value for value in values for _ in range(2)]


def test_an_object_is_no_class_of_events() -> None:
    mm.operator(name="yes_please")(lambda event: True)
    engine = mm.Engine({"a": "yes_please()"}, settings=mm.Settings(event_class="kind"))
    for kind in ({1}, [1, {1}], ["a"], np.eye(2), Reading(1.0), None):
        assert engine.match({"kind": kind}) == {"a"}
        assert list(engine.match_many([{"kind": kind}])) == [{"a"}]


def batch_of(function: Callable[..., bool]) -> Callable[..., list[bool]]:
    return lambda events, *arguments: [function(event, *arguments) for event in events]


def test_batches_of_images() -> None:
    def bright(event: Any, least: float) -> bool:
        return bool(event["photo"].pixels.mean() >= least)

    mm.operator(bright).batch(batch_of(bright))
    engine = mm.Engine({str(n): f"camera = 1 and bright({n})" for n in (0.25, 0.75)})
    events = [{"camera": n % 2, "photo": Image(np.full((2, 2), n / 10))} for n in range(10)]
    found = list(engine.match_many(events))
    assert found == [
        {str(least) for least in (0.25, 0.75) if n % 2 and n / 10 >= least} for n in range(10)
    ]
