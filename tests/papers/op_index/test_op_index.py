"""OpIndex on the example of its paper, its lists as they change, what the kit does not reach."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable, concatenate, take_clauses
from matchmill.errors import InputError
from matchmill.index.base import Statistics
from matchmill.language.parser import parse
from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.papers.op_index import OpIndex
from matchmill.papers.op_index.counters import N_ROWS, START
from matchmill.papers.op_index.list_block import (
    DIMENSION_SHIFT,
    FOREST,
    HEAD,
    SHAPE,
    N,
    entry_width,
    signature_bit,
)
from matchmill.papers.op_index.one_clause import add_clause
from matchmill.papers.op_index.operator_kinds import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    EQUAL,
    OPERATORS,
    accepts_absence,
)
from matchmill.papers.op_index.pivots import (
    NO_PIVOT,
    choose_pivots,
    frequencies_of,
    frequencies_with,
)
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    check_against_oracle,
    encode,
    matched,
    random_batch,
    random_statistics,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

A, B, C, D, E = range(5)
S1, S2, S3, S4, S5, S6 = range(6)


def at_most(value: int) -> list[tuple[int, int]]:
    return [(1, value)]


def at_least(value: int) -> list[tuple[int, int]]:
    return [(value, MAX_KEY)]


def one_of(*values: int) -> list[tuple[int, int]]:
    return [(value, value) for value in values]


# The paper's Table 1.
SUBSCRIPTIONS = [
    {A: one_of(2), B: one_of(3, 6, 9)},
    {A: at_most(8), C: at_least(2)},
    {B: at_most(4), C: one_of(6), E: [(3, 12)]},
    {A: one_of(2)},
    {D: at_least(12), E: at_most(9)},
    {B: one_of(3, 6), C: at_most(4), D: at_least(10), E: at_most(7)},
]


class Segment(NamedTuple):
    signature: int
    entries: list[tuple[int, ...]]  # dimension, value, and the last key of an interval


def segments_of(index: OpIndex, pivot: int, operator: int) -> list[Segment]:
    """A list as it stands in memory; checks what holds for every list."""
    lists = index._store.lists
    cells, block = lists.blocks.cells, int(lists.heads[pivot, operator])
    if block < 0:
        return []
    n_segments = 1 << (int(cells[block + SHAPE]) & 255)
    ends, entries = block + HEAD + n_segments, block + HEAD + 2 * n_segments + 1
    width = entry_width(operator)
    out = []
    start = 0
    for s in range(n_segments):
        signature, end = int(cells[block + HEAD + s]), int(cells[ends + s + 1])
        found = []
        for at in range(entries + width * start, entries + width * end, width):
            dimension, value = int(cells[at + 1]) >> DIMENSION_SHIFT, int(cells[at])
            assert dimension % n_segments == s
            assert signature >> signature_bit(operator, dimension, value) & 1
            found.append((dimension, value, *cells[at + 2 : at + 3].tolist()[: width - 2]))
        assert [(d, v) for d, v, *_ in found] == sorted((d, v) for d, v, *_ in found)
        out.append(Segment(signature, found))
        start = end
    assert start == cells[block + N]
    return out


def entries_of(index: OpIndex, pivot: int) -> dict[int, list[set[tuple[int, ...]]]]:
    """Operator → the distinct entries of each segment."""
    found = {op: segments_of(index, pivot, op) for op in OPERATORS}
    return {op: [set(s.entries) for s in segments] for op, segments in found.items() if segments}


def counters(index: OpIndex, pivot: int) -> dict[int, int]:
    """Owner → what its counter is before an event."""
    rows = index._store.rows
    start, n = (int(rows.pivots[pivot, column]) for column in (START, N_ROWS))
    owners, initial = rows.owners[start : start + n], rows.initial.cells[start : start + n]
    return dict(zip(owners.tolist(), initial.tolist(), strict=True))


# -- the paper's example --------------------------------------------------------------------------


def test_figure_4_the_pivots() -> None:
    table = table_of(SUBSCRIPTIONS)
    frequencies = frequencies_with(frequencies_of(None), table.dimensions, 5)
    assert frequencies.counts.tolist() == [3, 3, 3, 2, 3]
    pivots = choose_pivots(table, frequencies, accepts_absence(table))
    assert (pivots - 1).tolist() == [A, A, C, A, D, D]


def test_example_2_lists_of_other_pivots_are_not_accessed() -> None:
    index = OpIndex.build(table_of(SUBSCRIPTIONS))
    assert matched(index.match_batch(batch_of([{A: 2, B: 6}]))) == [[S1, S4]]
    assert index.stats().candidates == 3


def test_example_3_a_signature_excludes_a_value() -> None:
    index = OpIndex.build(table_of(SUBSCRIPTIONS))
    (segment,) = segments_of(index, A + 1, EQUAL)
    absent = next(
        v for v in range(3, 99) if not segment.signature >> signature_bit(EQUAL, A, v) & 1
    )
    assert segment.signature >> signature_bit(EQUAL, A, 2) & 1
    assert matched(index.match_batch(batch_of([{A: 2}, {A: absent}]))) == [[S4], []]
    plain = OpIndex.build(table_of(SUBSCRIPTIONS), segments=False)
    (segment,) = segments_of(plain, A + 1, EQUAL)
    assert segment.signature == (1 << 63) - 1


def test_example_4_and_figure_5_the_index() -> None:
    """Two segments, of A, C, E and of B, D. A list has that many once it is long enough, so each
    subscription is there 32 times."""
    index = OpIndex.build(table_of(SUBSCRIPTIONS * 32), segments=2)
    assert entries_of(index, A + 1) == {
        EQUAL: [{(A, 2)}, {(B, 3), (B, 6), (B, 9)}],
        AT_MOST: [{(A, 8)}, set()],
        AT_LEAST: [{(C, 2)}, set()],
    }
    # The paper makes two predicates of the interval.
    assert entries_of(index, C + 1) == {
        EQUAL: [{(C, 6)}, set()],
        AT_MOST: [set(), {(B, 4)}],
        BETWEEN: [{(E, 3, 12)}, set()],
    }
    assert entries_of(index, D + 1) == {
        EQUAL: [set(), {(B, 3), (B, 6)}],
        AT_MOST: [{(C, 4), (E, 7), (E, 9)}, set()],
        AT_LEAST: [set(), {(D, 10), (D, 12)}],
    }
    for pivot in (NO_PIVOT, B + 1, E + 1):
        assert entries_of(index, pivot) == {}
    once = OpIndex.build(table_of(SUBSCRIPTIONS))
    assert counters(once, A + 1) == {S1: 2, S2: 2, S4: 1}
    assert counters(once, C + 1) == {S3: 3}
    assert counters(once, D + 1) == {S5: 2, S6: 4}


def test_example_5_partial_matches_of_other_pivots_are_not_accessed() -> None:
    index = OpIndex.build(table_of(SUBSCRIPTIONS))
    assert matched(index.match_batch(batch_of([{B: 6, C: 3, E: 9}]))) == [[]]
    assert index.stats().candidates == 1


def test_subscriptions_inserted_one_by_one_make_the_same_lists() -> None:
    table = table_of(SUBSCRIPTIONS * 4)
    counts = np.bincount(table.dimensions)
    known = Statistics(table.n_clauses, counts, np.zeros(6, np.int64), np.empty(0, np.int64))
    at_once = OpIndex.build(table, known)
    one_by_one = OpIndex.build(take_clauses(table, np.arange(0)), known)
    for i in range(table.n_clauses):
        one_by_one.insert(take_clauses(table, np.array([i])))
    for pivot in range(6):
        assert entries_of(at_once, pivot) == entries_of(one_by_one, pivot)
        assert counters(at_once, pivot) == counters(one_by_one, pivot)


@pytest.mark.parametrize("seed", range(6))
def test_one_clause_is_filed_as_many_are(seed: int) -> None:
    """The way for a single clause leaves exactly the arrays that the way for tables leaves."""
    rng = Random(seed)
    table = random_table(rng, 120, n_dimensions=6, top=9 if seed % 2 else 40)
    if seed % 3 == 0:  # the last key of all settles a ceiling
        is_last = table.highs == table.highs.max()
        table = table._replace(highs=np.where(is_last, MAX_KEY, table.highs))
    known = random_statistics(rng, 6) if seed % 2 else None
    first = take_clauses(table, np.arange(20))
    fast, slow = (OpIndex.build(first, known, segments=4) for _ in range(2))
    n_fast = 0
    for i in range(20, 120):
        one = take_clauses(table, np.array([i]))
        before = {name: a.copy() for name, a in fast.arrays().items()}
        n_fast += add_clause(fast._store, one, fast._frequencies) is not None
        fast = OpIndex.from_arrays(before)  # what has been tried alone is thrown away
        fast.insert(one)
        slow._add(one)
        left, right = fast.arrays(), slow.arrays()
        assert left.keys() == right.keys()
        for name, array in left.items():
            if name in ("blocks_cells", "initial_cells", "owners"):  # room may differ
                n = int(left["initial_state" if name != "blocks_cells" else "blocks_state"][0])
                assert np.array_equal(array[:n], right[name][:n]), name
            else:
                assert np.array_equal(array, right[name]), name
    assert 20 < n_fast < 100


# -- pivots ---------------------------------------------------------------------------------------


def test_statistics_choose_the_pivot() -> None:
    table = table_of([{A: one_of(1), B: one_of(1), C: at_most(5)}])
    for counts, pivot in (([9, 1, 5], B), ([9, 9, 5], C), ([0, 0, 0], A), ([3, 2], C)):
        known = Statistics(10, np.array(counts), np.zeros(4, np.int64), np.empty(0, np.int64))
        index = OpIndex.build(table, known)
        assert counters(index, pivot + 1) == {0: 3}
        assert matched(index.match_batch(batch_of([{A: 1, B: 1, C: 5}, {A: 1, B: 1}]))) == [[0], []]


def test_a_predicate_that_accepts_absence_is_no_pivot() -> None:
    index = OpIndex.build(table_of([{A: [(0, 0)], B: at_most(3)}, {A: [(0, 5)]}, {}]))
    assert counters(index, B + 1) == {0: 1}
    assert counters(index, NO_PIVOT) == {1: 0, 2: 0}
    events = batch_of([{}, {B: 3}, {A: 5, B: 3}, {A: 6}])
    assert matched(index.match_batch(events)) == [[1, 2], [0, 1, 2], [1, 2], [2]]


# -- options --------------------------------------------------------------------------------------

EVERY_SEGMENTS: list[Any] = [True, False, 1, 2, 8, 1024]


@pytest.mark.parametrize("segments", EVERY_SEGMENTS)
def test_segments_change_no_answer(segments: int | bool) -> None:
    for seed in range(4):
        rng = Random(seed)
        table, batch = random_table(rng, 200), random_batch(rng, 40)
        index = OpIndex.build(table, random_statistics(rng, 8), segments=segments)
        assert matched(index.match_batch(batch)) == brute_force(table, batch)
        again = OpIndex.from_arrays(index.arrays())
        more = random_table(rng, 30, first_id=500)
        again.insert(more)
        assert matched(again.match_batch(batch)) == brute_force(concatenate([table, more]), batch)


@pytest.mark.parametrize("segments", [3, -1, 0.5, 1 << 17])
def test_segments_that_are_no_power_of_two(segments: Any) -> None:
    with pytest.raises(InputError, match="power of two"):
        OpIndex.build(table_of(SUBSCRIPTIONS), segments=segments)


# -- changes --------------------------------------------------------------------------------------


def test_what_is_here_is_not_inserted_again() -> None:
    index = OpIndex.build(table_of(SUBSCRIPTIONS))
    for table in (table_of([{}, {A: one_of(1)}], first_id=5), table_of([{}, {}], first_id=9)):
        ids = table.clause_ids if table.clause_ids[0] == 5 else np.array([9, 9])
        with pytest.raises(InputError, match="none was inserted"):
            index.insert(table._replace(clause_ids=ids))
    assert index.stats().n_clauses == 6
    assert matched(index.match_batch(batch_of([{A: 1}]))) == [[]]


def test_what_is_not_here_cannot_be_deleted() -> None:
    index = OpIndex.build(table_of(SUBSCRIPTIONS))
    with pytest.raises(InputError, match="1 of these 2 clauses are not in the index"):
        index.delete(np.array([S4, 77]))
    assert matched(index.match_batch(batch_of([{A: 2}]))) == [[S4]]
    index.delete(np.array([S4]))
    with pytest.raises(InputError, match="none was deleted"):
        index.delete(np.array([S4]))
    assert matched(index.match_batch(batch_of([{A: 2}]))) == [[]]


def test_lists_forget_what_is_deleted() -> None:
    """Cells do not pile up, however often clauses come and go."""
    rng = Random(3)
    table, batch = random_table(rng, 300, n_dimensions=5), random_batch(rng, 10)
    index = OpIndex.build(table)
    sizes = []
    for _ in range(12):
        gone = np.array(sorted(rng.sample(range(300), 200)))
        index.delete(gone)
        kept = np.setdiff1d(np.arange(300), gone)
        assert matched(index.match_batch(batch)) == brute_force(take_clauses(table, kept), batch)
        for pivot in range(6):
            for operator in OPERATORS:
                segments_of(index, pivot, operator)
        index.insert(take_clauses(table, gone))
        assert matched(index.match_batch(batch)) == brute_force(table, batch)
        sizes.append(index.stats().n_bytes)
    assert sizes[-1] == sizes[5]


def _spread(table: ConjunctionTable, factor: int) -> ConjunctionTable:
    return table._replace(dimensions=table.dimensions * factor)


@given(st.randoms(use_true_random=False), st.sampled_from([1, 3, 64]))
def test_lists_stay_in_order(rng: Random, factor: int) -> None:
    """Insertions of one and of many, into short and long lists, with deletions in between."""
    everything = _spread(random_table(rng, 150, n_dimensions=6, top=15), factor)
    index = OpIndex.build(take_clauses(everything, np.arange(0)), segments=4)
    live: list[int] = []
    for _ in range(8):
        new = sorted(set(rng.sample(range(150), rng.choice([1, 2, 40]))) - set(live))
        if new:
            index.insert(take_clauses(everything, np.array(new)))
        live = sorted({*live, *new})
        gone = rng.sample(live, rng.choice([0, 0, 1, len(live) // 2]))
        index.delete(np.array(gone, np.int64))
        live = sorted(set(live) - set(gone))
        for pivot in range(len(index._store.lists.heads)):
            for operator in OPERATORS:
                segments_of(index, pivot, operator)
    batch = random_batch(rng, 5, top=15)
    batch = batch._replace(dimensions=batch.dimensions * factor)
    expected = brute_force(take_clauses(everything, np.array(live, np.int64)), batch)
    assert matched(index.match_batch(batch)) == expected


# -- operators ------------------------------------------------------------------------------------


def test_memory_does_not_depend_on_the_number_of_values() -> None:
    """The paper's Figure 8(b): 50 to 12,800 values."""
    sizes = []
    for top in (50, 800, 12_800):
        rng = np.random.default_rng(5)
        n = 4000
        lows = rng.integers(1, top, n)
        highs = np.where(rng.random(n) < 0.5, lows, top)
        lows = np.where(rng.random(n) < 0.3, 1, lows)
        table = ConjunctionTable(
            np.arange(n // 4),
            np.arange(0, n + 1, 4),
            (rng.integers(0, 30, (n // 4, 1)) + 30 * np.arange(4)).reshape(-1).astype(np.int32),
            np.arange(n + 1),
            lows,
            highs,
        )
        sizes.append(OpIndex.build(table).stats().n_bytes)
    assert max(sizes) < 1.1 * min(sizes)


def test_nested_intervals_are_climbed_and_others_found_as_well() -> None:
    nested = [{A: [(10, 90)]}, {A: [(20, 30)]}, {A: [(22, 24)]}, {A: [(40, 80)]}, {A: [(20, 30)]}]
    index = OpIndex.build(table_of(nested))
    lists = index._store.lists
    block = int(lists.heads[A + 1, BETWEEN])
    assert lists.blocks.cells[block + SHAPE] & FOREST
    batch = batch_of([{A: key} for key in (9, 10, 20, 23, 25, 31, 40, 85, 90, 91)])
    assert matched(index.match_batch(batch)) == brute_force(table_of(nested), batch)
    crossing = table_of([{A: [(25, 60)]}], first_id=5)
    index.insert(crossing)
    block = int(index._store.lists.heads[A + 1, BETWEEN])
    assert not index._store.lists.blocks.cells[block + SHAPE] & FOREST
    both = concatenate([table_of(nested), crossing])
    assert matched(index.match_batch(batch)) == brute_force(both, batch)


def test_prefixes_suffixes_and_patterns() -> None:
    """Prefixes and suffixes of one text are forests, patterns are flags; all against the oracle."""
    words = ["", "a", "ab", "abc", "abca", "b", "ba", "bab", "c", "cab", "abcabc"]
    texts = [f"name like '{word}%'" for word in words[1:]]
    texts += [f"name like '%{word}' and size > 3" for word in words[1:]]
    texts += ["name rlike '^a.*c$'", "name rlike 'b' and name like 'a%'", "not name rlike 'a'"]
    texts += ["name like '%bc%'", "name not like 'ab%'", "name ilike 'AB%' or size is null"]
    events = [{"name": word} | more for word in words for more in ({}, {"size": 2}, {"size": 4})]
    case = encode([parse(text) for text in texts], [*events, {}, {"size": 4}])
    index = OpIndex.build(case.table)
    check_against_oracle(index, case)
    prefixes = np.flatnonzero(index._store.lists.heads[:, BETWEEN] >= 0)
    assert len(prefixes) > 0
    lists = index._store.lists
    for block in lists.heads[prefixes, BETWEEN]:
        assert lists.blocks.cells[block + SHAPE] & FOREST


def test_keys_outside_of_floor_and_ceiling() -> None:
    """What most intervals begin and end with need not be the first and the last key of all."""
    clauses = [{A: [(5, v)]} for v in (7, 8, 9)] + [{A: [(v, 20)]} for v in (10, 11, 12)]
    clauses += [{A: [(1, 30)]}, {A: [(5, 20)]}]
    index = OpIndex.build(table_of(clauses))
    assert set(entries_of(index, A + 1)) == {AT_MOST, AT_LEAST, BETWEEN}
    batch = batch_of([{A: key} for key in (1, 4, 5, 7, 8, 10, 12, 20, 21, 30, 31)])
    assert matched(index.match_batch(batch)) == brute_force(table_of(clauses), batch)
