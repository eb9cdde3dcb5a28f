"""Clauses as rows: what they ask for, what they forbid, and which predicate is their pivot."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.index.base import Statistics
from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.papers.two_stage.sql.rows import ALWAYS, clause_rows, event_pairs
from matchmill.papers.two_stage.sql.selectivity import (
    KeySample,
    interval_shares,
    sample_of_clauses,
    sample_of_keys,
    sample_of_statistics,
)
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    random_batch,
    random_table,
    table_of,
)


def test_rows_by_hand() -> None:
    table = table_of([{3: [(1, 2), (5, 5)], 4: [(0, 6)]}, {4: [(0, MAX_KEY)]}, {7: []}], 10)
    rows = clause_rows(table, None)
    assert list(zip(*(a.tolist() for a in rows), strict=True)) == [
        # sid, attr, low, high, sign, opens, cnt, n_rest, is_pivot
        (10, 3, 1, 2, 1, 1, 1, 1, 1),
        (10, 3, 5, 5, 1, 0, 1, 1, 1),
        (10, 4, 7, MAX_KEY, -1, 0, 1, 1, 0),
        (11, ALWAYS, 1, 1, 1, 1, 1, 0, 1),
        (12, 7, 1, 0, 1, 1, 1, 0, 1),
    ]


def test_pairs_by_hand() -> None:
    pairs = event_pairs(batch_of([{2: 5, 3: 0}, {}, {4: 1}]))
    rows = zip(*(pairs[name].tolist() for name in ("event", "attr", "val")), strict=True)
    assert sorted(rows) == [(0, ALWAYS, 1), (0, 2, 5), (1, ALWAYS, 1), (2, ALWAYS, 1), (2, 4, 1)]


@given(st.integers(0, 10**6))
def test_the_signs_of_a_clause_that_holds_sum_to_its_count(seed: int) -> None:
    rng = Random(seed)
    table, batch = random_table(rng, 12, top=9), random_batch(rng, 6, top=9)
    rows, pairs = clause_rows(table, sample_of_clauses(table)), event_pairs(batch)
    joins = (rows.attr[:, None] == pairs["attr"]) & (rows.low[:, None] <= pairs["val"])
    joins &= pairs["val"] <= rows.high[:, None]
    found: list[list[int]] = [[] for _ in range(batch.n_events)]
    for sid in table.clause_ids.tolist():
        own = rows.sid == sid
        assert rows.opens[own].sum() == rows.cnt[own][0] > 0
        assert (rows.is_pivot[own] == 0).sum() == rows.n_rest[own][0]
        assert len(set(rows.attr[own & (rows.is_pivot == 1)].tolist())) == 1
        assert (rows.sign[own & (rows.is_pivot == 1)] == 1).all()
        for event in range(batch.n_events):
            signs = (joins[own] & (pairs["event"] == event)) * rows.sign[own][:, None]
            if signs.sum() == rows.cnt[own][0]:
                found[event].append(sid)
    assert found == brute_force(table, batch)


def test_shares_are_those_of_the_sample() -> None:
    sample = sample_of_keys(np.array([0, 0, 0, 0, 5]), np.array([1, 1, 2, 9, 3]))
    dimensions = np.array([0, 0, 0, 5, 3, ALWAYS])
    lows, highs = np.array([1, 2, 10, 1, 1, 1]), np.array([1, 9, 20, 9, 9, 1])
    shares = interval_shares(sample, dimensions, lows, highs)
    assert shares == pytest.approx([2.5 / 5, 2.5 / 5, 0.5 / 5, 1.5 / 2, 0.5, 0.5])


def test_dimensions_that_are_rare_make_good_pivots() -> None:
    table = table_of([{0: [(4, 4)], 1: [(1, 9)]}, {0: [(7, 7)], 1: [(1, 9)]}])
    counts, offsets = np.array([1000, 10]), np.array([0, 4, 6])
    statistics = Statistics(1000, counts, offsets, np.array([4, 4, 4, 7, 2, 3]))
    sample = sample_of_statistics(statistics)
    assert isinstance(sample, KeySample)
    rows = clause_rows(table, sample)
    assert rows.attr[rows.is_pivot == 1].tolist() == [1, 1]
    often = sample_of_statistics(statistics._replace(dimension_counts=np.array([1000, 1000])))
    rows = clause_rows(table, often)
    assert rows.attr[rows.is_pivot == 1].tolist() == [0, 0]


def test_many_keys_are_thinned_out() -> None:
    keys = np.arange(1_000_000)
    sample = sample_of_keys(np.zeros(len(keys), np.int64), keys)
    assert 100_000 < len(sample.keys) <= 200_000
    share = interval_shares(sample, np.array([0]), np.array([0]), np.array([249_999]))
    assert share[0] == pytest.approx(0.25, abs=0.001)
