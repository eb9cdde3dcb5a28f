"""What `mill` is built from, part by part: each against its definition."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable, concatenate, empty_table
from matchmill.index import distinct_predicates as distinct_module
from matchmill.index import predicate_codes as dictionary_module
from matchmill.index.base import Statistics
from matchmill.index.mill.build import shared_predicates
from matchmill.index.mill.build.access import MOST_NODES, choose_access, cover_of, node_place
from matchmill.index.mill.build.shared_predicates import SharedPredicates, share_predicates
from matchmill.index.predicate_codes import Dictionary, build_dictionary, code_of
from matchmill.index.selectivity import code_masses, predicate_chances
from matchmill.kernels.jit import JIT_DISABLED
from tests.support.conformance_kit import (
    batch_of,
    random_statistics,
    random_table,
    statistics_of,
    table_of,
)

pytestmark = pytest.mark.kernels

Predicate = tuple[int, tuple[tuple[int, int], ...]]


def predicates_of(table: ConjunctionTable) -> list[Predicate]:
    """Each predicate of a table as its dimension and its intervals."""
    bounds = list(zip(table.lows.tolist(), table.highs.tolist(), strict=True))
    starts, stops = table.interval_offsets[:-1], table.interval_offsets[1:]
    return [
        (int(d), tuple(bounds[a:b]))
        for d, a, b in zip(table.dimensions, starts, stops, strict=True)
    ]


def coded(dictionary: Dictionary, q: int) -> list[tuple[int, int]]:
    """The intervals, in codes, of a distinct predicate."""
    span = slice(int(dictionary.interval_offsets[q]), int(dictionary.interval_offsets[q + 1]))
    return list(zip(dictionary.lows[span].tolist(), dictionary.highs[span].tolist(), strict=True))


def has(intervals: list[tuple[int, int]] | tuple[tuple[int, int], ...], value: int) -> bool:
    return any(low <= value <= high for low, high in intervals)


def n_codes_of(dictionary: Dictionary, d: int) -> int:
    return int(dictionary.edge_offsets[d + 1] - dictionary.edge_offsets[d]) + 1


def key_code(dictionary: Dictionary, d: int, key: int) -> int:
    first, last = int(dictionary.edge_offsets[d]), int(dictionary.edge_offsets[d + 1])
    return int(code_of(dictionary.edges, first, last, key))


# -- the dictionary -------------------------------------------------------------------------------


def check_dictionary(table: ConjunctionTable, keys: list[int]) -> Dictionary:
    """Equal predicates, and only those, have one number; codes say what keys say."""
    dictionary = build_dictionary(table)
    predicates = predicates_of(table)
    found: dict[int, Predicate] = {}
    for q, predicate in zip(dictionary.ids.tolist(), predicates, strict=True):
        assert found.setdefault(q, predicate) == predicate
    assert sorted(found) == list(range(dictionary.n_distinct))
    assert len(set(found.values())) == dictionary.n_distinct
    assert np.array_equal(
        dictionary.uses, np.bincount(dictionary.ids, minlength=dictionary.n_distinct)
    )
    assert dictionary.n_dimensions == table.n_dimensions
    assert len(dictionary.predicate_offsets) == table.n_dimensions + 1
    for d in range(dictionary.n_dimensions):
        here = range(dictionary.predicate_offsets[d], dictionary.predicate_offsets[d + 1])
        assert sorted(q for q in found if found[q][0] == d) == list(here)
        edges = dictionary.edges[dictionary.edge_offsets[d] : dictionary.edge_offsets[d + 1]]
        assert (np.diff(edges) > 0).all()
        assert key_code(dictionary, d, 0) == 0
        for key in keys:
            code = key_code(dictionary, d, key)
            assert code == (edges <= key).sum()
            for q in here:
                assert dictionary.dimensions[q] == d
                assert has(coded(dictionary, q), code) == has(found[q][1], key)
    return dictionary


@pytest.mark.parametrize("seed", range(6))
def test_the_dictionary_of_random_tables(seed: int) -> None:
    rng = Random(seed)
    top = rng.choice((6, 12, 60))
    table = random_table(rng, rng.choice((1, 30, 150)), n_dimensions=5, top=max(top, 9))
    check_dictionary(table, list(range(top + 2)))


def test_the_dictionary_of_nothing() -> None:
    for table in (empty_table(), table_of([{}, {}])):
        dictionary = build_dictionary(table)
        assert (dictionary.n_distinct, dictionary.n_dimensions) == (0, 0)


def test_predicates_that_differ_in_one_place() -> None:
    """In the dimension, in one bound of one interval, in the number of intervals, in high bits."""
    several = [(1, 1), (3, 4), (9, 9)]
    high = 1 << 60
    clauses = [
        {0: several},
        {1: several},
        {0: several[:2]},
        {0: [(1, 1), (3, 5), (9, 9)]},
        {0: [(1, 1), (3, 4), (8, 9)]},
        {0: [(0, 1), (3, 4), (9, 9)]},
        {0: several},
        {0: [(5, 5)]},
        {0: [(5 + high, 5 + high)]},
        {0: [(5 + 2 * high, 5 + 2 * high)]},
        {0: [(5, 5 + high)]},
        {0: [(5, 5 + 2 * high)]},
        {0: [(5, 5), (9, 9)]},
        {0: [(5, 5), (9 + high, 9 + high)]},
        {0: [(5, 5), (9, 9 + high)]},
        {0: [(5, 5), (7, 7), (9 + high, 9 + high)]},
        {0: [(5, 5), (7, 7), (9 + 2 * high, 9 + 2 * high)]},
    ]
    keys = [*range(11), *(k + n * high for n in (1, 2, 3) for k in range(-1, 11))]
    assert check_dictionary(table_of(clauses), keys).n_distinct == 16


@pytest.mark.skipif(not JIT_DISABLED, reason="compiled kernels cannot be given another hash")
def test_hashes_that_are_all_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_module, "combine31", lambda h, key: 0)
    monkeypatch.setattr(distinct_module, "combine31", lambda h, key: 0)
    check_dictionary(random_table(Random(1), 60, n_dimensions=5, top=12), list(range(14)))


@pytest.mark.parametrize("n", [4_064, 4_065, 4_096, 4_097, 33_000])
def test_more_predicates_than_the_first_hash_table(n: int) -> None:
    """Each twice, up to and beyond the sizes from which the table grows."""
    keys = np.repeat(np.arange(1, n + 1) * 64, 2)
    one_each = np.arange(2 * n + 1)
    table = ConjunctionTable(
        one_each[:-1], one_each, np.zeros(2 * n, np.int32), one_each, keys, keys + (keys & 64)
    )
    dictionary = build_dictionary(table)
    assert np.array_equal(dictionary.ids, np.repeat(np.arange(n), 2))
    assert np.array_equal(dictionary.uses, np.full(n, 2))


def test_gaps_between_dimensions_have_no_codes() -> None:
    dictionary = build_dictionary(table_of([{2: [(3, 3)]}, {7: [(0, 0)]}]))
    assert [n_codes_of(dictionary, d) for d in range(8)] == [1, 1, 3, 1, 1, 1, 1, 2]


# -- chances --------------------------------------------------------------------------------------


def masses_by_dimension(dictionary: Dictionary, masses: np.ndarray) -> list[np.ndarray]:
    sizes = [n_codes_of(dictionary, d) for d in range(dictionary.n_dimensions)]
    return np.split(masses, np.cumsum(sizes)[:-1]) if sizes else []


def check_chances(dictionary: Dictionary, statistics: Statistics | None) -> np.ndarray:
    """On each dimension they sum to 1; a predicate's is the sum of its codes'."""
    masses = code_masses(dictionary, statistics)
    by_dimension = masses_by_dimension(dictionary, masses)
    for one in by_dimension:
        assert (one >= 0).all()
        assert one.sum() == pytest.approx(1)
    chances = predicate_chances(dictionary, masses)
    for q, d in enumerate(dictionary.dimensions):
        codes = [c for low, high in coded(dictionary, q) for c in range(low, high + 1)]
        assert chances[q] == pytest.approx(by_dimension[d][codes].sum(), abs=1e-6)
    return chances


@pytest.mark.parametrize("seed", range(6))
def test_chances_sum_to_one(seed: int) -> None:
    rng = Random(seed)
    dictionary = build_dictionary(random_table(rng, 50))
    check_chances(dictionary, None)
    for _ in range(4):
        statistics = random_statistics(rng, 8)
        samples = np.diff(statistics.sample_offsets)
        assert ((samples > 0) == (statistics.dimension_counts > 0)).all()
        check_chances(dictionary, statistics)


def test_chances_are_those_of_a_sample_that_surprises() -> None:
    """Keys that nobody would expect: half an event is spread over what was not seen, and what
    is expected of dimensions is worth a few events."""
    rng = Random(1)
    table = random_table(rng, 80)
    batch = batch_of([{d: rng.choice((1, 7)) for d in range(8) if d != 3} for _ in range(400)])
    dictionary = build_dictionary(table)
    chances = check_chances(dictionary, statistics_of(batch, table.n_dimensions))
    keys = np.zeros((batch.n_events, 10), np.int64)
    rows = np.repeat(np.arange(batch.n_events), np.diff(batch.offsets))
    keys[rows, batch.dimensions] = batch.keys
    for q, predicate in zip(dictionary.ids, predicates_of(table), strict=True):
        share = np.mean([has(predicate[1], int(key)) for key in keys[:, predicate[0]]])
        assert abs(chances[q] - share) <= 6 / batch.n_events


def test_a_sample_that_chance_explains_changes_nothing() -> None:
    """40 keys on each of 50 dimensions, all of the 20 values as likely as is asked for them."""
    rng = Random(2)
    dictionary = build_dictionary(
        table_of([{d: [(k, k)]} for d in range(50) for k in range(1, 21)])
    )
    events = [{d: rng.randrange(1, 21) for d in rng.sample(range(50), 5)} for _ in range(400)]
    chances = check_chances(dictionary, statistics_of(batch_of(events), 50))
    assert np.abs(chances * 20 - 0.1).max() < 0.02  # each dimension in a tenth of the events
    counted = np.bincount([20 * d + key - 1 for event in events for d, key in event.items()])
    assert np.abs(counted * 20 / 400 - 0.1).max() > 0.1  # which the sample alone would not say


def test_a_sample_stands_for_all_that_were_counted() -> None:
    """900 of 1,000 events have the dimension; of 90 sampled keys 60 are 5."""
    dictionary = build_dictionary(table_of([{0: [(5, 5)]}, {0: [(8, 9)]}, {0: [(0, 0)]}]))
    keys = np.repeat([5, 8], [60, 30])
    statistics = Statistics(1000, np.array([900]), np.array([0, 90]), keys)
    chances = check_chances(dictionary, statistics)
    assert chances.tolist() == pytest.approx([0.6, 0.3, 0.1], abs=5e-3)


def test_what_the_sample_does_not_know_is_absent() -> None:
    dictionary = build_dictionary(table_of([{0: [(5, 5)], 1: [(5, 5)]}, {1: [(0, 0)]}]))
    statistics = Statistics(1000, np.array([1000]), np.array([0, 50]), np.full(50, 5))
    assert check_chances(dictionary, statistics).tolist() == pytest.approx([1, 0, 1], abs=1e-2)


def test_without_statistics_what_is_asked_for_more_often_is_more_frequent() -> None:
    rare = [{1: [(k, k)]} for k in range(1, 5)]
    common = [{0: [(k % 4 + 1, k % 4 + 1)]} for k in range(96)]
    dictionary = build_dictionary(table_of(common + rare))
    chances = check_chances(dictionary, None)
    assert chances[dictionary.dimensions == 0].min() > chances[dictionary.dimensions == 1].max()


def test_one_point_among_ranges_says_little() -> None:
    """Of what is asked for on a dimension, 200 are one point and 2,000 are ranges."""
    ranges = [{0: [(k, k + 30)]} for k in range(10, 60)] * 40
    for clauses, least, most in (([], 0.8, 1.0), (ranges, 0.0, 0.4)):
        dictionary = build_dictionary(table_of([{0: [(5, 5)]}] * 200 + clauses))
        (chance,) = check_chances(dictionary, None)[dictionary.ids[:1]]
        assert least <= chance <= most


# -- sharing --------------------------------------------------------------------------------------


def check_rows(dictionary: Dictionary) -> SharedPredicates:
    """For every code the words say which shared predicates hold, and nothing about others."""
    shared = share_predicates(dictionary)
    assert (shared.numbers[shared.distinct[2:]] == np.arange(2, shared.n_shared)).all()
    assert (shared.numbers >= 0).sum() == shared.n_shared - 2
    for d in range(dictionary.n_dimensions):
        here = range(dictionary.predicate_offsets[d], dictionary.predicate_offsets[d + 1])
        holders = {int(shared.numbers[q]): coded(dictionary, q) for q in here}
        holders.pop(-1, None)
        if not holders:
            assert shared.n_words[d] == 0
            continue
        for code in range(n_codes_of(dictionary, d)):
            row = int(shared.row_of_code[shared.row_starts[d] + code])
            words = shared.rows[row : row + int(shared.n_words[d])]
            first = 64 * int(shared.first_words[d])
            told = {first + 64 * w + b for w, word in enumerate(words) for b in bits_of(int(word))}
            assert told == {s for s, intervals in holders.items() if has(intervals, code)}
    return shared


def bits_of(word: int) -> list[int]:
    return [b for b in range(64) if word >> b & 1]


@pytest.mark.parametrize("seed", range(6))
def test_rows_say_what_predicates_say(seed: int) -> None:
    rng = Random(seed)
    tables = [random_table(rng, rng.choice((5, 100)), top=rng.choice((9, 40, 200)))]
    if seed % 2:
        tables += [tables[0]] * 20  # more uses: more of them are shared
    check_rows(build_dictionary(concatenate(tables)))


@pytest.mark.parametrize("limit", ["_MOST", "_MOST_ON_DIMENSION"])
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65])
def test_limits_of_sharing(limit: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are allowed, and the most used ones, of all and on each dimension."""
    rng = Random(n)
    table = concatenate([random_table(rng, 60, n_dimensions=3), random_table(rng, 60)])
    dictionary = build_dictionary(table)
    before = share_predicates(dictionary)
    monkeypatch.setattr(shared_predicates, limit, n)
    shared = check_rows(dictionary)
    scopes = (
        [np.full(dictionary.n_distinct, True)]
        if limit == "_MOST"
        else [dictionary.dimensions == d for d in range(dictionary.n_dimensions)]
    )
    for scope in scopes:
        kept = scope & (shared.numbers >= 0)
        dropped = scope & (before.numbers >= 0) & (shared.numbers < 0)
        assert kept.sum() <= n
        if dropped.any() and kept.any():
            assert dictionary.uses[kept].min() >= dictionary.uses[dropped].max()
    assert shared.n_shared > 2 or n == 0


# -- access ---------------------------------------------------------------------------------------


def visited_nodes(code: int, level: int) -> set[int]:
    """The nodes that an event with this code visits, of level 0 and one more."""
    return {code} if code == 0 else {code, level << 32 | code >> level}


def check_covers(table: ConjunctionTable) -> None:
    """Each code that a predicate accepts visits exactly one of the nodes it is filed under, and
    no code visits two; on level 0 only codes that it accepts visit one."""
    dictionary = build_dictionary(table)
    shared = share_predicates(dictionary)
    masses = code_masses(dictionary, None)
    chances = predicate_chances(dictionary, masses)
    plan = choose_access(table, dictionary, shared, masses, chances)
    nodes = np.empty(MOST_NODES, np.int64)
    for q, d in enumerate(dictionary.dimensions):
        n_codes, level = n_codes_of(dictionary, d), int(plan.levels[q])
        n = cover_of(
            dictionary.interval_offsets, dictionary.lows, dictionary.highs, q, level, nodes
        )
        assert 1 <= n <= MOST_NODES
        cover = set(nodes[:n].tolist())
        assert len(cover) == n
        places = {node_place(n_codes, node) for node in cover}
        assert len(places) == n
        assert min(places) >= 0
        for code in range(n_codes):
            n_visits = len(cover & visited_nodes(code, level))
            assert n_visits <= 1
            if has(coded(dictionary, q), code):
                assert n_visits == 1
            elif level == 0:
                assert n_visits == 0


@pytest.mark.parametrize("top", [9, 40, 200, 700])
def test_covers(top: int) -> None:
    rng = Random(top)
    check_covers(random_table(rng, 80, n_dimensions=2, top=top))


@given(
    st.lists(
        st.sets(st.integers(0, 70), min_size=2, max_size=40).map(sorted), min_size=1, max_size=5
    )
)
def test_any_covers(cuts: list[list[int]]) -> None:
    """Sets of any shape: from each cut point to the one after it, then a gap to the next."""
    check_covers(
        table_of([{0: [(c[k], c[k + 1] - 1) for k in range(0, len(c) - 1, 2)]} for c in cuts])
    )


def test_places_of_nodes_do_not_meet() -> None:
    for n_codes in (1, 2, 3, 8, 9, 100):
        nodes = [
            level << 32 | place
            for level in range(8)
            for place in range(((n_codes - 1) >> level) + 1)
        ]
        assert [node_place(n_codes, node) for node in nodes] == list(range(len(nodes)))
