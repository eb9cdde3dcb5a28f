"""One event by the short way against the same event as a batch of one."""

from __future__ import annotations

import datetime as dt
import enum
import math
import random
import threading
from collections import OrderedDict, UserDict
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding import cut_points as cuts
from matchmill.encoding.clause_encoder import Encoded, encode_clauses
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.asked import Asked
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.single import encoder as one_event
from matchmill.encoding.single import key_search, value_readers
from matchmill.encoding.single.encoder import OneEventEncoder
from matchmill.errors import EventError
from matchmill.kernels.jit import kernel
from matchmill.language.expression import Expression
from matchmill.language.normal_form import normalize
from matchmill.language.parser import parse
from matchmill.settings import DEFAULT_SETTINGS, Settings
from tests.support import strategies
from tests.support.generators import cases

pytestmark = pytest.mark.kernels

Pairs = list[tuple[int, int]]


def grow(dimensions: Dimensions, *expressions: Expression | str) -> Encoded:
    """Add the cut points, dimensions and patterns of some expressions."""
    parsed = [parse(e) if isinstance(e, str) else e for e in expressions]
    clauses = [clause for e in parsed for clause in normalize(e).clauses]
    return encode_clauses(dimensions, clauses, np.arange(len(clauses)))


def made_of(*expressions: Expression | str) -> Dimensions:
    return grow(Dimensions(), *expressions).dimensions


def pairs_of(data: bytes) -> Pairs:
    """Each pair once: a list may bring it several times, which means nothing."""
    return sorted(set(map(tuple, np.frombuffer(data, np.int64).reshape(-1, 2).tolist())))


def as_batch(
    dimensions: Dimensions, event: Any, settings: Settings = DEFAULT_SETTINGS
) -> Pairs | None:
    """The pairs of an event by way of columns; None if it is rejected."""
    columns = DictEvents([event], settings).columns(Asked(dimensions))
    if columns.rejected:
        return None
    batch = encode_events(dimensions, columns)
    return sorted(set(zip(batch.dimensions.tolist(), batch.keys.tolist(), strict=True)))


def check(encoder: OneEventEncoder, event: Any) -> None:
    """The same pairs, and this event is not left to others."""
    data = encoder.encode(event)
    assert data is not None
    assert pairs_of(data) == as_batch(encoder.dimensions, event)


def new_encoder(*expressions: Expression | str) -> OneEventEncoder:
    return OneEventEncoder(made_of(*expressions), DEFAULT_SETTINGS)


EVERY_DERIVATION = (
    "x = 1 or x < 2.5 or x = 'abc' or x = date '2013-01-31' or x = true or x is null",
    "x > timestamp '2013-01-31 10:00' or x like '%b' or x ilike 'AB%' or x ilike '%C'",
    "x like '%b%' or x ilike '%B%' or x rlike 'a.c' or x like 'a_c' or x ilike 'A_C'",
    "x in cidr '10.0.0.0/8' or x contains 'abc' or any(x) > 2 or any(x) like 'a%'",
)


# -- every event ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mixed", [True, False])
def test_random_events(seed: int, mixed: bool) -> None:
    expressions, events = cases(seed, 80, 60, mixed=mixed)
    encoder = new_encoder(*expressions)
    for event in events + events[:20]:  # some of them again, from memory
        check(encoder, event)


def test_tables_that_are_left_to_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_MOST_VIEWED", "_MOST_OBJECTS"):
        monkeypatch.setattr(key_search, limit, 0)
    monkeypatch.setattr(value_readers, "_MOST_KEPT", 4)
    expressions, events = cases(7, 80, 40)
    encoder = new_encoder(*expressions)
    for event in events + events:
        check(encoder, event)
    check(encoder, {"price": math.nan})
    check(encoder, {"price": math.inf})


@given(
    st.lists(strategies.expressions(), min_size=1, max_size=6),
    st.lists(strategies.events(objects=True)),
)
def test_generated_events(expressions: list[Expression], events: list[dict[str, Any]]) -> None:
    encoder = new_encoder(*expressions)
    for event in events:
        check(encoder, event)


@given(st.dictionaries(st.text(max_size=3), strategies.literals() | st.none() | st.floats()))
def test_flat_events_of_plain_values(event: dict[str, Any]) -> None:
    """Answered, whatever the names and values, unless they are rejected."""
    for encoder in (new_encoder("a = 1"), new_encoder(*(f'"{n}" = 1' for n in "abéx"))):
        data = encoder.encode(event)
        expected = as_batch(encoder.dimensions, event)
        assert (None if data is None else pairs_of(data)) == expected


PLAIN = [
    *(None, math.nan, True, False, 0, 1, 2, 3, -1, 0.0, -0.0, 1.0, 2.5, 2.25, 1e300, 5e-324),
    *(2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 2.0**63, "", "abc", "ABC", "abd", "cba", "b"),
    *("é", "日本", "\0", "abc\0", "😀", "a" * 500, "10.1.2.3", "11.0.0.0", "::1", "İ", "ΑΣ", "aéc"),
    *(dt.date(2013, 1, 31), dt.date.min, dt.date.max, dt.datetime(2013, 1, 31), dt.datetime.min),
    dt.datetime(2013, 1, 31, 10, 0, 0, 1),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=12))),
    dt.datetime(2013, 1, 31, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    dt.datetime(2013, 1, 31, 12, tzinfo=ZoneInfo("Europe/Berlin")),
    *([], ["abc"], [1, 3.0, None, math.nan], ["abc", ["b", ("c",)]], (2, 3), np.array([1.5, 4.0])),
    *([True, dt.date(2013, 1, 31), dt.datetime(2013, 1, 31)], ["x" * 100, "x" * 100]),
    *(np.int64(1), np.float64(2.5), np.float32(0.1), np.bool_(True), np.str_("abc"), np.uint8(1)),
    *(Decimal("2.5"), Decimal("NaN"), np.datetime64("2013-01-31"), np.datetime64("NaT"), pd.NaT),
    *({"y": 1}, {}, {"y": {"z": "abc"}}, [{"y": 1}, {"y": "abc"}]),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_named_values(value: Any) -> None:
    encoder = new_encoder(*EVERY_DERIVATION, '"x.y" = 1 or any("x.y") = \'abc\'')
    for _ in range(2):
        check(encoder, {"x": value, "other": 1})
        check(encoder, {"other": value})


class Text(str):
    pass


class Colour(enum.StrEnum):
    RED = "abc"


class Size(enum.IntEnum):
    SMALL = 1


class Oddity(dt.tzinfo):
    """A time zone that does not know its offset at this time."""

    def utcoffset(self, time: dt.datetime | None) -> None:
        return None


UNUSUAL = [
    *(Text("abc"), Colour.RED, Size.SMALL, pd.Timestamp("2013-01-31 10:00:00.000000001")),
    *([Size.SMALL, Text("abc"), pd.Timestamp("2013-01-31")], np.datetime64("2013-01-31T10", "ns")),
]


@pytest.mark.parametrize("value", UNUSUAL, ids=repr)
def test_values_of_derived_types_are_the_same_or_left_alone(value: Any) -> None:
    encoder = new_encoder(*EVERY_DERIVATION)
    check(encoder, {"x": "abc"})
    for event in ({"x": value}, {"other": value}):
        data = encoder.encode(event)
        assert data is None or pairs_of(data) == as_batch(encoder.dimensions, event)


BAD = [
    *(math.inf, -math.inf, 2**63, -(2**63) - 1, 10**400, "\ud800", "abc\udfff"),
    *(Decimal("Infinity"), [math.inf], [[2**63]], {"y": math.inf}, {"y": "\ud800"}),
    *({1: 2}, {"\ud800": 1}),
]


@pytest.mark.parametrize("value", BAD, ids=ascii)
def test_bad_values_are_treated_as_in_a_batch_or_left_alone(value: Any) -> None:
    encoder = new_encoder(*EVERY_DERIVATION)
    for event in ({"x": value}, {"x": value, "y": 2}):
        data = encoder.encode(event)
        assert data is None or pairs_of(data) == as_batch(encoder.dimensions, event)
    for event in ({"other": value}, {"x": 1, "other": value}, {"x": 1, "o.y": 1, "o": value}):
        check(encoder, event)  # nobody asks for it
    check(encoder, {"x": 1, "other": 1})  # and leave nothing behind


OBJECTS = [b"abc", 1j, object, Fraction(1), dt.time(10), {1, 2}, np.complex128(1), np.eye(2)]


@pytest.mark.parametrize("value", OBJECTS, ids=ascii)
def test_objects(value: Any) -> None:
    encoder = new_encoder(*EVERY_DERIVATION)
    for event in ({"x": value}, {"other": value, "x": 1}, {"x": [value]}, {"x": {"y": value}}):
        assert encoder.encode(event) is not None
        check(encoder, event)


ODD_EVENTS: list[Any] = [
    *({5: 1}, {None: 1}, {"\ud800": 1}, {"é\udfff": None}, {("a", "b"): 1, "x": 1}),
    *({"a.b": 1, "a": {"b": 2}}, {"a": {"b": 2}, "a.b": "x"}, {"a": [{"b": 1}], "a.b": 1}),
]


@pytest.mark.parametrize("event", ODD_EVENTS, ids=ascii)
def test_odd_names_are_treated_as_in_a_batch_or_left_alone(event: Any) -> None:
    encoder = new_encoder("x = 1 and a.b = 1")
    data = encoder.encode(event)
    assert data is None or pairs_of(data) == as_batch(encoder.dimensions, event)


def test_what_is_inside_of_objects_is_found_and_nothing_else_is_looked_at() -> None:
    class Untouchable(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError

    encoder = new_encoder("a.b.c = 1 and x > 2")
    for event in (
        *({"a": {"b": {"c": 1}}}, {"a.b": {"c": 2}}, {"a": {"b.c": 1}}, {"a.b.c": 1, "x": 5}),
        *({"a": {"d": 3}, "x": 3}, {"a.x": {"b": [1]}, "x": 3}, {"b": {"c": 1}, "x": 3}, {"a": 1}),
    ):
        check(encoder, event)
        check(encoder, {**event, "other": Untouchable(y=1), "list": [Untouchable()]})


def test_few_attributes_are_looked_up_in_events_that_have_many() -> None:
    encoder = new_encoder("x = 1 and y = 'a'", "z is null")
    many = {f"n{n}": n for n in range(100)}
    for event in ({}, {"x": 1}, {"y": "a", "x": True}, {"z": [1, 2], "x": {"y": 1}}):
        check(encoder, {**many, **event})


@pytest.mark.parametrize("event", [5, None, "x", [("x", 1)]], ids=ascii)
def test_what_is_no_event_is_an_error(event: Any) -> None:
    with pytest.raises(EventError, match="an event is a mapping"):
        new_encoder("x = 1").encode(event)


def test_a_time_zone_without_an_offset_is_left_alone() -> None:
    encoder = new_encoder(*EVERY_DERIVATION)
    assert encoder.encode({"x": dt.datetime(2013, 1, 31, tzinfo=Oddity())}) is None


@pytest.mark.parametrize("n", [2, 3, 4])
def test_too_many_values(n: int) -> None:
    settings = Settings(max_event_values=3)
    encoder = OneEventEncoder(made_of("a = 1"), settings)
    flat = dict.fromkeys("abcd"[:n], 1)
    for event in (flat, {"a": [1] * n}, {"a": [1] * n, "b": 1}):
        data = encoder.encode(event)
        expected = as_batch(encoder.dimensions, event, settings)
        assert (None if data is None else pairs_of(data)) == expected


@pytest.mark.parametrize("kind", [OrderedDict, UserDict], ids=["ordered", "user"])
def test_other_mappings(kind: Any) -> None:
    check(new_encoder(*EVERY_DERIVATION), kind({"x": 1, "other": [1, 2]}))


def test_a_kernel_takes_the_pairs_as_they_are() -> None:
    encoder = new_encoder("x = 1 and y = 2")
    assert sum_of_keys(encoder.encode({})) == 0
    expected = as_batch(encoder.dimensions, {"x": 1, "y": 5})
    assert expected is not None
    total = sum(key % 1000 for _, key in expected)
    assert sum_of_keys(encoder.encode({"x": 1, "y": 5})) == total


@kernel
def sum_of_keys(data: Any) -> int:
    pairs = np.frombuffer(data, np.int64)
    total = 0
    for k in range(1, len(pairs), 2):
        total += pairs[k] % 1000
    return total


# -- what is remembered ---------------------------------------------------------------------------


def test_equal_values_of_different_types_are_told_apart() -> None:
    encoder = new_encoder("x = 1 or x = true or any(x) = 1 or any(x) = true")
    values = [1, True, 1.0, np.True_, np.int64(1), Decimal(1), [1], [True], [1.0], [np.True_]]
    for seed in range(20):
        random.Random(seed).shuffle(values)
        for value in values:
            check(encoder, {"x": value})


def test_the_hour_that_comes_twice() -> None:
    """Both times compare equal in Python, but one is an hour later."""
    encoder = new_encoder(
        "x = timestamp '2024-11-03 05:30' or any(x) = timestamp '2024-11-03 06:30'"
    )
    first = dt.datetime(2024, 11, 3, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    second = first.replace(fold=1)
    assert first == second
    for time in (first, second, first):
        check(encoder, {"x": time})
        check(encoder, {"x": [time]})
    assert encoder.encode({"x": first}) != encoder.encode({"x": second})


@pytest.mark.parametrize("expressions", [("x = 1 or x = 'v5'",), EVERY_DERIVATION])
def test_many_different_values(expressions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are remembered, then the first ones again, also when there are new cut points."""
    monkeypatch.setattr(value_readers, "_MOST_KEPT", 10)
    encoder = new_encoder(*expressions)
    values = [v for n in range(25) for v in (n, n / 2, f"v{n}", f"{n}" * 70, [n, f"v{n}"])]
    for value in values + values:
        check(encoder, {"x": value})
    grow(encoder.dimensions, "x = 'v7' or x = 7")
    for value in values:
        check(encoder, {"x": value})


def test_many_different_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_event, "_MOST_IGNORED", 10)
    encoder = new_encoder("n3 = 1 and n17 = 1")
    for n in [*range(30), *range(30)]:
        check(encoder, {f"n{n}": 1, "n3": 1})
    assert len(encoder._attributes) <= 12


# -- dimensions that change -----------------------------------------------------------------------


def test_dimensions_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every single expression, with tables of one run and of two."""
    monkeypatch.setattr(cuts, "_FRESH_LIMIT", 4)
    expressions, events = cases(11, 60, 8)
    encoder = OneEventEncoder(Dimensions(), DEFAULT_SETTINGS)
    for expression in expressions:
        assert grow(encoder.dimensions, expression).dimensions is encoder.dimensions
        for event in events:
            check(encoder, event)


def test_what_did_not_change_is_kept() -> None:
    encoder = new_encoder("x = 1 and y = 1 and z like '%b%'")
    before = {name: encoder.readers(name) for name in "xyz"}
    grow(encoder.dimensions, "x = 1 and y = 2 and z = 'abc' and z like '%b%'")
    after = {name: encoder.readers(name) for name in "xyz"}
    assert [before[name] is after[name] for name in "xyz"] == [True, False, False]


def test_relabelled_copies() -> None:
    """Readers of the old labels go on, also when the copy has gained dimensions since."""
    dimensions = made_of("x > 0", "x < 1")
    encoders = [OneEventEncoder(dimensions, DEFAULT_SETTINGS)]
    events = [{"x": v} for v in (-1, 0, 1e-9, 0.5, 1, 2, "a", True)]
    high = 1.0
    for _ in range(100):
        high /= 2
        dimensions = grow(dimensions, f"x < {high!r}").dimensions
        if dimensions is not encoders[-1].dimensions:
            encoders.append(OneEventEncoder(dimensions, DEFAULT_SETTINGS))
        for encoder in encoders:
            for event in events:
                check(encoder, event)
    assert len(encoders) >= 3
    before = [encoders[0].encode(event) for event in events]
    grow(dimensions, "new = 1 and x like '%b' and x like '%a%'")
    for event, data in zip(events, before, strict=True):
        check(encoders[-1], {**event, "new": 1})
        assert data is not None
        grown = encoders[0].encode({**event, "new": 1})
        assert grown is not None
        known = [pair for pair in pairs_of(grown) if pair[0] < len(encoders[0].dimensions)]
        assert known == pairs_of(data)


def test_threads_share_an_encoder() -> None:
    """While one of them adds cut points and dimensions, no one fails or sees old ones later."""
    expressions, events = cases(12, 60, 40)
    encoder = new_encoder(*expressions[:10])
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(5):
                for event in events:
                    assert encoder.encode(event) is not None
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for expression in expressions[10:]:
        grow(encoder.dimensions, expression)
    for thread in threads:
        thread.join()
    assert failures == []
    for event in events:
        check(encoder, event)
