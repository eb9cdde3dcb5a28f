"""Offsets, ranges, searches and hashes against plain Python."""

from __future__ import annotations

import bisect
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.kernels.csr import distinct_owners, distinct_rows, offsets_of, take_ranges
from matchmill.kernels.hashing import combine31, mix31, mix64
from matchmill.kernels.searches import first_above, first_at_least

pytestmark = pytest.mark.kernels

ROWS = st.lists(st.lists(st.integers(-5, 5), max_size=6), max_size=6)


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    entries = np.array([entry for row in rows for entry in row], np.int64)
    return offsets_of(np.array([len(row) for row in rows], np.int64)), entries


@given(ROWS)
def test_rows_come_back(rows: list[list[int]]) -> None:
    offsets, entries = flat(rows)
    assert [entries[a:b].tolist() for a, b in pairwise(offsets)] == rows


@given(ROWS, st.data())
def test_ranges_of_some_rows(rows: list[list[int]], data: st.DataObject) -> None:
    offsets, entries = flat(rows)
    some = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=5)) if rows else []
    out_offsets, at = take_ranges(offsets, np.array(some, np.int64))
    taken = entries[at]
    found = [taken[a:b].tolist() for a, b in pairwise(out_offsets)]
    assert found == [rows[row] for row in some]


@given(ROWS)
def test_each_entry_once(rows: list[list[int]]) -> None:
    offsets, entries = distinct_rows(*flat(rows))
    found = [entries[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == [sorted(set(row)) for row in rows]


@given(st.lists(st.integers(0, 3), max_size=9), st.data())
def test_each_owner_of_entries_once(n_entries: list[int], data: st.DataObject) -> None:
    first_of = offsets_of(np.array(n_entries, np.int64))
    owner_of = np.repeat(np.arange(len(n_entries), dtype=np.int32), n_entries)
    some = st.sets(st.sampled_from(range(len(owner_of)))) if len(owner_of) else st.just(set())
    rows = data.draw(st.lists(some.map(list), max_size=5))
    offsets, owners = distinct_owners(*flat(rows), owner_of, first_of)
    found = [sorted(owners[a:b].tolist()) for a, b in pairwise(offsets)]
    assert found == [sorted({int(owner_of[entry]) for entry in row}) for row in rows]


@given(st.lists(st.integers(-9, 9)), st.integers(-10, 10), st.data())
def test_searches(values: list[int], wanted: int, data: st.DataObject) -> None:
    ordered = sorted(values)
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    array = np.array(ordered, np.int64)
    assert first_at_least(array, wanted, start, stop) == bisect.bisect_left(
        ordered, wanted, start, stop
    )
    assert first_above(array, wanted, start, stop) == bisect.bisect_right(
        ordered, wanted, start, stop
    )


def test_hashes_spread() -> None:
    numbers = [*range(1000), *(n << 40 for n in range(1, 1000)), -1, -(2**63), 2**63 - 1]
    for hashes in (
        {int(mix31(n)) for n in numbers},
        {int(combine31(7, n)) for n in numbers},
        set(mix64(np.array(numbers, np.int64).astype(np.uint64)).tolist()),
    ):
        assert len(hashes) > 0.99 * len(numbers)
        assert min(hashes) >= 0
