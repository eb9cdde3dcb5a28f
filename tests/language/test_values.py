"""Values: dates, timestamps, folding of case."""

from __future__ import annotations

import datetime as dt

import pytest

from matchmill.language.values import fold_case, read_date, read_timestamp


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
