"""Rows of clauses become rows of subscriptions: each once an event, ascending."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matchmill.kernels.csr import distinct_rows

rows_of_events = st.lists(
    st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**31 - 1)), max_size=8), max_size=6
)


@pytest.mark.kernels
@given(rows_of_events)
@example([[2**31 - 1, 0], [0, 2**31 - 1]])
@example([[3, 1, 3, 2, 1]])
@example([[1, 1, 2], [], [2, 3, 3]])
def test_distinct_rows(events: list[list[int]]) -> None:
    offsets = np.cumsum([0, *map(len, events)], dtype=np.int64)
    rows = np.array([row for event in events for row in event], np.int32)
    before = rows.copy()
    out_offsets, out = distinct_rows(offsets, rows)
    assert np.array_equal(rows, before)
    got = [out[a:b].tolist() for a, b in pairwise(out_offsets)]
    assert got == [sorted(set(event)) for event in events]
