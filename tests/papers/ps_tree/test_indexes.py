"""What the conformance kit does not reach in `pst_bloom` and `pst_hash`: trees and pools after long
sequences of changes, options, signatures, the choice of access predicates."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import matchmill as mm
from matchmill.encoding.clause_encoder import encode_clauses
from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    concatenate,
    empty_table,
    take_clauses,
)
from matchmill.encoding.dimensions import Dimensions
from matchmill.errors import InputError
from matchmill.kernels.jit import JIT_DISABLED
from matchmill.language.normal_form import Dimension, normalize
from matchmill.language.parser import parse
from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.papers.common.pools import rows_in_use
from matchmill.papers.ps_tree.bloom_index import PSTBloom
from matchmill.papers.ps_tree.forest import EXTRA_SIZE, FIRST, N_LIST, NEXT
from matchmill.papers.ps_tree.hash_index import PSTHash
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    statistics_of,
    table_of,
)
from tests.support.ps_tree_checks import check_index

pytestmark = pytest.mark.kernels

BUILDS: dict[str, Any] = {
    "bloom": lambda table, statistics=None: PSTBloom.build(table, statistics),
    "hash 1": lambda table, statistics=None: PSTHash.build(table, statistics, n_access=1),
    "hash 2": lambda table, statistics=None: PSTHash.build(table, statistics),
    "hash 3": lambda table, statistics=None: PSTHash.build(table, statistics, n_access=3),
}


class Changes(RuleBasedStateMachine):
    """Clauses come and go one at a time and in numbers, keys are small or of 60 bits."""

    @initialize(
        build=st.sampled_from(sorted(BUILDS)),
        seed=st.integers(0, 1 << 16),
        scale=st.sampled_from([1, 1 << 28, 1 << 56]),
    )
    def start(self, build: str, seed: int, scale: int) -> None:
        self.rng = Random(seed)
        table = random_table(self.rng, 60, n_dimensions=5, top=20)
        self.everything = table._replace(lows=table.lows * scale, highs=table.highs * scale)
        events = random_batch(self.rng, 12, n_dimensions=6, top=20)
        self.events = events._replace(keys=events.keys * scale)
        self.index = BUILDS[build](empty_table())
        self.live: set[int] = set()

    @rule(n=st.sampled_from([1, 1, 1, 4, 20]))
    def insert(self, n: int) -> None:
        free = sorted(set(range(60)) - self.live)
        new = sorted(self.rng.sample(free, min(n, len(free))))
        self.index.insert(take_clauses(self.everything, np.array(new, np.int64)))
        self.live |= set(new)

    @rule(n=st.sampled_from([1, 1, 3, 15]))
    def delete(self, n: int) -> None:
        gone = self.rng.sample(sorted(self.live), min(n, len(self.live)))
        self.index.delete(np.array(gone, np.int64))
        self.live -= set(gone)

    @rule()
    def delete_all(self) -> None:
        self.index.delete(np.array(sorted(self.live), np.int64))
        self.live = set()

    @invariant()
    def agrees(self) -> None:
        live = take_clauses(self.everything, np.array(sorted(self.live), np.int64))
        assert matched(self.index.match_batch(self.events)) == brute_force(live, self.events)

    @invariant()
    def is_whole(self) -> None:
        check_index(self.index)


TestChanges = Changes.TestCase
# Without compilation a step takes a second.
TestChanges.settings = settings(
    max_examples=2 if JIT_DISABLED else 16,
    stateful_step_count=8 if JIT_DISABLED else 20,
    derandomize=True,
    deadline=None,
)


@pytest.mark.parametrize("name", BUILDS)
def test_one_at_a_time_and_back(name: str) -> None:
    rng = Random(3)
    table = random_table(rng, 400, n_dimensions=9, top=60)
    batch = random_batch(rng, 20, top=60)
    index = BUILDS[name](empty_table())
    for i in range(400):
        index.insert(take_clauses(table, np.array([i])))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    check_index(index)
    order = list(range(400))
    rng.shuffle(order)
    for i in order[:200]:
        index.delete(np.array([i]))
    rest = take_clauses(table, np.array(sorted(order[200:])))
    assert matched(index.match_batch(batch)) == brute_force(rest, batch)
    for i in order[200:]:
        index.delete(np.array([i]))
    check_index(index)


@pytest.mark.parametrize("name", BUILDS)
def test_bulk_and_single_insertions_agree(name: str) -> None:
    rng = Random(4)
    first, second = random_table(rng, 150), random_table(rng, 50, first_id=150)
    batch = random_batch(rng, 40)
    index = BUILDS[name](first, statistics_of(batch, 8))
    for i in range(50):
        index.insert(take_clauses(second, np.array([i])))
    both = concatenate([first, second])
    assert matched(index.match_batch(batch)) == brute_force(both, batch)
    again = type(index).from_arrays(index.arrays())
    again.delete(first.clause_ids)
    assert matched(again.match_batch(batch)) == brute_force(second, batch)
    again.delete(second.clause_ids)
    check_index(again)


@pytest.mark.parametrize("name", BUILDS)
def test_failed_calls_change_nothing(name: str) -> None:
    table = random_table(Random(5), 20)
    batch = random_batch(Random(5), 10)
    index = BUILDS[name](table)
    with pytest.raises(InputError, match="none was inserted"):
        index.insert(random_table(Random(6), 5, first_id=19))
    with pytest.raises(InputError, match="none was deleted"):
        index.delete(np.array([3, 20]))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@pytest.mark.parametrize("name", BUILDS)
def test_arrays_of_another_layout_are_rejected(name: str) -> None:
    arrays = BUILDS[name](random_table(Random(7), 5)).arrays()
    index_type = PSTBloom if name == "bloom" else PSTHash
    for wrong in (
        {**arrays, "layout": np.array([1])},
        {k: a for k, a in arrays.items() if k != "layout"},
    ):
        with pytest.raises(InputError, match="another version"):
            index_type.from_arrays(wrong)


@pytest.mark.parametrize("n_access", [0, 4, "2"])
def test_numbers_of_access_predicates(n_access: Any) -> None:
    with pytest.raises(InputError, match="1, 2 or 3"):
        PSTHash.build(empty_table(), n_access=n_access)


# -- access predicates ----------------------------------------------------------------------------

# By operator alone: =, in, a range with two ends, one with one end, not in, !=.
OPERATORS = [
    [(7, 7)],
    [(3, 3), (9, 9)],
    [(5, 20)],
    [(5, MAX_KEY)],
    [(1, 4), (6, 7), (9, MAX_KEY)],
    [(1, 4), (6, MAX_KEY)],
]


def listing_dimension(index: PSTBloom | PSTHash) -> int:
    """The dimension whose tree lists the only clause."""
    forest = index._arrays.forest
    for d, tree in enumerate(forest.trees):
        leaf = int(tree[FIRST])
        while leaf >= 0:
            if forest.leaves.cells[leaf, N_LIST]:
                return d
            leaf = int(forest.leaves.cells[leaf, NEXT])
    return -1


@pytest.mark.parametrize("best", range(len(OPERATORS) - 1))
def test_without_history_operators_decide(best: int) -> None:
    count = len(OPERATORS)
    clause = {d: OPERATORS[count - 1 - d] for d in range(count - best)}
    index = PSTBloom.build(table_of([clause]))
    assert listing_dimension(index) == count - 1 - best


def test_without_history_narrow_ranges_come_first() -> None:
    assert listing_dimension(PSTBloom.build(table_of([{0: [(2, 10)], 1: [(2, 5)]}]))) == 1


def encoded(text: str) -> tuple[ConjunctionTable, int]:
    """An expression of one clause in an engine's keys, and the dimension that has `name` a."""
    dimensions = Dimensions()
    clauses = normalize(parse(text), 64).clauses
    table = encode_clauses(dimensions, clauses, np.arange(len(clauses))).table
    return table, dimensions.id_of(Dimension("a"))


# Of two attributes a has the more selective operator, though it accepts more keys where it can.
ENGINE_KEYS = [
    ("a = 7", "b in (1, 2)"),
    ("a in (1, 9)", "b between 1 and 2"),
    ("a between 1 and 1000000", "b < 2"),
    ("a between 1 and 1000000", "b > 5"),
    ("a between 'a' and 'z'", "b < 'aa'"),
    ("a between 'a' and 'z'", "b >= 'zz'"),
    ("a < 1000000", "b not in (1, 2, 3)"),
    ("a > 'b'", "b not in ('x', 'y')"),
    ("a not in (1, 2, 3)", "b != 1"),
    ("a <= 3 or a > 5", "b != 'x'"),
]


@pytest.mark.parametrize("texts", ENGINE_KEYS, ids=" ".join)
@pytest.mark.parametrize("is_first", [True, False])
def test_operators_keep_their_rank_in_keys_of_an_engine(
    texts: tuple[str, str], is_first: bool
) -> None:
    table, best = encoded(" and ".join(texts if is_first else reversed(texts)))
    assert listing_dimension(PSTBloom.build(table)) == best


def test_whoever_makes_codes_of_keys_says_what_has_one_end() -> None:
    """As codes, all are ranges with two ends."""
    clause = {0: [(2, 4)], 1: [(3, 9)]}
    first, second = np.array([1, 0], np.uint8), np.array([0, 1], np.uint8)
    assert listing_dimension(PSTBloom.build(table_of([clause]))) == 0
    assert listing_dimension(PSTBloom.build(table_of([clause]), one_sided=first)) == 1
    assert listing_dimension(PSTBloom.build(table_of([clause]), one_sided=second)) == 0
    for build in (PSTBloom.build, lambda table: PSTHash.build(table, n_access=1)):
        index = build(empty_table())
        index.insert(table_of([clause]), one_sided=first)
        assert listing_dimension(index) == 1


def test_statistics_count_as_history() -> None:
    table = table_of([{0: [(7, 7)], 1: [(5, 20)]}])
    events = batch_of([{0: 7}] * 9 + [{1: 10}])
    assert listing_dimension(PSTBloom.build(table)) == 0
    assert listing_dimension(PSTBloom.build(table, statistics_of(events, 2))) == 1


def test_matched_events_count_as_history() -> None:
    index = PSTBloom.build(table_of([{0: [(7, 7)]}, {1: [(5, 20)]}]))
    index.match_batch(batch_of([{0: 7}] * 9 + [{1: 10}]))
    index.insert(table_of([{0: [(7, 7)], 1: [(5, 20)]}], first_id=2))
    index.delete(np.array([0, 1]))
    assert listing_dimension(index) == 1


# -- what each does to be quick -------------------------------------------------------------------


def test_signatures_spare_checks() -> None:
    """Clauses of two points: one alone is found by chance only."""
    table = table_of(
        [{0: [(1 + i % 5, 1 + i % 5)], 1: [(1 + i // 5, 1 + i // 5)]} for i in range(200)]
    )
    index = PSTBloom.build(table)
    assert matched(index.match_batch(batch_of([{0: 2, 1: 11}, {0: 2}]))) == [[51], []]
    assert index.stats().candidates < 12


@pytest.mark.parametrize("signature_bits", [64, 1000, 1 << 17, None])
@pytest.mark.parametrize("signatures", ["two", "all"])
def test_forms_of_signatures(signatures: str, signature_bits: int | None) -> None:
    rng = Random(8)
    table, more = random_table(rng, 300), random_table(rng, 50, first_id=300)
    batch = random_batch(rng, 30)
    index = PSTBloom.build(table, signatures=signatures, signature_bits=signature_bits)
    again = PSTBloom.from_arrays(index.arrays())
    for i in range(50):
        again.insert(take_clauses(more, np.array([i])))
    assert matched(again.match_batch(batch)) == brute_force(concatenate([table, more]), batch)
    again.delete(np.arange(0, 350, 2))
    check_index(again)
    leaves = again._arrays.forest.leaves.cells[: again._arrays.forest.leaves.state[0]]
    assert 1 << int(leaves[:, EXTRA_SIZE].max()) <= (signature_bits or 1 << 30)


def test_all_signatures_spare_more_checks_than_two() -> None:
    """Four points each: events share three of them with many clauses, and all with one."""
    clauses = [{0: [(1, 1)], 1: [(1, 1)], 2: [(1, 1)], 3: [(1 + i, 1 + i)]} for i in range(300)]
    table, batch = table_of(clauses), batch_of([{0: 1, 1: 1, 2: 1, 3: 9}])
    # Events know best: the fourth dimension, the most selective one, comes last here.
    history = statistics_of(batch_of([{3: 1 + i} for i in range(300)] * 3), 4)
    two = PSTBloom.build(table, history)
    every = PSTBloom.build(table, history, signatures="all")
    assert matched(two.match_batch(batch)) == matched(every.match_batch(batch)) == [[8]]
    assert two.stats().candidates == 300
    assert every.stats().candidates < 60
    assert PSTBloom.from_arrays(every.arrays()).match_batch(batch).clause_ids.tolist() == [8]


@pytest.mark.parametrize(
    "options",
    [{"signatures": "none"}, {"signature_bits": 63}, {"signature_bits": (1 << 30) + 1}],
)
def test_signatures_that_there_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="it can be"):
        PSTBloom.build(empty_table(), **options)


@pytest.mark.parametrize("name", ["pst_bloom", "pst_hash"])
def test_options_survive_saving(name: str, tmp_path: Path) -> None:
    options = {"ahead": False}
    if name == "pst_bloom":
        options |= {"signatures": "all", "signature_bits": 256}
    engine = mm.Engine(index=name, index_options=options)
    engine.subscribe("one", "a = 1 and b = 2 and c = 3")
    engine.compact()
    engine.save(tmp_path / "saved")
    engine = mm.Engine.open(tmp_path / "saved")
    engine.subscribe("two", "a = 1 and b = 2")
    assert sorted(engine.match({"a": 1, "b": 2, "c": 3})) == ["one", "two"]
    assert engine.index_options == options


def test_signatures_are_written_anew_after_many_deletions() -> None:
    clauses = [{0: [(1, 1)], 1: [(1 + i % 40, 1 + i % 40)]} for i in range(1300)]
    table = table_of(clauses)
    index = PSTBloom.build(table)
    index.delete(np.arange(1200))
    batch = batch_of([{0: 1, 1: 5}, {0: 1, 1: 30}])
    expected = brute_force(take_clauses(table, np.arange(1200, 1300)), batch)
    assert matched(index.match_batch(batch)) == expected
    assert index.stats().candidates < 40


def test_records_follow_when_spaces_are_divided() -> None:
    index = PSTHash.build(table_of([{0: [(1, 20)], 1: [(1, 20)]}]))
    index.insert(table_of([{0: [(5, 8)], 1: [(9, 9)]}], first_id=1))
    assert rows_in_use(index._arrays.records.rows) == 9
    batch = batch_of([{0: 6, 1: 9}, {0: 2, 1: 9}, {0: 6, 1: 12}, {0: 21, 1: 9}])
    assert matched(index.match_batch(batch)) == [[0, 1], [0], [0], []]
    index.delete(np.array([1]))
    assert rows_in_use(index._arrays.records.rows) == 1
    assert matched(index.match_batch(batch)) == [[0], [0], [0], []]


def test_the_event_of_figure_4() -> None:
    """Values are one higher than half a byte's range, as keys are not negative."""
    one, minus_one, zero = 130, 128, 129
    table = table_of(
        [
            {0: [(one, one)], 1: [(minus_one, minus_one)], 2: [(1, zero - 1)]},
            {0: [(one, one)], 1: [(minus_one, minus_one)], 2: [(zero + 1, 256)]},
            {0: [(one, one)], 1: [(1, minus_one - 1)], 2: [(zero, zero)]},
            {0: [(1, one - 1)], 1: [(minus_one, minus_one)], 2: [(zero, zero)]},
        ]
    )
    index = PSTHash.build(table)
    assert rows_in_use(index._arrays.records.rows) == 3
    assert matched(index.match_batch(batch_of([{0: one, 1: minus_one, 2: zero + 2}]))) == [[1]]
    assert index.stats().candidates == 2


def test_too_many_combinations_are_filed_under_one_predicate() -> None:
    points = [{0: [(k, k)], 1: [(k, k)]} for k in range(2, 162, 2)]
    wide = {0: [(1, 500)], 1: [(1, 400)]}
    table = table_of([*points, wide])
    index = PSTHash.build(table)
    assert rows_in_use(index._arrays.records.rows) == 80
    batch = batch_of([{0: 4, 1: 4}, {0: 500, 1: 9}, {0: 3, 1: 401}])
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.delete(np.array([80]))
    assert matched(index.match_batch(batch)) == [[1], [], []]
    index.delete(np.arange(80))
    check_index(index)
