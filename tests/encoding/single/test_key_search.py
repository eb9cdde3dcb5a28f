"""Keys found by bisect against the keys that the kernels find."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.cut_points import CutTable
from matchmill.encoding.numbers import number_pairs
from matchmill.encoding.single import key_search
from matchmill.encoding.single.key_search import KeySearch
from matchmill.encoding.texts import strings_to_texts
from matchmill.language.values import Region

pytestmark = pytest.mark.kernels

# All sizes of tables behave alike: as lists, as views, one by one, by the kernels.
LIMITS = [(256, 500_000, 20_000), (0, 500_000, 20_000), (256, 500_000, 0), (0, 0, 0)]

SMALL_NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(-4, 4),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2**53 - 1, -(2**53) + 1, 2.0**52 + 0.5, 0.1]),
)
NUMBERS = st.one_of(
    SMALL_NUMBERS,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**53, 2.0**53, 2**53 + 1, 2**53 + 2, -(2**53), -(2**53) - 1]),
    st.sampled_from([2**63 - 1, 2.0**63, -(2**63), -(2.0**63), 1.7976931348623157e308, 1e19]),
)
STRINGS = st.text(st.sampled_from("ab\x00é\uffff\U0001f600"), max_size=12)
MICROSECONDS = st.integers(-5, 5) | st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)


@pytest.fixture(
    params=LIMITS, ids=["lists", "views", "objects by kernels", "kernels"], autouse=True
)
def limits(request: pytest.FixtureRequest) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(
            ("_MOST_LISTED", "_MOST_VIEWED", "_MOST_OBJECTS"), request.param, strict=True
        ):
            patch.setattr(key_search, name, limit)
        yield


def build(region: Region, base: list[Any], fresh: list[Any]) -> CutTable:
    """A table of two runs, either of which may be empty."""
    table, _ = CutTable(region).added(base) if base else (CutTable(region), None)
    table = CutTable(region, table.merged())
    return table.added(fresh)[0] if fresh else table


def number_keys(table: CutTable, values: list[Any]) -> list[int]:
    return table.number_keys(*number_pairs(Region.NUMBER, values)).tolist()


@given(st.lists(NUMBERS, max_size=6), st.lists(NUMBERS, max_size=6), st.lists(NUMBERS, max_size=8))
def test_numbers(base: list[Any], fresh: list[Any], values: list[Any]) -> None:
    table = build(Region.NUMBER, base, fresh)
    values = values + base + fresh
    search = key_search.key_search(table)
    assert [search.key_of(value) for value in values] == number_keys(table, values)


@given(st.lists(SMALL_NUMBERS, max_size=6), st.lists(SMALL_NUMBERS, max_size=6), st.lists(NUMBERS))
def test_numbers_among_small_cut_points(
    base: list[Any], fresh: list[Any], values: list[Any]
) -> None:
    table = build(Region.NUMBER, base, fresh)
    search = key_search.key_search(table)
    for value in values + base + fresh:
        near = [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
        near = [v for v in near if not math.isinf(v)]
        assert [search.key_of(v) for v in near] == number_keys(table, near)


@given(st.lists(STRINGS, max_size=6), st.lists(STRINGS, max_size=6), st.lists(STRINGS, max_size=8))
def test_strings(base: list[str], fresh: list[str], values: list[str]) -> None:
    table = build(Region.STRING, base, fresh)
    values = values + base + fresh
    search = key_search.key_search(table)
    keys = table.string_keys(strings_to_texts(values)).tolist()
    assert [search.key_of(value) for value in values] == keys


@given(
    st.lists(st.tuples(MICROSECONDS, st.integers(0, 999)), max_size=8),
    st.lists(MICROSECONDS, max_size=6),
)
def test_timestamps(points: list[tuple[int, int]], values: list[int]) -> None:
    """Cut points may have nanoseconds, the values that are looked up here do not."""
    nanoseconds = [whole * 1000 + rest for whole, rest in points]
    table = build(Region.TIMESTAMP, nanoseconds[:4], nanoseconds[4:])
    values = values + [whole + more for whole, _ in points for more in (-1, 0, 1)]
    keys = table.number_keys(np.array(values, np.int64), np.zeros(len(values))).tolist()
    search = key_search.key_search(table)
    assert [search.key_of(value) for value in values] == keys


def test_the_large_run_is_taken_over() -> None:
    table = build(Region.NUMBER, [1, 2, 3], [1.5])
    search = key_search.key_search(table)
    grown, _ = table.added([2.5])
    again = key_search.key_search(grown, search)
    assert again.table is grown
    assert [slots.run for slots in again.slots] == [grown.base, grown.fresh][: len(again.slots)]
    if search.slots:
        assert again.slots[0] is search.slots[0]
    check_all_sides(again, [1, 1.5, 2, 2.5, 3])


def check_all_sides(search: KeySearch, points: list[float]) -> None:
    values = [point + more for point in points for more in (-0.25, 0.0, 0.25)]
    found = [search.key_of(value) for value in values]
    assert found == number_keys(search.table, values)
    assert len(set(found)) == 2 * len(points) + 1
