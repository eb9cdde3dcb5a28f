"""What the clients send."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.client import responses
from matchmill.client.event_sources import event_rows
from matchmill.client.requests import batches, event_text, expression_value
from matchmill.errors import EventError, InputError


def test_expressions() -> None:
    assert expression_value("x = 1") == "x = 1"
    assert expression_value(mm.attr("x") == 1) == "x = 1"
    assert expression_value({"x": [1]}) == {"x": [1]}
    with pytest.raises(InputError, match="an expression is text"):
        expression_value(3)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"n": 2**63 - 1, "é": True}, '{"n":9223372036854775807,"é":true}'),
        ({"x": float("nan"), "y": [float("nan"), (1, {})]}, '{"x":null,"y":[null,[1,{}]]}'),
        ({"n": np.int64(5), "x": np.float64("nan")}, '{"n":5,"x":null}'),
        (MappingProxyType({"a": MappingProxyType({"b": 1})}), '{"a":{"b":1}}'),
        ({"d": dt.date(2013, 1, 31)}, '{"d":"2013-01-31"}'),
        (
            {"t": dt.datetime(2013, 1, 31, 10, tzinfo=dt.UTC), "x": float("nan")},
            '{"t":"2013-01-31T10:00:00+00:00","x":null}',
        ),
        ({"t": pd.Timestamp("2013-01-31"), "u": pd.NaT}, '{"t":"2013-01-31T00:00:00","u":null}'),
        ({"t": np.datetime64("2013-01-31T10", "ns")}, '{"t":"2013-01-31T10:00:00"}'),
    ],
)  # fmt: skip
def test_events(event: Mapping[str, Any], text: str) -> None:
    assert event_text(event) == text


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"x": float("inf")}, "infinite"),
        ({"s": {1}}, "cannot contain set"),
        ({"s": {1}, "x": float("nan")}, "cannot contain set"),
        ({"s": "\ud800"}, "half of a character"),
        ([], "an event is a mapping"),
    ],
)
def test_events_that_json_cannot_hold(event: Any, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        event_text(event)


@given(st.lists(st.integers(0, 600_000)), st.integers(1, 5))
def test_batches_hold_everything_in_order(sizes: list[int], most: int) -> None:
    found = list(batches(sizes, lambda size: size, most))
    assert [size for batch in found for size in batch] == sizes
    for batch in found:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(batch) <= 1 << 20


# -- sources of events ----------------------------------------------------------------------------


TABLE = {"name": ["a", "b"], "n": [1, 2]}


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_events_of_tables(make: Any) -> None:
    assert [row.event for row in event_rows(make(TABLE))] == [
        {"name": "a", "n": 1},
        {"name": "b", "n": 2},
    ]


def test_events_of_files(tmp_path: Path) -> None:
    """A time in a CSV file is sent as text; nested objects of JSON lines keep their form."""
    csv = tmp_path / "e.csv"
    csv.write_text("n,at\n1,2013-01-31T10:00\n2,2013-01-31\n3\n")
    rows = list(event_rows(csv))
    assert [row.line for row in rows] == [2, 3, 4]
    assert event_text(rows[0].event) == '{"n":1,"at":"2013-01-31T10:00:00+00:00"}'
    assert rows[2].problem is not None
    lines = tmp_path / "e.jsonl"
    lines.write_text('{"a":{"b":[1]}}\n\n{"a":1,"a":2}\n')
    first, second = event_rows(str(lines))
    assert (first.event, first.line) == ({"a": {"b": [1]}}, 1)
    assert (second.event, second.line) == (None, 3)
    parquet = tmp_path / "e.parquet"
    pq.write_table(pa.table(TABLE), parquet)
    assert [(row.event["n"], row.line) for row in event_rows(parquet)] == [(1, None), (2, None)]


@pytest.mark.parametrize("source", [3, b"{}", [1], [("e1", {"x": 1})]])
def test_what_is_no_source_of_events(source: Any) -> None:
    with pytest.raises(InputError):
        list(event_rows(source))


def test_one_event_is_a_source() -> None:
    assert [row.event for row in event_rows({"x": 1})] == [{"x": 1}]


# -- what is shown --------------------------------------------------------------------------------


def test_what_people_print_is_short_and_has_no_secrets() -> None:
    moment = "2026-11-16T10:00:00Z"
    response = {
        "subscription_id": "u42",
        "expression": "x > 1 and " * 50 + "y",
        "created_at": moment,
        "expires_at": moment,
        "n_pending": 3,
        "ticket": "secret",
        "webhook": {"url": "http://host"},
        "webhook_secret": "secret",
    }
    made = responses.subscription(response)
    assert made.ticket == made.webhook_secret == "secret"
    assert made.webhook == "http://host"
    for text in (repr(made), made._repr_html_()):
        assert "u42" in text
        assert "secret" not in text
    assert len(repr(made)) < 120
    assert repr(responses.backtest({"n_events": 9, "n_matches": 1, "event_ids": ["e"]})) == (
        "<Backtest: 1 of 9 events matched>"
    )
    warning = {"kind": "never", "message": "no event can", "suggestion": ""}
    told_check = {"rejected": [], "warnings": [warning], "n_events": 0, "normalized": "false"}
    report = responses.check_report(told_check)
    assert (report.ok, repr(report)) == (False, "<CheckReport: no event can>")
    json.dumps(report._repr_html_())
