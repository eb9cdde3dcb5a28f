"""Values and events: what is read, what is rejected, what is left out."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matchmill as mm
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import (
    Between,
    Compare,
    Contains,
    In,
    InNetwork,
    Like,
    RLike,
    check_predicate,
)
from matchmill.language.flatten import flatten_event
from matchmill.language.values import fold_case, read_date, read_timestamp


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
        ({"a": float("inf")}, "'a': infinite"),
        ({"a": {"b": [float("-inf")]}}, "'a.b': infinite"),
        ({"a": 2**63}, "beyond 64 bits"),
        ({"a": -(2**63) - 1}, "beyond 64 bits"),
        ({"a": 10**5000}, "of 16610 bits is beyond"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        ({"\ud800": "a"}, "surrogate"),
        ({"a": b"x"}, "type bytes is not supported"),
        ({"a": object()}, "type object is not supported"),
        ({"a": 1j}, "type complex is not supported"),
        ({"a": np.complex128(1)}, "not supported"),
        ({"a": np.datetime64("10000-01-01")}, "after 9999"),
        ({"a": np.datetime64("10000-01-01T00:00")}, "after 9999"),
        ({"a": dt.timedelta(1)}, "type timedelta is not supported"),
        ({"a": Decimal("inf")}, "infinite"),
        ({1: 2}, "names are strings, not 1"),
        ({"a": {1: 2}}, "names are strings, not 1"),
        ({"a.b": 1, "a": {"b": 2}}, "'a.b' is given twice"),
        ({"a": {"b": "x"}, "a.b": "y"}, "'a.b' is given twice"),
        ([("a", 1)], "not list; several events go through match_many"),
        ("a", "not str"),
        (None, "not NoneType"),
    ],
)
def test_bad_events(event: Any, message: str) -> None:
    with pytest.raises(mm.EventError, match=message):
        flatten_event(event)


@pytest.mark.slow
def test_deep_and_large_events() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(mm.EventError, match="max_event_depth"):
        flatten_event({"a": deep})
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(mm.EventError, match="max_event_depth"):
        flatten_event({"a": nested})
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


@pytest.mark.parametrize(
    "text",
    ["2013-W05-4", "2013-1-31", "20130131", "2013-02-30", "0000-01-01", "٢٠١٣-01-31", ""],
)
def test_bad_dates(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text itself is the message
        read_date(text)


@pytest.mark.parametrize(
    "text",
    [
        "2013-01-31 10:00:00,1234567",
        "2013-01-31 10:00:00.1234567",
        "2013-01-31 25:00",
        "0001-01-01 00:00+05:00",
        "9999-12-31 23:00-05:00",
        "10:00",
        "now",
    ],
)
def test_bad_timestamps(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text itself is the message
        read_timestamp(text)


def test_timestamps_are_naive_utc() -> None:
    assert read_timestamp("2013-01-31 10:00:00.5+02:00") == dt.datetime(
        2013, 1, 31, 8, 0, 0, 500_000
    )
    assert read_timestamp("2013-01-31T10:00Z") == dt.datetime(2013, 1, 31, 10)
    assert read_timestamp("2013-01-31") == dt.datetime(2013, 1, 31)


def test_folding_keeps_the_length() -> None:
    assert fold_case("İSTANBUL ΟΔΟΣ Straße") == "istanbul οδοσ straße"
    for code in range(0x20000):
        if not 0xD800 <= code < 0xE000:
            assert len(fold_case(chr(code))) == 1


@pytest.mark.parametrize(
    "predicate",
    [
        Between("x", 1, "a"),
        InNetwork("x", ()),
        InNetwork("x", ("10.0.0.1/8",)),
        Compare("x", "~", 1),  # type: ignore[arg-type]
        Contains("x", "some", (1,)),  # type: ignore[arg-type]
        Like("x", "a\\"),
        RLike("x", "("),
        In("x", ()),
        In("x", (1, None)),  # type: ignore[arg-type]
        Compare("", "=", 1),
        Compare("x", "=", float("inf")),
        Compare("x", "=", float("nan")),
        Compare("x", "=", 2**63),
        Compare("x", "=", np.float64(1.5)),
        Compare("x", "=", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        Compare("x", "=", "\ud800"),
    ],
    ids=repr,
)
def test_predicates_that_no_text_could_give(predicate: Any) -> None:
    with pytest.raises(mm.ExpressionError):
        check_predicate(predicate)
    with pytest.raises(mm.ExpressionError):
        mm.Engine().subscribe("a", predicate)
