"""Events become flat: what is read, what is rejected, what is left out."""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from collections import namedtuple
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matchmill as mm
from matchmill.language.evaluate import evaluate
from matchmill.language.flatten import FlatEvent, flatten_event
from matchmill.language.values import Region, region_of

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("event", "flat"),
    [
        ({}, {}),
        ({"a": None, "b": float("nan"), "c": np.float64("nan"), "d": pd.NaT, "e": pd.NA}, {}),
        ({"a": {"b": {"c": 1}}}, {"a.b.c": 1}),
        ({"a": {}}, {}),
        ({"a": [1, None, "x"]}, {"a": [1, "x"]}),
        ({"a": []}, {"a": []}),
        ({"a": [None]}, {"a": []}),
        ({"a": [[1], [2, [3]]]}, {"a": [1, 2, 3]}),
        ({"a": [{"b": 1}, {"b": 2, "c": 3}]}, {"a.b": [1, 2], "a.c": [3]}),
        ({"a": [{"b": 1, "c": None}, None, {"c": float("nan")}]}, {"a.b": [1]}),
        ({"a": [{"b": None}]}, {"a": []}),
        ({"a": [{"b": []}]}, {"a.b": []}),
        ({"a": [{"b": [None]}, {"b": None, "c": [[], [1]]}]}, {"a.b": [], "a.c": [1]}),
        ({"a": [{}, {"b": {}}, [None]]}, {"a": []}),
        ({"a": [{"b": [{"c": None}]}, {"b": [{"c": 1}]}]}, {"a.b": [], "a.b.c": [1]}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ({"a": np.array([1, 2])}, {"a": [1, 2]}),
        ({"a": np.array(5)}, {"a": 5}),
        ({"a": np.int64(5), "b": np.bool_(True), "c": np.str_("x")}, {"a": 5, "b": True, "c": "x"}),
        ({"a": Decimal("1.5"), "b": Decimal("nan")}, {"a": 1.5}),
        ({"a": np.datetime64("2020-01-01")}, {"a": dt.date(2020, 1, 1)}),
        ({"a": np.datetime64("2020-01-01T00:00")}, {"a": dt.datetime(2020, 1, 1)}),
    ],
)
def test_flattening(event: dict[str, Any], flat: dict[str, Any]) -> None:
    got = flatten_event(event)
    assert got == flat
    assert {k: type(v) for k, v in got.items()} == {k: type(v) for k, v in flat.items()}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([("a", 1)], "not list; several events go through match_many"),
        ("a", "not str"),
        (None, "not NoneType"),
    ],
)
def test_bad_events(event: Any, message: str) -> None:
    with pytest.raises(mm.EventError, match=message):
        flatten_event(event)


@pytest.mark.parametrize(
    ("event", "name", "problem"),
    [
        ({"a": float("inf")}, "a", "infinite numbers"),
        ({"a": {"b": float("-inf")}}, "a.b", "infinite numbers"),
        ({"a": 2**63}, "a", "beyond 64 bits"),
        ({"a": -(2**63) - 1}, "a", "beyond 64 bits"),
        ({"a": 10**5000}, "a", "of 16610 bits is beyond"),
        ({"a": "\ud800"}, "a", "surrogate"),
        ({"a": np.datetime64("10000-01-01")}, "a", "after 9999"),
        ({"a": np.datetime64("10000-01-01T00:00")}, "a", "after 9999"),
        ({"a": Decimal("inf")}, "a", "infinite"),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", "given twice"),
        ({"a": {"b": "x"}, "a.b": "y"}, "a.b", "given twice"),
    ],
)
def test_what_cannot_be_compared_is_an_object(event: Any, name: str, problem: str) -> None:
    flat = flatten_event({**event, "good": 1})
    assert flat.keys() == {name, "good"}
    assert region_of(flat[name]) == Region.OBJECT
    assert problem in flat[name].problem


@pytest.mark.parametrize("event", [{1: 2}, {"a": {1: 2}}, {"\ud800": 1}, {"\ud800": "a"}])
def test_what_has_no_name_is_left_out(event: Any) -> None:
    assert flatten_event(event) == {}
    assert flatten_event({**event, "b": 1}) == {"b": 1}


@pytest.mark.parametrize(
    "value",
    [
        *(b"x", bytearray(b"x"), memoryview(b"x"), object(), 1j, np.complex128(1), dt.time(1)),
        *(dt.timedelta(1), np.timedelta64(1, "s"), np.bytes_(b"x"), {1}, frozenset((1,)), iter("")),
        *(range(3), len, int, uuid.UUID(int=1), pd.DataFrame({"a": [1]}), pd.Series([1, 2])),
        *(np.zeros((2, 2)), np.zeros((0, 3, 3), np.uint8), np.array(None), np.ma.masked),
        np.ma.MaskedArray([1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_stay_as_they_are(value: Any) -> None:
    flat = flatten_event({"a": value, "b": {"c": value}, "list": [1, value, [value]]})
    assert flat["a"] is value
    assert flat["b.c"] is value
    one, *others = flat["list"]
    assert one == 1
    assert all(other is value for other in others)
    assert len(others) == 2
    assert region_of(value) == Region.OBJECT


def test_arrays_and_records_are_there_as_a_whole_too() -> None:
    point, vector, labels = Point(1, 2), np.array([1, 2]), np.array(["x", None], object)
    event = {"p": point, "in": {"v": vector, "l": labels}, "points": [point], "m": {"x": 1}}
    flat = flatten_event(event)
    assert flat == {
        "p.x": 1,
        "p.y": 2,
        "in.v": [1, 2],
        "in.l": ["x"],
        "points.x": [1],
        "points.y": [2],
        "m.x": 1,
    }
    assert isinstance(flat, FlatEvent)
    assert list(flat.whole) == ["p", "in.v", "in.l"]
    assert flat.whole["p"] is point
    assert flat.whole["in.v"] is vector
    assert type(flatten_event({"x": 1, "y": [1], "z": b""})) is dict


@pytest.mark.slow
def test_deep_and_large_events() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    (too_deep,) = flatten_event({"a": deep}).values()
    assert "max_event_depth" in too_deep.problem
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    assert "max_event_depth" in flatten_event({"a": nested})["a"][0].problem
    with pytest.raises(mm.EventError, match="max_event_values"):
        flatten_event({"a": [1] * 1_000_001})
    with pytest.raises(mm.EventError, match="max_event_values"):
        flatten_event({str(n): "x" for n in range(1_000_001)})


def test_nanoseconds_count() -> None:
    later = mm.parse("t > timestamp '2020-01-01 00:00:00.000001'")
    for fine in (
        np.datetime64("2020-01-01T00:00:00.000001001"),
        pd.Timestamp("2020-01-01T00:00:00.000001001"),
    ):
        assert evaluate(later, {"t": fine}) is True
        flat = flatten_event({"t": fine})
        assert pickle.loads(pickle.dumps(flat))["t"].nanosecond == 1
    assert evaluate(later, {"t": np.datetime64("2020-01-01T00:00:00.000001000")}) is False
