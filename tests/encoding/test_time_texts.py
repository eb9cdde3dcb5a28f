"""Times in texts: the kernel reads exactly what `read_time` reads."""

from __future__ import annotations

import datetime as dt
from random import Random

import pytest

from matchmill.encoding.texts import strings_to_texts
from matchmill.encoding.time_texts import IS_DATE, IS_TIMESTAMP, read_times
from matchmill.language.values import domain_value, read_time

GOOD = {
    "2013-01-31": dt.date(2013, 1, 31),
    "2012-02-29": dt.date(2012, 2, 29),
    "0001-01-01": dt.date.min,
    "9999-12-31": dt.date.max,
    "2013-01-31T10:00": dt.datetime(2013, 1, 31, 10),
    "2013-01-31 10:00:01": dt.datetime(2013, 1, 31, 10, 0, 1),
    "2013-01-31T10:00Z": dt.datetime(2013, 1, 31, 10),
    "2013-01-31T10:00:00.5+02:00": dt.datetime(2013, 1, 31, 8, 0, 0, 500_000),
    "2013-01-31T00:30-0130": dt.datetime(2013, 1, 31, 2),
    "2013-01-01T00:30+02": dt.datetime(2012, 12, 31, 22, 30),
    "9999-12-31T23:59:59.999999": dt.datetime.max,
    "1969-12-31T23:59:59.999999Z": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
}
BAD = [
    *("", "2013", "2013-1-31", "2013-02-29", "2013-13-01", "2013-00-01", "2013-01-00"),
    *("1900-02-29", "0000-01-01", "2013-04-31", "2013-01-31T", "2013-01-31T10", "2013-01-31T24:00"),
    *("2013-01-31T10:60", "2013-01-31T10:00:60", "2013-01-31T10:00:00.", "2013-01-31t10:00"),
    *("2013-01-31T10:00:00.0000000001", "2013-01-31T10:00+24:00", "2013-01-31T10:00+02:60"),
    *("2013-01-31T10:00 Z", " 2013-01-31", "2013-01-31 ", "0001-01-01T00:00+01:00", "20130131"),
    *("9999-12-31T23:59-01:00", "2013-01-31T10:00+2", "2013-01-31T10:00+02:", "2013-01-31T10.5"),
    *("２０１３-01-31", "2013-01-31T10:00:00,5", "2013-01-31\n", "2013-01-31T10:00z", "2013/01/31"),
    *("2013-01-31T10:00.5", "2013-01-31T10:00Z0", "2013-01-31T10:00:0", "2013-01-31T1000"),
]  # fmt: skip


def by_kernel(texts: list[str]) -> list[object]:
    """Days for dates, nanoseconds for timestamps, None for other texts."""
    found: list[object] = []
    for kind, whole, part in zip(*read_times(strings_to_texts(texts)), strict=True):
        nanoseconds = int(whole) * 1000 + round(float(part) * 1000)
        found.append(
            ("date", int(whole)) if kind == IS_DATE
            else ("timestamp", nanoseconds) if kind == IS_TIMESTAMP else None
        )  # fmt: skip
    return found


def by_python(text: str) -> object:
    time = read_time(text)
    if time is None:
        return None
    return ("timestamp" if isinstance(time, dt.datetime) else "date", domain_value(time))


@pytest.mark.kernels
def test_named_texts() -> None:
    assert {text: read_time(text) for text in GOOD} == GOOD
    assert [text for text in BAD if read_time(text) is not None] == []
    texts = [*GOOD, *BAD, "2013-01-31T10:00:00.123456789Z"]
    assert by_kernel(texts) == [by_python(text) for text in texts]
    assert by_kernel(texts)[-1] == ("timestamp", 1359626400123456789)


@pytest.mark.kernels
def test_damaged_texts() -> None:
    """Every change of one or two characters is read alike, or by neither."""
    rng = Random(5)
    texts = []
    for _ in range(3000):
        characters = list(rng.choice(list(GOOD)))
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(characters))
            characters[at] = rng.choice([*"0123456789-+:.TZ ", "", "é", "00"])
        texts.append("".join(characters))
    expected = [by_python(text) for text in texts]
    assert by_kernel(texts) == expected
    assert 0.2 < sum(one is not None for one in expected) / len(texts) < 0.8


def test_every_day() -> None:
    days = range(dt.date(1895, 1, 1).toordinal(), dt.date(2105, 1, 1).toordinal())
    texts = [dt.date.fromordinal(day).isoformat() for day in days]
    first = dt.date(1970, 1, 1).toordinal()
    assert by_kernel(texts) == [("date", day - first) for day in days]
