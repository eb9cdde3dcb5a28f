"""Every kind of source in memory gives the same events; anything else is an error, at once."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import UserDict, deque, namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow.dataset import dataset

import matchmill as mm
from matchmill.encoding.events.read import read_events
from matchmill.errors import EventError, InputError
from matchmill.language.flatten import as_mapping, flatten_event, is_record


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    lat: float
    lon: float


@dataclasses.dataclass
class Flight:
    origin: str
    delay: int
    tags: list[str]
    place: Place


class FlightTuple(NamedTuple):
    origin: str
    delay: int
    tags: list[str]
    place: Any


class PlaceTuple(NamedTuple):
    lat: float
    lon: float


class Model:
    """As much of a pydantic model as is needed."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def model_dump(self) -> dict[str, Any]:
        return dict(self._values)


class Stream:
    """Any object that hands out Arrow data."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


PLACE = {"lat": 40.5, "lon": -73.5}
FLIGHTS = [
    {"origin": "JFK", "delay": 75, "tags": ["a", "b"], "place": PLACE},
    {"origin": "LAX", "delay": 10, "tags": [], "place": PLACE},
]
FLAT = [flatten_event(flight) for flight in FLIGHTS]
TABLE = pa.Table.from_pylist(FLIGHTS)

RECORDS: dict[str, Any] = {
    "dict": dict,
    "read-only mapping": MappingProxyType,
    "UserDict": UserDict,
    "dataclass": lambda flight: Flight(**{**flight, "place": Place(**PLACE)}),
    "NamedTuple": lambda flight: FlightTuple(**{**flight, "place": PlaceTuple(**PLACE)}),
    "namedtuple": lambda flight: namedtuple("Row", flight)(**flight),
    "model": lambda flight: Model(**flight),
    "Series": pd.Series,
}


def flat_events(source: Any) -> list[dict[str, Any]]:
    events = read_events(source)
    assert events.columns().rejected == {}
    return [events.event(i) for i in range(events.n_events)]


@pytest.mark.parametrize("make", RECORDS.values(), ids=RECORDS)
def test_records(make: Any) -> None:
    record = make(FLIGHTS[0])
    assert is_record(record)
    assert flatten_event(record) == FLAT[0]
    assert flat_events(record) == FLAT[:1]
    records = [make(flight) for flight in FLIGHTS]
    for several in (records, tuple(records), deque(records), iter(records)):
        assert flat_events(several) == FLAT


@pytest.mark.parametrize("make", RECORDS.values(), ids=RECORDS)
def test_a_record_is_matched_as_its_dict(make: Any) -> None:
    engine = mm.Engine()
    engine.subscribe("late", "delay > 60 and place.lat > 40")
    engine.subscribe("tagged", "tags contains 'a'")
    assert engine.match(make(FLIGHTS[0])) == {"late", "tagged"}
    assert list(engine.match_many([make(flight) for flight in FLIGHTS])) == [
        {"late", "tagged"},
        set(),
    ]


@pytest.mark.parametrize("make", RECORDS.values(), ids=RECORDS)
def test_batches_of_records(make: Any) -> None:
    engine = mm.Engine({"late": "delay > 60"})
    (one,) = engine.match_batches(make(FLIGHTS[0]))
    assert list(one) == [{"late"}]
    batches = engine.match_batches([make(flight) for flight in FLIGHTS], batch_size=1)
    assert [list(batch) for batch in batches] == [[{"late"}], [set()]]


def test_many_records_go_by_column() -> None:
    rows = [FlightTuple("JFK", delay, [], None) for delay in range(100)]
    assert flat_events(rows) == [flatten_event(row) for row in rows]
    mixed = [FLIGHTS[0], Model(**FLIGHTS[1])]
    assert flat_events(mixed) == FLAT


def test_rows_of_a_frame() -> None:
    frame = pd.DataFrame({"origin": ["JFK", "LAX"], "delay": [75, 10]})
    rows = [{"origin": "JFK", "delay": 75}, {"origin": "LAX", "delay": 10}]
    assert flat_events(frame.itertuples(index=False)) == rows
    assert flat_events(row for _, row in frame.iterrows()) == rows


TABLES: dict[str, Any] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dataset": lambda: dataset(TABLE),
    "scanner": lambda: dataset(TABLE).scanner(),
    "stream": lambda: Stream(TABLE),
    "pandas": lambda: pd.DataFrame(FLIGHTS),
    "polars": lambda: pl.DataFrame(FLIGHTS),
    "lazy": lambda: pl.LazyFrame(FLIGHTS),
    "tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "batches": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "frames": lambda: [pl.DataFrame(FLIGHTS[:1]), pl.DataFrame(FLIGHTS[1:])],
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables(make: Any) -> None:
    assert flat_events(make()) == FLAT
    batches = mm.Engine({"late": "delay > 60"}).match_batches(make(), batch_size=2)
    assert [ids for batch in batches for ids in batch] == [{"late"}, set()]


def test_duckdb() -> None:
    flights = TABLE  # noqa: F841 (the query names it)
    assert flat_events(duckdb.sql("select * from flights")) == FLAT
    assert flat_events(duckdb.sql("select * from flights").arrow()) == FLAT
    answer = duckdb.connect().execute("select 1 as a")
    with pytest.raises(InputError, match=r"ask for a relation: connection\.sql"):
        read_events(answer)


def test_a_text_reader_of_dicts() -> None:
    rows = csv.DictReader(io.StringIO("origin,delay\nJFK,75\n"))
    assert flat_events(rows) == [{"origin": "JFK", "delay": "75"}]


def numbers() -> Iterator[int]:
    yield from range(3)


FRAME = pd.DataFrame({"a": [1, 2]})
WRONG: dict[str, tuple[Any, str]] = {
    "str": ("events.jsonl", "not as str; a path or an open file goes through matchmill.read"),
    "path": (Path("events.jsonl"), "a path or an open file goes through matchmill.read_events"),
    "open file": (io.StringIO('{"a": 1}\n'), "a path or an open file goes through"),
    "bytes": (b'{"a": 1}', "JSON lines in memory go through matchmill.read_events"),
    "number": (5, "not as int$"),
    "None": (None, "not as NoneType$"),
    "array": (np.zeros(3), r"not as numpy\.ndarray; if its elements are events, pass list"),
    "set": ({1, 2}, "not as set; if its elements are events"),
    "class": (Flight, "not as type$"),
    "numbers": ([{"a": 1}, 5], "event 1 is int$"),
    "generator of numbers": (numbers(), "event 0 is int$"),
    "plain tuples": (FRAME.itertuples(index=False, name=None), "event 0 is tuple, which has no"),
    "iterrows": (FRAME.iterrows(), "event 0 is tuple, which has no names"),
    "csv.reader": (csv.reader(io.StringIO("a,b\n1,2\n")), "event 0 is list, which has no names"),
    "lines": (['{"a": 1}'], "event 0 is str; JSON lines go through matchmill.read_events"),
    "columns": (pl.Series([1, 2]), r"polars\..*Series is one column, not a table"),
    "Arrow column": (pa.chunked_array([[1, 2]]), "ChunkedArray is one column, not a table"),
    "records and tables": ([{"a": 1}, TABLE], r"event 1 is pyarrow\.lib\.Table"),
}


@pytest.mark.parametrize(("source", "message"), WRONG.values(), ids=WRONG)
def test_other_sources_are_errors(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_events(source)


NO_EVENTS: dict[str, tuple[Any, str]] = {
    "text": ('{"a": 1}', r"not str; JSON text is decoded first: json\.loads"),
    "list": ([{"a": 1}], "not list; several events go through match_many"),
    "table": (TABLE, "not Table; several events go through match_many"),
    "number": (5, "not int$"),
    "column": (pd.Series([1, 2]), "a Series is one event, with names of attributes as its index"),
}


@pytest.mark.parametrize(("event", "message"), NO_EVENTS.values(), ids=NO_EVENTS)
def test_what_is_no_event(event: Any, message: str) -> None:
    assert is_record(event) == isinstance(event, pd.Series)
    with pytest.raises(EventError, match=message):
        as_mapping(event)
    with pytest.raises(EventError, match=message):
        mm.Engine().match(event)


def test_a_name_given_twice_in_a_series() -> None:
    series = pd.Series([1, 2], index=["a", "a"])
    assert "is given twice" in flatten_event(series)["a"].problem


def test_one_batch_by_the_arrow_interface() -> None:
    class Batch:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return self.array.__arrow_c_array__(requested_schema)

    rows = [{"x": 1}, {"x": 2}]
    engine = mm.Engine({"u": "x > 1"})
    for array in (pa.RecordBatch.from_pylist(rows), pa.array(rows)):
        assert list(engine.match_many(Batch(array))) == [set(), {"u"}]
        assert [m.n_matches for m in engine.match_batches(Batch(array))] == [1]
    with pytest.raises(InputError, match="one column, not a table"):
        engine.match_many(Batch(pa.array([1, 2])))


@pytest.mark.parametrize("column", [pl.Series("delay", [1, 2]), pa.array([1, 2])])
def test_one_column_is_no_table(column: Any) -> None:
    engine = mm.Engine({"late": "delay > 60"})
    with pytest.raises(InputError, match="is one column, not a table"):
        read_events(column)
    with pytest.raises(InputError, match="is one column, not a table"):
        engine.match_many(column)


class Root(Model):
    """A model that stands for a list, as pydantic's RootModel may."""

    def model_dump(self) -> Any:
        return [1, 2]


def test_a_model_without_names_is_no_event() -> None:
    engine = mm.Engine({"u1": "x contains 1"})
    assert engine.match({"x": Root()}) == {"u1"}
    for call in (engine.match, read_events, lambda event: engine.match_many([event])):
        with pytest.raises(EventError, match="Root stands for a list, which has none"):
            call(Root())


def test_a_warning_names_the_line_of_the_caller() -> None:
    engine = mm.Engine({"u1": "odd > 1"})
    with pytest.warns(UserWarning, match="attribute 'odd'") as caught:
        engine.match_many(pa.table({"odd": pa.array([b"x"], pa.binary())}))
    assert caught[0].filename == __file__
