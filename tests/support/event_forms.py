"""Generated events with arrays of objects, nulls, times and lists, in every form that events have.

An event is drawn as a dict without nulls for what is missing. The same rows as an Arrow table have
a null wherever a name is missing, which must make no difference. JSON has no dates and timestamps:
there they are ISO text, so expressions compare the attributes that hold them with times only.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import json
from collections.abc import Callable
from keyword import iskeyword
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.columns import Events
from matchmill.encoding.events.read import read_events, read_json_lines
from matchmill.io.event_sources import read_events as read_file

__all__ = ["FORMS", "MIXED_FORMS", "random_condition", "random_event", "with_mixed_types"]

TEXTS = ["a", "b", "ab", "", "é", "2024-01-31", "10"]
NUMBERS: list[Any] = [0, 1, 2, -1, 1.5, 2**53 + 1, 10]
DATES = [dt.date(2024, 1, day) for day in (1, 15, 31)]
TIMES = [
    dt.datetime(2024, 1, 1),
    dt.datetime(2024, 1, 15, 10, 30),
    dt.datetime(2024, 1, 31, 23, 59, 59, 123456),
]
ISO = [
    *("2024-01-01", "2024-01-15T10:30Z", "2024-01-15 12:30:00+02:00", "2024-01-31T23:59:59.123456"),
    *("2024-01-15T10:30:00.000000001Z", "2024-02-30", "yesterday", "2024-01-15T24:00", ""),
]

_R = pa.struct([("u", pa.date32())])
SCHEMA = pa.schema(
    [
        ("n", pa.float64()),
        ("i", pa.int64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("iso", pa.string()),
        ("o", pa.struct([("p", pa.int64()), ("q", pa.string()), ("r", _R)])),
        ("tags", pa.list_(pa.string())),
        ("l", pa.list_(pa.list_(pa.int64()))),
        ("isos", pa.list_(pa.string())),
        ("days", pa.list_(pa.date32())),
        (
            "x",
            pa.list_(
                pa.struct(
                    [
                        ("y", pa.int64()),
                        ("z", pa.list_(pa.string())),
                        ("w", pa.struct([("v", pa.float64()), ("at", pa.timestamp("us"))])),
                        ("in", pa.list_(pa.struct([("k", pa.string()), ("m", pa.bool_())]))),
                    ]
                )
            ),
        ),
    ]
)  # fmt: skip

NAMES = [
    *("n", "i", "s", "b", "d", "t", "iso", "o", "o.p", "o.q", "o.r.u", "tags", "l", "isos", "days"),
    *("x", "x.y", "x.z", "x.w", "x.w.v", "x.w.at", "x.in", "x.in.k", "x.in.m", "none", "mixed"),
]
TIME_NAMES = {"d", "t", "o.r.u", "days", "x.w.at"}  # that only times are compared with


# -- events ---------------------------------------------------------------------------------------


def random_event(rng: Random) -> dict[str, Any]:
    """Draw an event of the schema; names may be missing or null at any depth."""
    return {field.name: _value(rng, field.type, 0.15) for field in SCHEMA if rng.random() > 0.2}


def with_mixed_types(rng: Random, event: dict[str, Any]) -> dict[str, Any]:
    """Add an attribute that a table with types cannot have."""
    mixed = rng.choice(
        [1, 1.5, "a", True, None, [1, "a", None], [{"y": 1}, 2], {"y": 1}, [], "2024-01-15", 2**70,
         float("nan"), [[{"y": []}], {"y": {"deep": "2024-01-31"}}], [{"y": None}], [{"y": [None]}]]
    )  # fmt: skip
    return {**event, "mixed": mixed}


def _value(rng: Random, kind: pa.DataType, nulls: float) -> Any:
    if rng.random() < nulls:
        return None
    if pa.types.is_list(kind):
        return [_value(rng, kind.value_type, nulls) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if pa.types.is_struct(kind):
        return {f.name: _value(rng, f.type, nulls) for f in kind if rng.random() > 0.3}
    if pa.types.is_floating(kind):
        return float(rng.choice([0, 1, 2, 1.5, -1, 10]))
    if pa.types.is_integer(kind):
        return rng.choice([0, 1, 2, -1, 10, 2**53 + 1])
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_date(kind):
        return rng.choice(DATES)
    if pa.types.is_timestamp(kind):
        return rng.choice(TIMES)
    return rng.choice(ISO if rng.random() < 0.5 else TEXTS)


# -- conditions -----------------------------------------------------------------------------------


def random_condition(rng: Random) -> str:
    """Draw the text of one condition, or of two."""
    if rng.random() < 0.25:
        word = rng.choice([" and ", " or "])
        return f"{random_condition(rng)}{word}not ({random_condition(rng)})"
    name = rng.choice(NAMES)
    if rng.random() < 0.2:
        return f"{name} is {rng.choice(['', 'not '])}null"
    any_element = rng.random() < 0.5
    subject = f"any({name})" if any_element else name
    one = _time if name in TIME_NAMES else rng.choice([_time, _number, _text, _text])
    several = ", ".join(one(rng) for _ in range(rng.choice([1, 2, 3])))
    if rng.random() < 0.2:  # a list of several types
        several += ", " + (_time if name in TIME_NAMES else rng.choice([_time, _number, _text]))(
            rng
        )
    match rng.randrange(5):
        case 0:
            return f"{subject} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {one(rng)}"
        case 1:
            return f"{subject} {rng.choice(['', 'not '])}in ({several})"
        case 2:
            return f"{name} contains {rng.choice(['any', 'all', 'none'])} ({several})"
        case 3 if name not in TIME_NAMES:
            pattern = rng.choice(["a%", "%b", "%a%", "2024-%", "%", "a_"])
            word = rng.choice(["like", "not like", "ilike"])
            return f"{subject} {word} '{pattern}'"
        case _:
            kind = rng.choice(["date", "timestamp"]) if one is _time else ""
            low, high = (one(rng) if not kind else _time(rng, kind) for _ in range(2))
            return f"{subject} {rng.choice(['', 'not '])}between {low} and {high}"


def _time(rng: Random, kind: str = "") -> str:
    kind = kind or rng.choice(["date", "timestamp"])
    value = rng.choice(DATES if kind == "date" else TIMES)
    return f"{kind} '{value}'"


def _number(rng: Random) -> str:
    return str(rng.choice(NUMBERS))


def _text(rng: Random) -> str:
    return "'" + rng.choice(TEXTS + ISO) + "'"


# -- forms ----------------------------------------------------------------------------------------


def _table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


def _json(value: dt.date) -> str:
    return value.isoformat()


def _lines(events: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(event, default=_json) for event in events]


def _json_events(events: list[dict[str, Any]], fast: bool = True) -> Events:
    return read_json_lines("\n".join(_lines(events)).encode(), fast=fast)


def _file(events: list[dict[str, Any]], kind: str) -> Events:
    """The content of a file, read as files are."""
    if kind == "jsonl":
        return read_file("\n".join(_lines(events)).encode(), format=kind)
    content = io.BytesIO()
    pq.write_table(_table(events), content, row_group_size=1000)
    return read_file(content.getvalue(), format="parquet")


def _arrow_pandas(events: list[dict[str, Any]]) -> pd.DataFrame:
    return _table(events).to_pandas(types_mapper=pd.ArrowDtype)


def _records(events: list[dict[str, Any]]) -> list[Any]:
    """Dataclasses in turns with plain dicts, objects inside of them included."""
    kinds: dict[tuple[str, ...], Any] = {}

    def record(value: Any) -> Any:
        if isinstance(value, list):
            return [record(one) for one in value]
        if not isinstance(value, dict):
            return value
        names = tuple(value)
        if not all(name.isidentifier() and not iskeyword(name) for name in names):
            return {name: record(one) for name, one in value.items()}
        kind = kinds.setdefault(names, dataclasses.make_dataclass("Record", names))
        return kind(*map(record, value.values()))

    return [record(event) if k % 2 else event for k, event in enumerate(events)]


def _maps(events: list[dict[str, Any]]) -> Events:
    """The arrays of objects as maps from names to one struct: what Spark's map columns are."""
    element = SCHEMA.field("x").type.value_type
    rows = [{key: event[key] for key in ("x",) if key in event} for event in events]
    cells = [None if not row else list(row.items()) for row in rows]
    return read_cells(pa.array(cells, pa.map_(pa.string(), pa.list_(element))))


def _pandas(events: list[dict[str, Any]]) -> pd.DataFrame:
    """Columns of Python's objects, with None or NaN for what is missing."""
    names = list(dict.fromkeys(name for event in events for name in event))
    columns = {}
    for k, name in enumerate(names):
        cells = np.empty(len(events), object)
        cells[:] = [event.get(name, None if k % 2 else float("nan")) for event in events]
        columns[name] = cells
    return pd.DataFrame(columns)


FORMS: dict[str, Callable[[list[dict[str, Any]]], Events]] = {
    "JSON lines": _json_events,
    "JSON lines by Python": lambda events: _json_events(events, fast=False),
    "Arrow": lambda events: read_events(_table(events)),
    "polars": lambda events: read_events(pl.from_arrow(_table(events))),
    "pandas": lambda events: read_events(_pandas(events)),
    "dicts": read_events,
    "structs": lambda events: read_cells(_table(events).to_struct_array().combine_chunks()),
    "JSON cells": lambda events: read_cells(pa.array(_lines(events))),
    "a Parquet file": lambda events: _file(events, "parquet"),
    "a JSON lines file": lambda events: _file(events, "jsonl"),
    "pandas with Arrow types": lambda events: read_events(_arrow_pandas(events)),
    "dataclasses": lambda events: read_events(_records(events)),
    "record batches": lambda events: read_events(_table(events).to_reader(700)),
}
"""For events of the schema."""

MIXED_FORMS = (
    *("JSON lines", "JSON lines by Python", "pandas", "dicts", "JSON cells"),
    *("a JSON lines file", "dataclasses"),
)
"""Those that can hold attributes of mixed types."""
