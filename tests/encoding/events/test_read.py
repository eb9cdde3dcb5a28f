"""Every source of events is compared with `flatten_event`, cell by cell."""

from __future__ import annotations

import datetime as dt
import enum
import json
import pickle
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matchmill as mm
from matchmill.encoding.events import arrow as arrow_events
from matchmill.encoding.events import json_lines as json_events
from matchmill.encoding.events.arrow import TableEvents
from matchmill.encoding.events.read import (
    Column,
    EventColumns,
    Events,
    read_events,
    read_json_lines,
)
from matchmill.encoding.numbers import split_floats
from matchmill.errors import EventError, InputError
from matchmill.language.flatten import flatten_event
from matchmill.language.values import INT64_MAX, INT64_MIN, Opaque, Region, domain_value, region_of
from matchmill.settings import DEFAULT_SETTINGS, Settings

# -- comparing ------------------------------------------------------------------------------------

Flat = dict[str, Any]


def meaning(value: Any) -> Any:
    """What a value is compared by; lists are compared without order."""
    if isinstance(value, list):
        return (Region.LIST, Counter(meaning(element) for element in value))
    if region_of(value) == Region.OBJECT:
        return (Region.OBJECT, None)
    domain = domain_value(value)
    if region_of(value) == Region.NUMBER:
        domain = Fraction(domain)  # type: ignore[arg-type, assignment]
    return (region_of(value), domain)


def meanings(flat: Mapping[str, Any]) -> Flat:
    return {name: meaning(value) for name, value in flat.items()}


def column_values(column: Column) -> list[Any]:
    """The meaning of each value of a column that is no list."""
    region = column.region
    if region == Region.STRING:
        assert column.text is not None
        return [(region, text) for text in column.text.to_pylist()]
    values: list[Any] = []
    for whole, part in zip(column.whole.tolist(), column.part.tolist(), strict=True):
        if region == Region.NUMBER:
            is_beyond = (whole == INT64_MAX and part) or (whole == INT64_MIN and part)
            values.append(Fraction(part) if is_beyond else whole + Fraction(part))
        elif region == Region.TIMESTAMP:
            assert 0.0 <= part < 1.0
            values.append(whole * 1000 + round(part * 1000))
        else:
            assert part == 0.0
            one_value = bool(whole) if region == Region.BOOLEAN else whole
            values.append(None if region == Region.OBJECT else one_value)
    return [(region, value) for value in values]


def check_column(column: Column, n_events: int, *, repeats: bool = False) -> None:
    region = column.region
    assert column.rows.dtype == np.int64
    assert column.whole.dtype == np.int64
    assert column.part.dtype == np.float64
    steps = np.diff(column.rows)
    assert (steps >= 0).all() if repeats else (steps > 0).all()
    assert len(column.rows) > 0
    assert column.rows[0] >= 0
    assert column.rows[-1] < n_events
    if region == Region.STRING:
        assert isinstance(column.text, pa.LargeStringArray)
        assert column.text.null_count == 0
        assert len(column.text) == len(column.rows)
        column.text.validate(full=True)
    else:
        assert column.text is None
    n_numbers = 0 if region in (Region.STRING, Region.LIST) else len(column.rows)
    assert len(column.whole) == len(column.part) == n_numbers
    assert column.whole.flags.c_contiguous
    assert column.whole.flags.writeable
    assert (region == Region.LIST) or not column.elements
    for element in column.elements:
        assert element.attribute == column.attribute
        assert element.region != Region.LIST
        assert set(element.rows.tolist()) <= set(column.rows.tolist())
        check_column(element, n_events, repeats=True)


def flat_events(found: EventColumns) -> list[Flat]:
    """The events that the columns hold, by meaning."""
    events: list[Flat] = [{} for _ in range(found.n_events)]
    seen = set()
    for column in found.columns:
        check_column(column, found.n_events)
        assert (column.attribute, column.region) not in seen
        seen.add((column.attribute, column.region))
        if column.region == Region.LIST:
            values = [(Region.LIST, Counter()) for _ in column.rows]
            place = {row: k for k, row in enumerate(column.rows.tolist())}
            for element in column.elements:
                for row, value in zip(element.rows.tolist(), column_values(element), strict=True):
                    values[place[row]][1][value] += 1
        else:
            values = column_values(column)
        for row, value in zip(column.rows.tolist(), values, strict=True):
            assert column.attribute not in events[row]
            assert row not in found.rejected
            events[row][column.attribute] = value
    return events


def flatten(item: Any, limits: Settings = DEFAULT_SETTINGS) -> tuple[Flat | None, str]:
    """A flat event, or None and the reason."""
    try:
        return flatten_event(item, limits), ""
    except EventError as error:
        return None, str(error)


def check(events: Events, expected: Iterable[Any], limits: Settings = DEFAULT_SETTINGS) -> None:
    """Columns and single events say what flatten_event says about `expected`."""
    expected = list(expected)
    found = events.columns()
    assert found.n_events == events.n_events == len(expected)
    flats = flat_events(found)
    for i, item in enumerate(expected):
        flat, reason = flatten(item, limits)
        if flat is None:
            assert found.rejected[i].endswith(reason)
            with pytest.raises(EventError) as raised:
                events.event(i)
            assert str(raised.value) == found.rejected[i]
        else:
            assert i not in found.rejected
            assert flats[i] == meanings(flat)
            assert meanings(events.event(i)) == meanings(flat)
    check_wanted(events, found)


def check_wanted(events: Events, found: EventColumns) -> None:
    names = sorted({column.attribute for column in found.columns})
    some = set(names[::2])
    part = events.columns(lambda name: name in some)
    assert part.rejected == found.rejected
    assert {column.attribute for column in part.columns} == some
    for all_values, some_values in zip(flat_events(found), flat_events(part), strict=True):
        assert {name: v for name, v in all_values.items() if name in some} == some_values


few = settings(max_examples=60, deadline=None)


def many(test: Any) -> Any:
    """The same at length, among the slow tests."""
    return pytest.mark.long(settings(max_examples=1500, deadline=None)(test))


# -- values to draw from --------------------------------------------------------------------------

NAMES = ("a", "b", "a.b", "a.a", "größe", "")

ints = st.sampled_from([0, 1, -1, 2**53 + 1, INT64_MIN, INT64_MAX]) | st.integers(
    INT64_MIN, INT64_MAX
)
floats = st.sampled_from([0.0, -0.0, 1.5, -1.5, 2.0**63, -(2.0**63), 1e300, 5e-324]) | st.floats(
    allow_nan=False, allow_infinity=False
)
good_text = st.sampled_from(["", "a", "é", "😀", "\U0010ffff", "\0", "2013-01-31"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=4
)
times = st.datetimes(timezones=st.none() | st.timezones()) | st.sampled_from(
    [dt.datetime.min, dt.datetime.max, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]
)
good_scalars = st.none() | st.booleans() | ints | floats | good_text | st.dates() | times
odd_scalars = st.sampled_from(
    [
        *(float("nan"), float("inf"), 2**63, -(2**63) - 1, 10**400, "\ud800", "x\udfff", b"bytes"),
        *(Decimal("0.1"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e400"), Decimal("-Infinity")),
        *(np.float64(0.1), np.float32(0.1), np.int8(-5), np.uint64(2**63), np.bool_(True)),
        *(np.float64("nan"), np.float16("inf"), np.str_("text"), np.datetime64("2013-01-31")),
        *(np.datetime64("NaT"), np.timedelta64(1, "s"), np.array([1, 2]), np.bytes_(b"x")),
        *(pd.NA, pd.NaT, pd.Timestamp("2013-01-31 10:00:00.123456789"), dt.time(1), 1j, {1}),
        *(enum.IntEnum("Color", "RED").RED, enum.StrEnum("Shape", "SQUARE").SQUARE, object),
    ]
)
values = st.recursive(
    good_scalars | good_scalars | odd_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    ),
    max_leaves=6,
)
wild_events = st.dictionaries(st.sampled_from(NAMES), values, max_size=5) | st.sampled_from(
    [{1: 2}, {"\ud800": 1}, MappingProxyType({"a": 1}), OrderedDict(b=2)]
)


# -- numbers --------------------------------------------------------------------------------------


def pair(value: float) -> tuple[int, float]:
    if isinstance(value, int):
        return value, 0.0
    whole, part = split_floats(np.array([value]))
    return int(whole[0]), float(part[0])


edges = st.builds(
    lambda power, step, make: make(power + step),
    st.sampled_from([0, 2**52, 2**53, 2**62, 2**63 - 1, -(2**53), -(2**63)]),
    st.integers(-3, 3),
    st.sampled_from([int, float]),
).filter(lambda value: isinstance(value, float) or INT64_MIN <= value <= INT64_MAX)
numbers = edges | ints | floats


@given(numbers, numbers)
@settings(max_examples=200)
@example(-(2.0**63), INT64_MIN)
@example(2.0**63, INT64_MAX)
@example(-0.0, 0)
@example(-0.5, 0)
@example(-1.5, -1)
@example(1e300, 2.0**63)
@example(-1e300, -(2.0**63))
@example(float(2**53), 2**53 + 1)
def test_pairs_order_as_the_numbers_do(a: float, b: float) -> None:
    assert (pair(a) < pair(b)) == (a < b)
    assert (pair(a) == pair(b)) == (a == b)


@given(st.lists(floats))
def test_floats_are_split_together_as_one_by_one(x: list[float]) -> None:
    whole, part = split_floats(x)
    assert (whole.dtype, part.dtype) == (np.int64, np.float64)
    assert list(zip(whole.tolist(), part.tolist(), strict=True)) == [pair(value) for value in x]


def test_the_edges_of_pairs() -> None:
    assert pair(-(2.0**63)) == (INT64_MIN, 0.0)
    assert pair(2.0**63) == (INT64_MAX, 2.0**63)
    assert pair(-1e300) == (INT64_MIN, -1e300)
    assert pair(-2.25) == (-2, -0.25)


# -- mappings -------------------------------------------------------------------------------------


alike = st.fixed_dictionaries(
    {"a": st.one_of(good_scalars, odd_scalars), "b": ints | floats, "s": good_text},
    optional={"a.b": values, "n": st.none()},
)


def mappings_agree(events: list[Any]) -> None:
    check(read_events(events), events)


test_mappings = few(given(st.lists(wild_events, max_size=8))(mappings_agree))
test_many_mappings = many(given(st.lists(wild_events, max_size=8))(mappings_agree))
test_like_mappings = few(given(st.lists(alike, min_size=4, max_size=40))(mappings_agree))
test_many_like_mappings = many(given(st.lists(alike, min_size=4, max_size=40))(mappings_agree))


@pytest.mark.parametrize("n_events", [1, 3, 50])
def test_every_odd_scalar_among_plain_ones(n_events: int) -> None:
    scalars = [float("inf"), float("nan"), 2**63, "\ud800", Decimal("0.1"), np.float32(0.1), pd.NaT]
    scalars += [pd.Timestamp(5), np.longdouble(1), dt.time(1), {"x": 1}, [1, "x", None, 2.5], None]
    for scalar in scalars:
        events = [{"a": 1, "b": "x"} for _ in range(n_events)]
        events[n_events // 2]["a"] = scalar
        check(read_events(events), events)


def test_a_mapping_is_one_event() -> None:
    check(read_events({"a": {"b": 1}}), [{"a": {"b": 1}}])


@pytest.mark.parametrize("make", [list, tuple, deque, iter, lambda x: (e for e in x)])
def test_sequences_and_iterators(make: Any) -> None:
    events = [{"a": 1}, {"a": 2}]
    check(read_events(make(events)), events)
    check(read_events(dict(enumerate(events)).values()), events)


def test_no_events() -> None:
    check(read_events([]), [])
    check(read_events(iter([])), [])


def test_events_stay_what_they_are() -> None:
    events = read_events({"a": 1})
    assert read_events(events) is events


def test_mixed_types_have_columns_of_their_own() -> None:
    columns = read_events(
        [{"a": 1}, {"a": "x"}, {"a": 1.5}, {"a": [1, "x"]}, {"a": None}]
    ).columns()
    rows = {column.region: column.rows.tolist() for column in columns.columns}
    assert rows == {Region.NUMBER: [0, 2], Region.STRING: [1], Region.LIST: [3]}


def test_sparse_events_are_read_by_row() -> None:
    events = [{f"a{i}": i, "all": 1} for i in range(100)]
    check(read_events(events), events)
    events = [{"all": 1} for _ in range(40)] + [{f"a{i}": i} for i in range(100)]
    check(read_events(events), events)


def test_an_index_out_of_range() -> None:
    sources = ([{"a": 1}], pa.table({"a": [1]}), read_json_lines(b""))
    for events in map(read_events, sources):
        for i in (-1, 1):
            with pytest.raises(IndexError):
                events.event(i)


LIMITS = Settings(max_event_values=6, max_event_depth=3)


@given(st.lists(st.dictionaries(st.sampled_from("abcdefgh"), values, max_size=8), max_size=6))
@few
def test_limits_of_mappings(events: list[Any]) -> None:
    check(read_events(events, LIMITS), events, LIMITS)
    plain = [{f"a{i}": i for i in range(n)} for n in (5, 6, 7, 6)]
    check(read_events(plain, LIMITS), plain, LIMITS)


# -- Arrow ----------------------------------------------------------------------------------------

NS = "timestamp[ns]"


def fine_time(nanoseconds: int | None) -> Any:
    return None if nanoseconds is None else pd.Timestamp(nanoseconds)


def late_time(units: int | None, per_microsecond: int) -> Any:
    """A time beyond the years of Python is the first or the last there is."""
    if units is None:
        return None
    try:
        return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=units * per_microsecond)
    except OverflowError:
        return dt.datetime.max if units > 0 else dt.datetime.min


int64s = st.integers(INT64_MIN, INT64_MAX)
late = 253402300800

# Scalar types: the Arrow type, what goes into the array, and what that means.
FLAT: list[tuple[pa.DataType, st.SearchStrategy[Any], Any]] = [
    (pa.null(), st.none(), None),
    (pa.bool_(), st.booleans(), None),
    (pa.int8(), st.integers(-128, 127), None),
    (pa.uint16(), st.integers(0, 2**16 - 1), None),
    (pa.int64(), ints, None),
    (pa.uint64(), st.integers(0, 2**64 - 1) | st.sampled_from([INT64_MAX, 2**63]), None),
    (pa.float16(), st.floats(width=16).map(np.float16), float),
    (pa.float32(), st.floats(width=32), None),
    (pa.float64(), floats | st.floats(), None),
    (pa.decimal128(20, 5), st.decimals(-(10**14), 10**14, places=5), None),
    (pa.decimal256(70, 30), st.decimals(-(10**30), 10**30, places=30), None),
    (pa.decimal128(5, -3), st.integers(-999, 999).map(lambda x: Decimal(x).scaleb(3)), None),
    (pa.date32(), st.dates(), None),
    (pa.date64(), st.dates(), None),
    (pa.timestamp("us"), st.datetimes(), None),
    (pa.timestamp("us", "Europe/Berlin"), st.datetimes(timezones=st.just(dt.UTC)), None),
    (pa.timestamp("ns"), int64s.filter(lambda x: x != INT64_MIN), fine_time),
    (pa.timestamp("ns", "UTC"), st.integers(-2000, 2000), fine_time),
    (pa.timestamp("s"), int64s | st.integers(late - 3, late), lambda x: late_time(x, 10**6)),
    (pa.timestamp("ms"), int64s, lambda x: late_time(x, 1000)),
    (pa.string(), good_text, None),
    (pa.large_string(), good_text, None),
    (pa.string_view(), good_text, None),
]


class Drawn:
    """An Arrow type, the values to build an array from, and what they mean."""

    def __init__(self, kind: pa.DataType, inputs: list[Any], meant: list[Any]) -> None:
        self.kind, self.inputs, self.meant = kind, inputs, meant


@st.composite
def arrow_values(draw: st.DrawFn, n: int, depth: int = 2) -> Drawn:
    shape = draw(st.sampled_from(["flat"] * 4 + ["struct", "list", "fixed", "map"]))
    nulls = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    if depth == 0 or shape == "flat":
        kind, strategy, mean = draw(st.sampled_from(FLAT))
        drawn = draw(st.lists(st.none() | strategy, min_size=n, max_size=n))
        return Drawn(kind, drawn, [mean(x) if mean and x is not None else x for x in drawn])
    if shape == "struct":
        names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
        fields = [draw(arrow_values(n, depth - 1)) for _ in names]
        kind = pa.struct([pa.field(k, f.kind) for k, f in zip(names, fields, strict=True)])
        inputs: list[Any] = [
            dict(zip(names, [f.inputs[i] for f in fields], strict=True)) for i in range(n)
        ]
        meant: list[Any] = [
            dict(zip(names, [f.meant[i] for f in fields], strict=True)) for i in range(n)
        ]
    else:
        size = draw(st.integers(0, 3))
        sizes = [size if shape == "fixed" else draw(st.integers(0, 3)) for _ in range(n)]
        inner = draw(arrow_values(sum(sizes), depth - 1))
        ends = np.cumsum(sizes, dtype=int).tolist()
        bounds = [slice(end - some, end) for end, some in zip(ends, sizes, strict=True)]
        inputs, meant = [inner.inputs[b] for b in bounds], [inner.meant[b] for b in bounds]
        if shape == "map":
            keys = [draw(st.permutations("abc"))[:some] for some in sizes]
            inputs = [list(zip(k, x, strict=True)) for k, x in zip(keys, inputs, strict=True)]
            meant = [dict(zip(k, x, strict=True)) for k, x in zip(keys, meant, strict=True)]
            kind = pa.map_(pa.string(), inner.kind)
        elif shape == "fixed":
            kind = pa.list_(inner.kind, size)
        else:
            make = draw(st.sampled_from([pa.list_, pa.large_list, pa.list_view]))
            kind = make(inner.kind)
    pick = [
        [None if null else x for x, null in zip(xs, nulls, strict=True)] for xs in (inputs, meant)
    ]
    return Drawn(kind, *pick)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[dict[str, Any]]]:
    n = draw(st.integers(0, 6))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    drawn = [draw(arrow_values(n)) for _ in names]
    columns = []
    for column in drawn:
        cut = draw(st.integers(0, n))
        parts = [column.inputs[:cut], column.inputs[cut:]]
        chunks = [pa.array(part, column.kind) for part in parts]
        if draw(st.booleans()) and can_encode(column.kind):
            chunks = [chunk.dictionary_encode() for chunk in chunks]
        columns.append(pa.chunked_array(chunks))
    table = pa.table(columns, names)
    table = pa.Table.from_arrays(columns, names) if names else table
    meant = [{k: c.meant[i] for k, c in zip(names, drawn, strict=True)} for i in range(n)]
    return table, meant if names else []


def can_encode(kind: pa.DataType) -> bool:
    no = (pa.types.is_nested, pa.types.is_float16, pa.types.is_string_view, pa.types.is_null)
    return not any(test(kind) for test in no)


def tables_agree(drawn: tuple[pa.Table, list[dict[str, Any]]], data: st.DataObject) -> None:
    table, expected = drawn
    source = data.draw(st.sampled_from(["table", "slice", "batches", "limits"]))
    if source == "table":
        check(read_events(table), expected)
    elif source == "slice":
        start = data.draw(st.integers(0, table.num_rows))
        stop = data.draw(st.integers(start, table.num_rows))
        check(read_events(table.slice(start, stop - start)), expected[start:stop])
    elif source == "limits":
        check(read_events(table, LIMITS), expected, LIMITS)
    else:
        offset = 0
        for batch in table.to_batches():
            check(read_events(batch), expected[offset : offset + batch.num_rows])
            offset += batch.num_rows
        assert offset == len(expected)


test_tables = few(given(tables(), st.data())(tables_agree))
test_many_tables = many(given(tables(), st.data())(tables_agree))


def test_a_table_without_columns_has_rows() -> None:
    table = pa.table({"a": [1, 2, 3]}).select([])
    check(read_events(table), [{}, {}, {}])
    check(read_events(pa.table({})), [])
    check(read_events(table.to_batches()[0]), [{}, {}, {}])
    check(read_events(pd.DataFrame(index=range(3))), [{}, {}, {}])
    check(read_events(pl.DataFrame(height=3)), [{}, {}, {}])


def test_a_table_without_rows() -> None:
    schema = pa.schema([(f"a{k}", kind) for k, (kind, _, _) in enumerate(FLAT)])
    check(read_events(schema.empty_table()), [])


def test_a_bad_value_is_an_object() -> None:
    table = pa.table(
        {
            "x": pa.array([1.0, float("inf"), float("nan"), None]),
            "n": pa.array([2**63, 1, 2, 3], pa.uint64()),
        }
    )
    first, second, *_ = flat_events(read_events(table).columns())
    assert first == {"x": (Region.NUMBER, 1), "n": (Region.OBJECT, None)}
    assert second == {"x": (Region.OBJECT, None), "n": (Region.NUMBER, 1)}
    check(read_events(table), table.to_pylist())


TWICE = (Region.OBJECT, None)


def numbers(*values: int) -> list[Any]:
    return [(Region.NUMBER, value) for value in values]


def test_a_name_given_twice() -> None:
    inner = pa.array([{"b": 1}, {"b": None}, None, {"b": 4}])
    table = pa.table([pa.array([1, 2, 3, None]), inner], ["a.b", "a"])
    found = read_events(table).columns()
    assert flat_events(found) == [{"a.b": value} for value in [TWICE, *numbers(2, 3, 4)]]
    check(read_events(table), table.to_pylist())


def test_columns_of_one_name() -> None:
    columns = [
        pa.array([1, None, 3, None]),
        pa.array(["x", "y", None, None]),
        pa.array([[], [1], None, None]),
    ]
    events = read_events(pa.table(columns, ["a", "a", "a"]))
    found = events.columns()
    assert flat_events(found) == [{"a": TWICE}, {"a": TWICE}, {"a": (Region.NUMBER, 3)}, {}]
    assert "given twice" in events.event(0)["a"].problem
    struct = pa.StructArray.from_arrays([pa.array([1, None]), pa.array([2, 3])], ["x", "x"])
    found = read_events(pa.table({"a": struct, "lists": pa.array([[1], [2]])})).columns()
    assert [event["a.x"] for event in flat_events(found)] == [TWICE, (Region.NUMBER, 3)]


def test_a_map_with_a_key_twice() -> None:
    maps = [[("k", 1), ("k", 2)], [("k", None), ("k", 2)], [("k", 1), ("j", 2)], None, []]
    table = pa.table({"m": pa.array(maps, pa.map_(pa.string(), pa.int64()))})
    events = read_events(table)
    found = events.columns()
    one, two = (Region.NUMBER, 1), (Region.NUMBER, 2)
    assert flat_events(found) == [{"m.k": TWICE}, {"m.k": two}, {"m.k": one, "m.j": two}, {}, {}]
    assert meanings(events.event(1)) == {"m.k": two}
    table = table.append_column("m.k", pa.array([None, None, 7, 7, None], pa.int64()))
    first, _, third, *_ = flat_events(read_events(table).columns())
    assert (first, third) == ({"m.k": TWICE}, {"m.k": TWICE, "m.j": two})


def test_lists_of_maps_and_of_structs() -> None:
    kind = pa.list_(pa.map_(pa.string(), pa.int64()))
    maps = pa.array([[[("k", 1), ("j", None)], [("k", 2)], None], [[]], []], kind)
    expected = [{"m": [{"k": 1, "j": None}, {"k": 2}, None]}, {"m": [{}]}, {"m": []}]
    check(read_events(pa.table({"m": maps})), expected)
    structs = [[{"x": 1, "y": None}, None], [{"x": None, "y": []}], [{"x": 1, "y": [1, 2]}], []]
    table = pa.table({"s": pa.array(structs)})
    check(read_events(table), table.to_pylist())


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x", None]),
        pa.array([b"x", None], pa.binary_view()),
        pa.array([1, 2], pa.duration("s")),
        pa.array([1, 2], pa.time32("s")),
        pa.array([[b"x"], None]),
        pa.array([[(1, 2)], None], pa.map_(pa.int64(), pa.int64())),
        pa.array([b"x", b"y"]).dictionary_encode(),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
    ],
)
def test_values_of_other_types_are_objects_with_a_warning_if_wanted(array: pa.Array) -> None:
    table = pa.table([array, pa.array([1, 2])], ["odd", "a"])
    events = read_events(table)
    with pytest.warns(UserWarning, match=r"attribute 'odd': only operators look at values of the"):
        found = events.columns(lambda name: name == "odd")
    assert [column.attribute for column in found.columns] == ["odd"]
    assert flat_events(events.columns(lambda name: name == "a"))[0] == {"a": (Region.NUMBER, 1)}
    flats = flat_events(events.columns())
    assert flats == [meanings(events.event(i)) for i in (0, 1)]
    inside = Counter([(Region.OBJECT, None)])
    is_list = pa.types.is_list(array.type)
    assert flats[0]["odd"] == ((Region.LIST, inside) if is_list else (Region.OBJECT, None))
    assert ("odd" in flats[1]) is (array[1].as_py() is not None)


def test_objects_inside() -> None:
    infinite = {"x": float("inf"), "odd": None}
    rows = [{"x": 1, "odd": b"x"}, None, infinite, infinite]
    view = pa.struct([("x", pa.float64()), ("odd", pa.binary_view())])
    maps = pa.array([[("k", b"x")], None, [], None], pa.map_(pa.string(), pa.binary()))
    lists = pa.array([[row, None] for row in rows], pa.list_(view))
    table = pa.table({"s": pa.array(rows, view), "l": lists, "m": maps})
    events = read_events(table)
    wanted_odd = ("s.odd", "l.odd", "m.k")
    for odd in wanted_odd:
        with pytest.warns(UserWarning, match=f"'{odd}': .* the Arrow type binary"):
            events.columns(lambda name, odd=odd: name == odd)  # type: ignore[misc]
    found = events.columns()
    one, odd_one = (Region.NUMBER, 1), (Region.OBJECT, None)
    first = {
        "s.x": one,
        "s.odd": odd_one,
        "m.k": odd_one,
        "l.x": (Region.LIST, Counter([one])),
        "l.odd": (Region.LIST, Counter([odd_one])),
    }
    infinite_one = {"s.x": odd_one, "l.x": (Region.LIST, Counter([odd_one]))}
    empty = {"l": (Region.LIST, Counter())}
    assert flat_events(found) == [first, empty, infinite_one, infinite_one]
    assert [meanings(events.event(i)) for i in range(4)] == flat_events(found)


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_that_is_not_utf8(bad: bytes, kind: pa.DataType) -> None:
    texts = pa.array([b"good", bad, None, b"too"]).view(pa.string())
    if pa.types.is_string_view(kind):
        texts = pa.array([b"good", bad, None, b"too"], pa.binary_view()).view(kind)
    else:
        texts = texts.cast(kind)
    for array in (texts, pa.StructArray.from_arrays([texts], ["inner"])):
        events = read_events(pa.table({"a": array}))
        found = events.columns()
        (name,) = {column.attribute for column in found.columns}
        assert [event.get(name, (None,))[0] for event in flat_events(found)] == [
            *(Region.STRING, Region.OBJECT, None, Region.STRING)
        ]
        assert "not valid UTF-8" in events.event(1)[name].problem
        assert events.event(0)[name] == "good"


def test_map_keys_that_are_not_utf8() -> None:
    keys = pa.array([b"good", b"\xff"]).view(pa.string())
    table = pa.table({"m": pa.MapArray.from_arrays([0, 1, 2], keys, pa.array([1, 2]))})
    events = read_events(table)
    assert flat_events(events.columns()) == [{"m.good": (Region.NUMBER, 1)}, {}]
    assert [events.event(i) for i in range(2)] == [{"m.good": 1}, {}]


def test_runs_and_dictionaries_with_nulls() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 3, 6], pa.int32()), pa.array(["x", None, "y"])
    )
    expected = [{"a": v} for v in ["x", "x", None, "y", "y", "y"]]
    check(read_events(pa.table({"a": runs})), expected)
    check(read_events(pa.table({"a": runs.slice(1, 3)})), expected[1:4])
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["x", None]))
    check(read_events(pa.table({"a": words})), [{"a": v} for v in ["x", None, None, "x"]])
    nested = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array([{"b": 1}, {"b": 2}]))
    check(read_events(pa.table({"a": nested})), [{"a": {"b": v}} for v in [2, 1, 2]])


def test_columns_too_long_for_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    def combined(column: Any) -> Any:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(arrow_events, "combined", combined)
    lists = pa.chunked_array([[[1], None], [[2, 3]]])
    check(read_events(pa.table({"a": lists})), [{"a": [1]}, {"a": None}, {"a": [2, 3]}])


def test_nanoseconds_are_kept() -> None:
    table = pa.table({"t": pa.array([-1, 0, 1999], pa.timestamp("ns"))})
    (column,) = read_events(table).columns().columns
    assert column.whole.tolist() == [-1, 0, 1]
    assert column.part.tolist() == [0.999, 0.0, 0.999]
    for zone in (None, "Asia/Tokyo"):
        array = pa.array([-1, 0, 1999], pa.timestamp("ns", zone))
        times = [read_events(pa.table({"t": array})).event(i)["t"] for i in range(3)]
        assert [domain_value(time) for time in times] == [-1, 0, 1999]  # type: ignore[arg-type]
        copies = pickle.loads(pickle.dumps(times))
        assert [domain_value(time) for time in copies] == [-1, 0, 1999]


def test_decimals_are_nearest_doubles_or_exact() -> None:
    """Small ones are compared as literals are, which are doubles; large ones keep all digits."""
    small, whole = ["0.1", "1e-10", "0.3", "35184372088831.99"], ["9007199254740993", "-5"]
    expected = [Fraction(float(n)) for n in small] + [Fraction(n) for n in whole]
    expected += [Fraction(-123456789012345678) - Fraction(0.01)]
    numbers = [Decimal(n) for n in (*small, *whole, "-123456789012345678.01")]
    tables = [
        pa.table({"d": pa.array(numbers, pa.decimal128(38, 10))}),
        [{"d": number} for number in numbers],
        [{"d": number, "e": {"x": 1}} for number in numbers],  # read by row
        pd.DataFrame({"d": pd.Series(numbers, dtype=object)}),
    ]
    for source in tables:
        events = read_events(source)
        (column,) = (c for c in events.columns().columns if c.attribute == "d")
        assert [value for _, value in column_values(column)] == expected
        assert [domain_value(events.event(i)["d"]) for i in range(7)] == expected


def test_amounts_a_cent_apart_differ() -> None:
    amounts = [Decimal(f"123456789012345678.0{cent}") for cent in range(1, 4)]
    ids = [Decimal(123456789012345677 + n) for n in range(3)]
    engine = mm.Engine(
        {
            "id": "id = 123456789012345678",
            "above": "amount > 123456789012345678",
            "below": "amount < 123456789012345679 and not amount <= 123456789012345677",
            "small": "price = 1234.1",
        }
    )
    events = [
        {"id": i, "amount": amount, "price": Decimal("1234.10")}
        for i, amount in zip(ids, amounts, strict=True)
    ]
    expected = [{"above", "below", "small"} | ({"id"} if n == 1 else set()) for n in range(3)]
    types = [pa.decimal128(18, 0), pa.decimal128(20, 2), pa.decimal128(9, 2)]
    arrow = pa.table(
        [pa.array([e[k] for e in events], t) for k, t in zip(events[0], types, strict=True)],
        list(events[0]),
    )
    assert list(engine.match_many(arrow)) == expected
    assert list(engine.match_many(events)) == expected
    assert [engine.match(event) for event in events] == expected
    for event, found in zip(events, expected, strict=True):
        assert {i for i in engine if mm.evaluate(engine[i].expression, event)} == found
        assert engine.explain("above", event).matched
        assert str(engine.explain("id", event))
    one, two, three = read_events(arrow).columns().columns[1].part.tolist()
    assert one < two < three


def test_a_very_deep_type_has_objects() -> None:
    kind = pa.int64()
    for _ in range(80):
        kind = pa.list_(kind)
    table = pa.table({"a": pa.array([None, []], kind)})
    check(read_events(table), [{"a": None}, {"a": []}])
    for _ in range(900):
        kind = pa.list_(kind)
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    table = pa.table({"a": pa.array([deep, None], kind), "b": [1, 2]})
    check(read_events(table), [{"a": deep, "b": 1}, {"b": 2}])


# -- DataFrames -----------------------------------------------------------------------------------


@given(
    st.lists(
        st.fixed_dictionaries({"a": values, "b": good_scalars, "a.b": odd_scalars, "s": good_text}),
        min_size=1,
        max_size=10,
    )
)
@few
def test_pandas_objects(events: list[dict[str, Any]]) -> None:
    columns = {}
    for name in events[0]:
        cells = np.empty(len(events), object)
        for i, event in enumerate(events):
            cells[i] = event[name]
        columns[name] = pd.Series(cells, dtype=object)
    in_order = [{name: event[name] for name in columns} for event in events]
    check(read_events(pd.DataFrame(columns)), in_order)


def test_pandas_types() -> None:
    zone = "Europe/Berlin"
    frame = pd.DataFrame(
        {
            "float": [1.5, float("nan"), -0.0],
            "int": [1, 2, INT64_MAX],
            "nullable": pd.array([1, None, 3], "Int64"),
            "nullable float": pd.array([1.5, None, 0.1], "Float64"),
            "bool": [True, False, True],
            "string": pd.array(["x", None, "é"], "string"),
            "object": ["x", None, float("nan")],
            "category": pd.Categorical(["x", None, "y"]),
            "numbers": pd.Categorical([1, 2, 1]),
            "mixed": pd.Categorical([dt.date(2013, 1, 1), dt.datetime(2013, 1, 1, 5), 1]),
            "dates": [dt.date(2013, 1, 1), dt.datetime(2013, 1, 1, 5), None],
            "time": pd.to_datetime([123456789, None, -1]),
            "zoned": pd.to_datetime(["2013-01-31", None, "1969-12-31"]).tz_localize(zone),
            "sparse": pd.arrays.SparseArray([1.0, float("nan"), 2.0]),
            "arrow": pd.Series([[1], None, []], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        }
    )
    expected = [{str(name): frame[name].iloc[i] for name in frame} for i in range(3)]
    check(read_events(frame), expected)
    check(read_events(frame.iloc[1:]), expected[1:])


def test_pandas_numbers_keep_their_digits() -> None:
    frame = pd.DataFrame({"a": pd.Series([2**53 + 1, 0.5, Decimal("0.1"), 2**63], dtype=object)})
    first, *_, last = flat_events(read_events(frame).columns())
    assert first == {"a": (Region.NUMBER, 2**53 + 1)}
    assert last == {"a": (Region.OBJECT, None)}


def test_pandas_names() -> None:
    with pytest.raises(InputError, match=r"attribute names are strings, not 5 \(int\)"):
        read_events(pd.DataFrame({"a": [1], 5: [2]}))
    with pytest.raises(InputError, match=r"not \('a', 'b'\)"):
        read_events(pd.DataFrame({("a", "b"): [1]}))
    frame = pd.DataFrame([[1, None], [1, 2]], columns=["a", "a"], dtype=object)
    assert flat_events(read_events(frame).columns())[1] == {"a": TWICE}


def test_pandas_types_whose_values_are_objects() -> None:
    frame = pd.DataFrame({"odd": pd.period_range("2013", periods=2, freq="M"), "a": [1, 2]})
    assert len(read_events(frame).columns(lambda name: name == "a").columns) == 1
    with pytest.warns(UserWarning, match="attribute 'odd'"):
        read_events(frame).columns(lambda name: name == "odd")
    check(read_events(frame), [{"odd": object(), "a": 1}, {"odd": object(), "a": 2}])


POLARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pl.Int64, ints),
    (pl.UInt64, st.integers(0, 2**64 - 1)),
    (pl.Float64, floats | st.floats()),
    (pl.String, good_text),
    (pl.Boolean, st.booleans()),
    (pl.Date, st.dates()),
    (pl.Datetime("us"), st.datetimes()),
    (pl.List(pl.String), st.lists(st.none() | good_text, max_size=3)),
    (
        pl.Struct({"x": pl.Int64, "b": pl.String}),
        st.fixed_dictionaries({"x": ints, "b": good_text}),
    ),
]


@given(st.data())
@few
def test_polars(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 5))
    columns, cells = [], {}
    for name in data.draw(st.lists(st.sampled_from(NAMES[:-1]), unique=True, min_size=1)):
        kind, strategy = data.draw(st.sampled_from(POLARS))
        cells[name] = data.draw(st.lists(st.none() | strategy, min_size=n, max_size=n))
        columns.append(pl.Series(name, cells[name], dtype=kind))
    expected = [{name: cells[name][i] for name in cells} for i in range(n)]
    check(read_events(pl.DataFrame(columns)), expected)


def test_polars_types() -> None:
    frame = pl.DataFrame(
        {
            "s": ["x", None, "é" * 20],
            "category": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "enum": pl.Series(["x", "y", None], dtype=pl.Enum(["x", "y"])),
            "struct": [{"a": "x", "b": 1}, None, {"a": None, "b": 2}],
            "list": [["x"], None, []],
            "structs": [[{"a": "x"}], [None], []],
            "array": pl.Series([[1, 2], None, [3, None]], dtype=pl.Array(pl.Int64, 2)),
            "date": [dt.date(2013, 1, 31), None, dt.date(1969, 1, 1)],
            "time": pl.Series([1, None, -1]).cast(pl.Datetime("us")),
            "decimal": [Decimal("1.5"), None, Decimal("0.1")],
            "large": pl.Series([1, None, 2**100], dtype=pl.Int128),
            "none": [None, None, None],
        }
    )
    check(read_events(frame), frame.to_dicts())
    check(read_events(frame.slice(1)), frame.to_dicts()[1:])
    odd = pl.DataFrame({"o": pl.Series([{1}, "x", 5], dtype=pl.Object)})
    check(read_events(odd), [{"o": {1}}, {"o": "x"}, {"o": 5}])
    check(read_events(frame.lazy()), frame.to_dicts())


# -- JSON lines -----------------------------------------------------------------------------------


def same(a: Events, b: Events) -> None:
    found, other = a.columns(), b.columns()
    assert found.n_events == other.n_events
    assert found.rejected == other.rejected
    assert flat_events(found) == flat_events(other)
    for i in range(a.n_events):
        if i in found.rejected:
            for events in (a, b):
                with pytest.raises(EventError) as raised:
                    events.event(i)
                assert str(raised.value) == found.rejected[i]
        else:
            assert meanings(a.event(i)) == meanings(b.event(i))
    check_wanted(a, found)


def both_ways(data: bytes) -> bool:
    """Compare the two routes; whether all of it went the fast one."""
    fast, slow = read_json_lines(data), read_json_lines(data, fast=False)
    assert fast.line_numbers.tolist() == slow.line_numbers.tolist()
    same(fast, slow)
    return all(isinstance(part, TableEvents) for part in fast._parts)


json_scalars: dict[str, st.SearchStrategy[Any]] = {
    "int": ints,
    "small": st.integers(-5, 5) | st.sampled_from([0.5, -0.0, 1e-300, 1e15]),
    "float": floats,
    "odd": st.sampled_from([float("nan"), float("inf"), 2**63, 0.5, 1]),
    "text": good_text,
    "time": st.sampled_from(["2013-01-31", "2013-01-31T10:00:00Z", "2013-01-31 10:00:00"]),
    "times": st.sampled_from(["2013-01-31", "2013", "x"]),
    "bool": st.booleans(),
    "null": st.none(),
    "surrogate": st.sampled_from(["a", "b", "\ud800", "😀"]),
}


@st.composite
def json_values(draw: st.DrawFn, depth: int = 2) -> st.SearchStrategy[Any]:
    """A strategy for the values of one name, all of one shape, as they are in practice."""
    shape = draw(st.sampled_from(["flat"] * 5 + ["object", "list"]))
    if depth == 0 or shape == "flat":
        kinds = [k for k in json_scalars if k not in ("odd", "surrogate") or draw(st.booleans())]
        return st.none() | json_scalars[draw(st.sampled_from(kinds))]
    inner = draw(json_values(depth - 1))
    if shape == "list":
        return st.lists(inner, max_size=3)
    return st.fixed_dictionaries({}, optional={"x": inner, "y": draw(json_values(depth - 1))})


bad_lines = st.sampled_from(
    [
        *(b"", b"  \t", b"\r", b"{", b"[1]", b"5", b'"x"', b"null", b'{"a":1} {"a":2}', b'{"a":'),
        *(b"1}", b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b'{"a":[{"b":1,"b":2}]}', b'{"a":01}'),
        *(b'{"a":Inf}', b'{"a":-NaN}', b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1e400}', b"\xff"),
        *(b'{"a":"\xff"}', b'{"\xff":1}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\\ud800"}', b"\x0c"),
        *(b'{"\\ud800":1}', b'{"a":1.0}', b'{"a.b":1,"a":{"b":2}}', b'{"a":1,}', b'{"a":"\t"}'),
        *(b' {"a":1}', b'{"a":1} ', b'{"a":1}\r', b'{"a" : 1}', b"{}", b'{"a":{}}', b'{"a":[]}'),
        *(
            b'{"a":"\\u0000"}',
            b'{"a":' + b"9" * 5000 + b"}",
            b'{"a":9007199254740993}',
            b'{"a":+1}',
        ),
        *(b'{"a":"x\\/y"}', b'{"a\\u002eb":1}', b'{"a":"2013-01-31"}', b'{"a":[["2013-01-31"]]}'),
        *(b'{"a":' + b"[" * 70 + b"]" * 70 + b"}", b'{"a":-0}', b'{"a":1E2}', b"\xef\xbb\xbf{}"),
        *(b'{"a":1}\x00', b'{"a":"\x00"}', b'{"a":[{}]}', b'{"a":[{"b":1},{"c":2}]}', b'{"a":tru}'),
    ]
)


def json_agrees(data: st.DataObject) -> None:
    strategies = {name: data.draw(json_values()) for name in ("a", "b", "a.x")}
    shape = st.fixed_dictionaries({}, optional=strategies)
    events = data.draw(st.lists(shape, max_size=8))
    is_ascii = data.draw(st.booleans())
    lines = [json.dumps(event, ensure_ascii=is_ascii) for event in events]
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    block = data.draw(st.sampled_from([20, 200, 1 << 20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_events, "_BLOCK_BYTES", block)
        both_ways(text)
        if is_ascii:
            check(read_json_lines(text), events)


test_json = few(given(st.data())(json_agrees))
test_much_json = many(given(st.data())(json_agrees))


def bad_json_agrees(lines: list[bytes], newline: bytes, block: int) -> None:
    data = newline.join(lines) + newline[:block]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_events, "_BLOCK_BYTES", block)
        both_ways(data)


bad_json = given(
    st.lists(bad_lines, max_size=6),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([1, 40, 9999]),
)
test_bad_json = few(bad_json(bad_json_agrees))
test_much_bad_json = many(bad_json(bad_json_agrees))


@given(st.lists(st.sampled_from([*b'{}[]",:\n \\u0a1e-.tN', *b"\xc3\xa9"]), max_size=60).map(bytes))
@settings(max_examples=100, deadline=None)
def test_noise_instead_of_json(data: bytes) -> None:
    both_ways(data)


@pytest.mark.parametrize(
    "lines",
    [
        [{"a": 1, "b": "x"}, {"a": 2}],
        [{"when": "2013-01-31", "deep": {"when": "2013-01-31T10:00:00Z", "list": ["2013-01-31"]}}],
        [{"a": 1.5}, {"a": 1}, {"a": None}],
        [{"a": [1, 2]}, {"a": []}, {"a": None}, {"a": [None]}],
        [{"a": {"b": {"c": True}}}, {}],
        [{"a": "😀"}],
        [{"when": "2013-01-31"}] * 60 + [{"later": "2013-01-31"}],
    ],
)
def test_common_json_goes_the_fast_way(lines: list[Any]) -> None:
    data = "\n".join(map(json.dumps, lines)).encode()
    assert both_ways(data)
    check(read_json_lines(data), lines)


def test_a_name_that_changes_its_type_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_events, "_BLOCK_BYTES", 100)
    lines = [{"a": "2013-01-31", "b": i} for i in range(20)] + [{"a": i} for i in range(20)]
    data = "\n".join(map(json.dumps, lines)).encode()
    events = read_json_lines(data)
    check(events, lines)
    assert sum(isinstance(part, TableEvents) for part in events._parts) >= len(events._parts) - 1


def test_rejected_lines_tell_their_number() -> None:
    text = b'{"a": 1}\n\n{"a": }\n   \n{"a": 1e999}\n[1]\n{"a": 1, "a": 2}\n{"a": 2}'
    events = read_json_lines(text)
    assert events.line_numbers.tolist() == [1, 3, 5, 6, 7, 8]
    assert events.columns().rejected == {
        1: "not valid JSON: Expecting value at column 7",
        3: "an event is a JSON object, not an array",
    }
    assert [type(events.event(i)["a"]) for i in (2, 4)] == [Opaque, Opaque]
    with pytest.raises(EventError, match="not valid JSON"):
        events.event(1)
    assert events.event(5) == {"a": 2}


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_very_deep_json_is_an_object(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    deep = b'{"a":' + opening * 100_000 + b"1" + closing * 100_000 + b"}"
    unfinished = b'{"a":' + opening * 100_000
    events = read_json_lines(b'{"a":1}\n' + deep + b'\n{"a":2}\n' + unfinished)
    assert list(events.columns().rejected) == [3]
    (value,) = events.event(1).values()
    assert "nested more than 64 deep" in (value[0] if opening == b"[" else value).problem


def test_json_sources() -> None:
    data = b'\xef\xbb\xbf{"a": "\xc3\xa9"}\r\n{"a": 2}\r\n'
    check(read_json_lines(data), [{"a": "é"}, {"a": 2}])
    for nothing in (b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf"):
        check(read_json_lines(nothing), [])
    assert list(read_json_lines(b'{"a": "\xed\xa0\x80"}\n{"a": 1}').columns().rejected) == [0]
    for other in (5, "events.jsonl", Path("events.jsonl")):
        with pytest.raises(InputError, match=r"matchmill\.read_events reads files and text"):
            read_json_lines(other)  # type: ignore[arg-type]


@given(st.lists(st.dictionaries(st.sampled_from("abcdefgh"), values, max_size=8), max_size=6))
@few
def test_limits_of_json(events: list[Any]) -> None:
    def plain(value: Any) -> Any:
        return None

    data = "\n".join(json.dumps(event, default=plain) for event in events).encode()
    fast, slow = (read_json_lines(data, LIMITS, fast=fast) for fast in (True, False))
    same(fast, slow)
